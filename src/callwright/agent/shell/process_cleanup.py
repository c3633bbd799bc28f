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

__all__ = ["MARK_VARIABLE", "end_process_group", "end_stray_processes"]

MARK_VARIABLE = "CALLWRIGHT_COMMAND"
"""The variable that every process of a command has, with a value of its own."""
_PROC_FOLDER = Path("/proc")
_MAX_ROUNDS = 5


async def end_process_group(process: asyncio.subprocess.Process, mark: str, *, grace_s: float) -> None:
    """Ask the group to end, wait a little, then end it and its strays without asking."""
    try:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace_s)
    finally:
        # Also when the waiting itself was cancelled.
        _signal_group(process.pid, signal.SIGKILL)
        end_stray_processes(mark)
    await process.wait()


def end_stray_processes(mark: str) -> None:
    """End whatever carries the mark; again, until nothing does, since one may start another meanwhile."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    for _ in range(_MAX_ROUNDS):
        strays = [pid for pid in _list_pids() if _has_variable(pid, wanted)]
        if not strays:
            return
        for pid in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _list_pids() -> list[int]:
    if not _PROC_FOLDER.is_dir():
        return []
    return [int(path.name) for path in _PROC_FOLDER.iterdir() if path.name.isdigit()]


def _has_variable(pid: int, wanted: bytes) -> bool:
    try:
        return wanted in (_PROC_FOLDER / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # gone, or somebody else's
