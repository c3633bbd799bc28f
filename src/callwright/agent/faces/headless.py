"""The headless face: a task for scripts, with nobody there to ask.

As NDJSON every event is a line, as it is stored, written in order and at once. As text the progress goes to one stream
and the answer to another. Approvals are denied, with a reason that the model is told. The exit code says how it ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

import msgspec
from rich.console import Console

from callwright.agent.events import (
    ApprovalAsked,
    Stamped,
    StopReason,
    Summarised,
    TextShown,
    ThinkingEnded,
    ThinkingShown,
)
from callwright.agent.faces.base import Reply, SessionFace
from callwright.agent.faces.following import follow, opening
from callwright.agent.faces.terminal.transcript import Transcript
from callwright.errors import MisuseError

__all__ = ["EXIT_CODES", "headless", "plain"]

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
"""2 is what the command line says to a mistake of the person who called it."""
_NOBODY = "nobody is there to ask: this is a headless run. Go on without it, or say what is needed"


async def headless(session: SessionFace, task: str, *, out: TextIO, deny: bool = True) -> int:
    """Work on a task and write its events as NDJSON. An empty task goes on with the one that was left.

    Without `deny` approvals wait until somebody answers them elsewhere.
    """
    encoder = msgspec.json.Encoder()

    def write(events: Sequence[Stamped]) -> None:
        for event in events:
            out.write(encoder.encode(event).decode() + "\n")
            out.flush()

    return await _work(session, task, write, out, deny=deny)


async def plain(session: SessionFace, task: str, *, out: TextIO, err: TextIO, deny: bool = True) -> int:
    """The same for a person's eyes: what happens on `err`, what the model says at the end on `out`."""
    console = Console(file=err, highlight=False)
    transcript = Transcript()

    def write(events: Sequence[Stamped]) -> None:
        for stamped in events:
            # What is said on the way is left out: its end is the answer, and would be there twice.
            if not isinstance(stamped.event, TextShown | ThinkingShown | ThinkingEnded):
                for piece in transcript.feed(stamped):
                    console.print(piece)
            if isinstance(stamped.event, Summarised) and stamped.event.text:
                out.write(stamped.event.text.rstrip("\n") + "\n")
                out.flush()

    return await _work(session, task, write, out, deny=deny)


async def _work(
    session: SessionFace, task: str, write: Callable[[Sequence[Stamped]], None], out: TextIO, *, deny: bool
) -> int:
    start = opening(session)
    work = asyncio.ensure_future(session.run(task) if task else session.resume())
    try:
        with _interrupts(session):
            async for events in follow(session, work, start):
                await asyncio.to_thread(write, events)  # a slow reader holds up nobody but himself
                for stamped in events:
                    if deny and isinstance(stamped.event, ApprovalAsked):
                        session.answer(stamped.event.approval, Reply(verdict="deny", words=_NOBODY))
            stopped = await work
    except BrokenPipeError:
        session.stop()
        await work
        _silence(out)
        return EXIT_CODES["person"]
    finally:
        work.cancel()
    if stopped is None:
        raise MisuseError("there is no task to go on with; say what to do")
    return EXIT_CODES[stopped.reason]


@contextmanager
def _interrupts(session: SessionFace) -> Iterator[None]:
    """Ctrl-C, and a kill that can be caught, stop the work and not the telling of it."""
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


def _silence(out: TextIO) -> None:
    """Let Python flush what is left to nowhere when it ends, instead of complaining about the pipe."""
    with suppress(OSError, ValueError):  # a stream without a descriptor has nobody to complain to
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)
