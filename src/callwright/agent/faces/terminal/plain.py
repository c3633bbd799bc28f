"""A task told in words to whoever reads along: progress on one stream, the answer on another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from callwright.agent.faces.base import SessionFace
from callwright.agent.faces.terminal.transcript import Transcript
from callwright.agent.faces.unattended import work_alone
from callwright.agent.session_events import StampedEvent, TaskSummarized, TextAppended, ThinkingAppended, ThinkingEnded

__all__ = ["plain"]


async def plain(
    session: SessionFace, task: str, *, out: TextIO, err: TextIO, resume: bool = False, deny: bool = True
) -> int:
    """Work on a task; what happens goes to `err`, what the model says at the end to `out`."""
    console = Console(file=err, highlight=False)
    transcript = Transcript()

    def write(events: Sequence[StampedEvent]) -> None:
        for stamped in events:
            # What is said on the way is left out: its end is the answer, and would be there twice.
            if not isinstance(stamped.event, TextAppended | ThinkingAppended | ThinkingEnded):
                for piece in transcript.feed(stamped):
                    console.print(piece)
            if isinstance(stamped.event, TaskSummarized) and stamped.event.text:
                out.write(stamped.event.text.rstrip("\n") + "\n")
                out.flush()

    return await work_alone(session, task, write, out=out, resume=resume, deny=deny)
