"""Starts a command so that it can be ended together with everything that it started.

A command is the leader of a process group. Processes that leave the group (`setsid`, daemons) are found by a marker in
their environment, where the system exposes it (`/proc`). A process that also clears its environment cannot be found; a
sandbox leaves no such escape.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["end_process_group", "end_stray_processes", "start_process_group"]

_MARK_VARIABLE = "CALLWRIGHT_COMMAND"
"""The variable with a unique value that every process of a command has."""
_PROC_FOLDER = Path("/proc")
_MAX_ROUNDS = 5


async def start_process_group(
    argv: Sequence[str], mark: str, *, env: Mapping[str, str], **options: Any
) -> asyncio.subprocess.Process:
    """Start a command as the leader of a process group, with the marker in its environment.

    A command that has started by the time the caller is cancelled is ended with its group; asyncio would end the leader
    only. Raises `OSError` when it cannot be started.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, env={**env, _MARK_VARIABLE: mark}, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await end_process_group(starting.result(), mark, grace_s=0)
        raise


async def end_process_group(process: asyncio.subprocess.Process, mark: str, *, grace_s: float) -> None:
    """Send SIGTERM to the group, wait for a grace period, then kill it and its stray processes."""
    try:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace_s)
    finally:
        # Also if the wait itself was cancelled.
        _signal_group(process.pid, signal.SIGKILL)
        end_stray_processes(mark)
    await process.wait()


def end_stray_processes(mark: str) -> None:
    """Kill all processes with the marker; repeat until there are none, since one may start another meanwhile."""
    marker = f"{_MARK_VARIABLE}={mark}".encode()
    for _ in range(_MAX_ROUNDS):
        strays = [pid for pid in _list_pids() if _has_variable(pid, marker)]
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


def _has_variable(pid: int, marker: bytes) -> bool:
    try:
        return marker in (_PROC_FOLDER / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # ended, or owned by another user
