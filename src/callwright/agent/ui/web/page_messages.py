"""The messages between a page and the server, one JSON object in each text frame.

A page sends commands, each with a number of its own, and receives one `done` for each. It also receives the state of
the session (`state`), and all its events (`events`), each once and in order.
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
    """Run a task. A page without a session gets a new one."""

    id: int
    text: str


class ResumeCommand(msgspec.Struct, frozen=True, kw_only=True, tag="resume"):
    """Continue the task that another process left unfinished."""

    id: int


class AnswerCommand(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """The user's answer to an approval."""

    id: int
    approval: str
    reply: ApprovalReply


class StopCommand(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop the task."""

    id: int


class KeepCommand(msgspec.Struct, frozen=True, kw_only=True, tag="keep"):
    """Keep changes: all, those of a task or a file, or one hunk."""

    id: int
    path: str = ""
    hunk: str = ""
    task: int = 0


class UndoCommand(msgspec.Struct, frozen=True, kw_only=True, tag="undo"):
    """Undo changes; `force`: even if the user changed the file since."""

    id: int
    path: str = ""
    hunk: str = ""
    task: int = 0
    force: bool = False


class ReviewCommand(msgspec.Struct, frozen=True, kw_only=True, tag="review"):
    """Return the changes that are neither kept nor undone."""

    id: int


PageCommand = TaskCommand | ResumeCommand | AnswerCommand | StopCommand | KeepCommand | UndoCommand | ReviewCommand


class StateMessage(msgspec.Struct, frozen=True, kw_only=True, tag="state"):
    """The state of the session; sent first, and again when it changes."""

    session: str
    """Empty until the first task of a new session."""
    open: bool
    """Whether it is open in this process. Otherwise it is read-only, and the first command that needs it opens it."""
    busy: bool


class EventsMessage(msgspec.Struct, frozen=True, kw_only=True, tag="events"):
    """New events, from the page's position on."""

    events: Sequence[StampedEvent]
    more: bool = False
    """More events follow at once: nothing needs to be drawn yet."""


class PageCommandResult(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The result of the command with this number."""

    id: int
    problem: str = ""
    """Why nothing was done, in a sentence."""
    conflicts: tuple[str, ...] = ()
    """What was not changed, one sentence each."""
    files: tuple[FileReview, ...] | None = None
    """The answer to a `review` command."""


class ProblemMessage(msgspec.Struct, frozen=True, kw_only=True, tag="trouble"):
    """A task ended with an error that is not among the session's events."""

    text: str


ServerMessage = StateMessage | EventsMessage | PageCommandResult | ProblemMessage

_decoder: msgspec.json.Decoder[PageCommand] = msgspec.json.Decoder(PageCommand)
_encoder = msgspec.json.Encoder()


def decode_command(text: str) -> PageCommand:
    """Decode a command of a page. Raises `WireError` for anything else."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise WireError(f"invalid command: {error}") from error


def encode_message(message: ServerMessage) -> str:
    """Encode a message for a page."""
    return _encoder.encode(message).decode()
