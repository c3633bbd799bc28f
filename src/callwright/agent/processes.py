"""The end of a command: everything that it started ends with it.

A command is the leader of a process group. What leaves the group (`setsid`, daemons) is known by a mark in its
environment, where the system shows that (`/proc`). A process that also empties its environment is out of reach; in a
sandbox there is no such way out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["MARK", "end", "end_strays"]

MARK = "CALLWRIGHT_COMMAND"
"""The variable that every process of a command has, with a value of its own."""
_PROCESSES = Path("/proc")
_ROUNDS = 5


async def end(process: asyncio.subprocess.Process, mark: str, *, grace_s: float) -> None:
    """Ask the group to end, wait a little, then end it and its strays without asking."""
    try:
        if process.returncode is None:
            _signal(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace_s)
    finally:
        # Also when the waiting itself was cancelled.
        _signal(process.pid, signal.SIGKILL)
        end_strays(mark)
    await process.wait()


def end_strays(mark: str) -> None:
    """End whatever carries the mark; again, until nothing does, since one may start another meanwhile."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        strays = [pid for pid in _pids() if _has(pid, wanted)]
        if not strays:
            return
        for pid in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _pids() -> list[int]:
    if not _PROCESSES.is_dir():
        return []
    return [int(path.name) for path in _PROCESSES.iterdir() if path.name.isdigit()]


def _has(pid: int, wanted: bytes) -> bool:
    try:
        return wanted in (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # gone, or somebody else's
