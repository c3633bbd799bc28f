"""Reports a task as plain text: progress on one stream, the answer on another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console

from callwright.agent.session_api import SessionHandle
from callwright.agent.session_events import StampedEvent, TaskSummarized, TextAppended, ThinkingAppended, ThinkingEnded
from callwright.agent.ui.console.session_transcript import SessionTranscript
from callwright.agent.ui.unattended import run_unattended

__all__ = ["run_plain_text"]


async def run_plain_text(
    session: SessionHandle, task: str, *, out: TextIO, err: TextIO, resume: bool = False, deny: bool = True
) -> int:
    """Run a task; progress goes to `err`, the model's final text to `out`."""
    console = Console(file=err, highlight=False)
    transcript = SessionTranscript()

    def write(events: Sequence[StampedEvent]) -> None:
        for stamped in events:
            # Intermediate text of the model is skipped: its end is the answer, which would appear twice.
            if not isinstance(stamped.event, TextAppended | ThinkingAppended | ThinkingEnded):
                for piece in transcript.feed(stamped):
                    console.print(piece)
            if isinstance(stamped.event, TaskSummarized) and stamped.event.text:
                out.write(stamped.event.text.rstrip("\n") + "\n")
                out.flush()

    return await run_unattended(session, task, write, out=out, resume=resume, deny=deny)
