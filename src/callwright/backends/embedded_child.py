"""The program that the embedded model runs in: llama.cpp's own HTTP server, on a port that only its parent is told.

Started by path, in a process of its own, and imports nothing of Callwright: it needs none of it, and so starts in a
tenth of a second. One line of JSON with what to load comes in on standard input, one line with the address goes out on
standard output. When the input ends the parent is gone, and so is this process, whatever it was at.
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
"""For the prompts of conversations that have no slot just now. llama.cpp would take up to 8 GiB."""
BATCH_TOKENS = 128
"""Tokens of a prompt that are read at once. A turn that is left ends after the batch that it is in, which with
llama.cpp's 2048 took half a minute on a slow machine; the small ones are no slower to read."""
_ERRORS_ONLY = 1


def main() -> None:
    """Serve the model until the input ends."""
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
    order = json.loads(sys.stdin.readline())
    watching = threading.Thread(target=_exit_at_end_of_input, daemon=True)
    watching.start()
    try:
        server = xllamacpp.Server(_build_parameters(**order))
    except RuntimeError:
        sys.exit(1)  # what is wrong stands on standard error, and not in the exception
    os.write(answers, f"{server.listening_address}\n".encode())
    watching.join()


def _exit_at_end_of_input() -> None:
    """Wait for the end of the input, and then for nothing: a turn in the middle of its work does not matter now."""
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
        # They meet after every step. Measured with SmolLM2-135M on two processors that others use too: 40 tokens
        # per second with one thread, 4 with two.
        processors.n_threads = threads or max(1, (os.cpu_count() or 2) // 2)
    return parameters


if __name__ == "__main__":
    main()
