"""`python -m callwright …` in a process of its own, without the second that an interpreter takes to load everything.

    running = start(["callwright", "chat", "Hello"], cwd=root, environment={…}, files=(0, 1, 2))
    running.pid, running.wait()

A process that has loaded all modules waits for orders and forks for each: what is started has the environment, the
folder, the open files, the signals and the process id of any other process. The full run starts new interpreters.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import callwright
from callwright.cli import main
from tests.support.sampling import FULL

__all__ = ["Running", "command", "run", "start"]

ROOT = Path(__file__).parents[2]
LATE = ("aiosqlite", "sqlalchemy.dialects.sqlite.aiosqlite", "mcp.server.mcpserver")
"""What the first use loads."""
SETTINGS = """\
[[backends]]
name = "script"
kind = "scripted"
script = "script.jsonl"
"""


class Running:
    """A process that was started."""

    def __init__(self, pid: int, ends: subprocess.Popen[bytes] | socket.socket) -> None:
        self.pid = pid
        self._ends = ends
        self._code: int | None = None

    def wait(self, seconds: float = 60.0) -> int:
        """Wait for its end; its exit code, less than zero for a signal."""
        if isinstance(self._ends, subprocess.Popen):
            return self._ends.wait(seconds)
        if self._code is None:
            self._ends.settimeout(seconds)
            self._code = int(self._ends.recv(100))
            self._ends.close()
        return self._code

    def kill(self) -> None:
        """Kill it if it is still there, and wait for its end."""
        if isinstance(self._ends, subprocess.Popen):
            self._ends.kill()
        elif self._code is None and not select.select([self._ends], [], [], 0)[0]:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.wait()


def start(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    files: tuple[int, int, int],
    is_cold: bool = FULL,
) -> Running:
    """`python -m WORDS`, by a new interpreter if `is_cold`; its three open files are left to the caller to close."""
    if is_cold:
        command = [sys.executable, "-m", *words]
        stdin, stdout, stderr = files
        child = subprocess.Popen(command, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
        return Running(child.pid, child)
    order = json.dumps({"words": list(words), "cwd": str(cwd), "environment": dict(environment)}).encode()
    ends = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends.connect(_begun())
    socket.send_fds(ends, [order], files)
    return Running(int(ends.recv(100)), ends)


def command(script: Path | str) -> tuple[str, ...]:
    """`python SCRIPT` for others to start; for scripts that end with their standard input, whoever is killed before."""
    stub = () if FULL else ("-S", "-E", str(Path(__file__).with_name("warm_stub.py")), _begun())
    return (sys.executable, *stub, str(script))


class Ran(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    err: str


def run(words: Sequence[str], *, cwd: Path, environment: Mapping[str, str], seconds: float = 60.0) -> Ran:
    """`python -m WORDS` to its end, with nothing to read."""
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        files = (nothing.fileno(), out.fileno(), err.fileno())
        code = start(words, cwd=cwd, environment=environment, files=files).wait(seconds)
        out.seek(0)
        err.seek(0)
        return Ran(code, out.read(), err.read())


# ── the process that waits for orders ────────────────────────────────────────────────────────────


@cache
def _begun() -> str:
    """Where it listens. It ends when this process does: its standard input is closed then."""
    folder = tempfile.TemporaryDirectory(prefix="callwright-warm-")
    address = f"{folder.name}/socket"
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), folder.name)
    environment = {**os.environ, **homes, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", address],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"

    def end() -> None:
        child.communicate()
        folder.cleanup()

    atexit.register(end)
    return address


def _serve(address: str) -> None:
    _warm_up()
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(100)
    os.write(1, b"ready\n")
    while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:
        asked, _ = listener.accept()
        order, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
        if not (between := os.fork()):
            listener.close()
            _watch(asked, json.loads(order), files)
        os.waitpid(between, 0)
        asked.close()
        for file in files:
            os.close(file)


def _warm_up() -> None:
    """Load all modules, and make what the first turn makes for all that follow: patterns, templates, the tokenizer."""
    found = [each.name for each in pkgutil.walk_packages(callwright.__path__, "callwright.")]
    for module in (*found, *LATE):
        if not module.endswith(".__main__"):
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "said").open("w") as said, redirect_stdout(said):
        (Path(folder) / "script.jsonl").write_text('{"steps": [{"text": "Good day."}]}\n')
        (Path(folder) / "callwright.toml").write_text(SETTINGS.replace("script.jsonl", f"{folder}/script.jsonl"))
        assert main(["chat", "--config", f"{folder}/callwright.toml", "Hello"]) == 0
    assert threading.active_count() == 1, "only a process with one thread may fork"


def _watch(asked: socket.socket, order: dict[str, Any], files: list[int]) -> None:
    """Start it, and say how it ended."""
    if os.fork():
        os._exit(0)
    child = os.fork()
    if not child:
        asked.close()
        try:
            _be(order, files)
        finally:
            os._exit(99)
    for file in (*files, 0, 1, 2):
        os.close(file)
    with suppress(OSError):
        asked.send(str(child).encode())
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):
        asked.send(str(status).encode())
    os._exit(0)


def _be(order: dict[str, Any], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", encoding="utf-8", buffering=1)  # type: ignore[misc]
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = order["words"]
    code = 0
    try:
        if (name := order["words"][0]).endswith(".py"):
            runpy.run_path(name, run_name="__main__")
        else:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
