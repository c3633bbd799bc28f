"""Runs a task without a user: approvals are denied, and the exit code tells how it ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import TextIO

from callwright.agent.session_api import UNATTENDED_REPLY, SessionHandle
from callwright.agent.session_events import ApprovalRequested, StampedEvent, StopReason, TaskStopped
from callwright.agent.ui.event_feed import find_opening_index, follow_events
from callwright.errors import MisuseError

__all__ = ["EXIT_CODES", "run_unattended"]

EXIT_CODES: dict[StopReason, int] = {
    "done": 0,
    "failed": 1,
    "unfinished": 1,
    "denied": 3,
    "iterations": 4,
    "tokens": 4,
    "time": 4,
    "person": 130,
}
"""2 is the command line's exit code for wrong usage."""


async def run_unattended(
    session: SessionHandle,
    task: str,
    write: Callable[[Sequence[StampedEvent]], None],
    *,
    out: TextIO,
    resume: bool = False,
    deny: bool = True,
) -> int:
    """Continue the unfinished task if requested, then run the task, and pass every event to `write` in order.

    `write` may block: it runs in a thread. If the reader closes its end, the task is stopped. Without `deny`, approvals
    wait until they are answered elsewhere.
    """
    work = asyncio.ensure_future(_run_task(session, task, resume=resume))
    try:
        async with aclosing(follow_events(session, work, find_opening_index(session))) as following:
            with _stop_on_signals(session):
                async for events in following:
                    await asyncio.to_thread(write, events)
                    for stamped in events:
                        if deny and isinstance(stamped.event, ApprovalRequested):
                            session.answer_approval(stamped.event.approval, UNATTENDED_REPLY)
        stopped = await work
    except BrokenPipeError:
        session.stop()
        _discard_output(out)
        return EXIT_CODES["person"]
    finally:
        await session.close()
        work.cancel()
    if stopped is None:
        raise MisuseError("there is no unfinished task to resume; pass a task")
    return EXIT_CODES[stopped.reason]


async def _run_task(session: SessionHandle, task: str, *, resume: bool) -> TaskStopped | None:
    stopped = await session.resume() if resume else None
    return await session.run(task) if task else stopped


@contextmanager
def _stop_on_signals(session: SessionHandle) -> Iterator[None]:
    """Stop the task on SIGINT and SIGTERM, but still report its end."""
    loop = asyncio.get_running_loop()
    caught: list[signal.Signals] = []
    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, and loops outside the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, session.stop)
            caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _discard_output(out: TextIO) -> None:
    """Redirect the rest of the output to /dev/null, so that Python does not report the broken pipe at exit."""
    with suppress(OSError, ValueError):  # a stream without a descriptor needs no redirection
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)
