"""The child process of the embedded model: llama.cpp's own HTTP server on a port that only its parent knows.

It is started by path and imports nothing of Callwright, so it starts in a tenth of a second. It reads its parameters as
one line of JSON from standard input and writes its address as one line to standard output. When the input ends, the
parent is gone, and this process exits at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

import xllamacpp

__all__ = ["main"]

CACHE_MIB = 256
"""Cache for prompts of conversations without a slot. llama.cpp's default is up to 8 GiB."""
BATCH_TOKENS = 128
"""Tokens of a prompt processed at a time. A cancelled turn ends after its current batch, which took half a minute with
llama.cpp's default of 2048 on a slow machine. Small batches are no slower."""
_ERRORS_ONLY = 1


def main() -> None:
    """Serve the model until the input ends."""
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep the output of libraries away from the parent
    parameters = json.loads(sys.stdin.readline())
    watcher = threading.Thread(target=_exit_at_end_of_input, daemon=True)
    watcher.start()
    try:
        server = xllamacpp.Server(_build_parameters(**parameters))
    except RuntimeError:
        sys.exit(1)  # the reason is on standard error, not in the exception
    os.write(output, f"{server.listening_address}\n".encode())
    watcher.join()


def _exit_at_end_of_input() -> None:
    """Exit at once when the input ends, whatever turn is running."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


def _build_parameters(*, path: str, name: str, key: str, context: int, threads: int, slots: int) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.verbosity = _ERRORS_ONLY
    parameters.model.path = path
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.ui = False
    parameters.n_parallel = slots
    parameters.n_ctx = context * slots
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.cache_ram_mib = CACHE_MIB
    for processors in (parameters.cpuparams, parameters.cpuparams_batch):
        # Threads synchronize after every step. Measured with SmolLM2-135M on two processors in shared use: 40 tokens
        # per second with one thread, 4 with two.
        processors.n_threads = threads or max(1, (os.cpu_count() or 2) // 2)
    return parameters


if __name__ == "__main__":
    main()
