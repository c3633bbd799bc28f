"""What a page and the server say to each other, one JSON object in each text frame.

A page says commands, each with a number of its own choosing, and gets one `Done` for each. Besides these it is told
what the session is (`State`), and everything that happens in it (`Events`), each event once and in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callwright.agent.session_api import ApprovalReply, FileReview
from callwright.agent.session_events import StampedEvent
from callwright.errors import WireError

__all__ = [
    "AnswerCommand",
    "EventsMessage",
    "KeepCommand",
    "PageCommand",
    "PageCommandResult",
    "ProblemMessage",
    "ResumeCommand",
    "ReviewCommand",
    "ServerMessage",
    "StateMessage",
    "StopCommand",
    "TaskCommand",
    "UndoCommand",
    "decode_command",
    "encode_message",
]


class TaskCommand(msgspec.Struct, frozen=True, kw_only=True, tag="task"):
    """Work on this. A page that has no session yet gets a new one."""

    id: int
    text: str


class ResumeCommand(msgspec.Struct, frozen=True, kw_only=True, tag="resume"):
    """Go on with the task that another process left."""

    id: int


class AnswerCommand(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A person's answer to an approval."""

    id: int
    approval: str
    reply: ApprovalReply


class StopCommand(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop the work."""

    id: int


class KeepCommand(msgspec.Struct, frozen=True, kw_only=True, tag="keep"):
    """Keep changes: all, of a task, of a file, or a hunk of it."""

    id: int
    path: str = ""
    hunk: str = ""
    task: int = 0


class UndoCommand(msgspec.Struct, frozen=True, kw_only=True, tag="undo"):
    """Take changes back; `force`: also where the person changed the file since."""

    id: int
    path: str = ""
    hunk: str = ""
    task: int = 0
    force: bool = False


class ReviewCommand(msgspec.Struct, frozen=True, kw_only=True, tag="review"):
    """Show the changes that are neither kept nor undone."""

    id: int


PageCommand = TaskCommand | ResumeCommand | AnswerCommand | StopCommand | KeepCommand | UndoCommand | ReviewCommand


class StateMessage(msgspec.Struct, frozen=True, kw_only=True, tag="state"):
    """What the session is now; said first, and again when it changes."""

    session: str
    """Empty until the first task of a new one."""
    open: bool
    """Here, for work. One that is not is only looked at, and opened by the first command that needs it."""
    busy: bool


class EventsMessage(msgspec.Struct, frozen=True, kw_only=True, tag="events"):
    """What happened, from where the page was."""

    events: Sequence[StampedEvent]
    more: bool = False
    """There are more on their way: nothing needs to be drawn yet."""


class PageCommandResult(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """What came of the command of this number."""

    id: int
    problem: str = ""
    """Why nothing was done, in a sentence."""
    conflicts: tuple[str, ...] = ()
    """What was left alone, a sentence each."""
    files: tuple[FileReview, ...] | None = None
    """The answer to `Review`."""


class ProblemMessage(msgspec.Struct, frozen=True, kw_only=True, tag="trouble"):
    """Work ended in a way that the session could not say itself."""

    text: str


ServerMessage = StateMessage | EventsMessage | PageCommandResult | ProblemMessage

_decoder: msgspec.json.Decoder[PageCommand] = msgspec.json.Decoder(PageCommand)
_encoder = msgspec.json.Encoder()


def decode_command(text: str) -> PageCommand:
    """What a page says. `WireError` when it is none of it."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise WireError(f"not a command of the page: {error}") from error


def encode_message(message: ServerMessage) -> str:
    """What a page is told."""
    return _encoder.encode(message).decode()
