"""The headless interface: runs a task for scripts. With JSON lines, every event is a line exactly as it is stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

import msgspec

from callwright.agent.session_api import SessionHandle
from callwright.agent.session_events import StampedEvent
from callwright.agent.ui.console.plain_text import run_plain_text
from callwright.agent.ui.unattended import run_unattended

__all__ = ["run_headless"]


async def run_headless(
    session: SessionHandle,
    task: str,
    *,
    json: bool = True,
    resume: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
    deny: bool = True,
) -> int:
    """Run a task without a user, and close the session; returns the exit code.

    `resume` continues the unfinished task first; an empty task then adds nothing. Events are written from where this
    process opened the session.
    """
    out = out or sys.stdout
    if not json:
        return await run_plain_text(session, task, out=out, err=err or sys.stderr, resume=resume, deny=deny)
    encoder = msgspec.json.Encoder()

    def write(events: Sequence[StampedEvent]) -> None:
        for event in events:
            out.write(encoder.encode(event).decode() + "\n")
            out.flush()

    return await run_unattended(session, task, write, out=out, resume=resume, deny=deny)
