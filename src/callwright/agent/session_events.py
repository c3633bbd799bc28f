"""Session events: everything that happens in a session, in the order in which it happened.

They are the only thing that is stored of a session and the only thing that a face is shown, so a session that is
opened again looks as it did, and a loop that was interrupted goes on where it was. An event is stored first and shown
second. The answers to effects are events too: `Answered`, `Decided`, `Checkpointed`, `ToolEnded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from callwright.agent.policy import Tier
from callwright.agent.settings import TaskLimits
from callwright.events import FinishReason
from callwright.model import Message, ToolCall, Usage

__all__ = [
    "ApprovalRequested",
    "ApprovalSubject",
    "BranchCreated",
    "CallDecided",
    "CallProgress",
    "ChangesKept",
    "ChangesUndone",
    "CheckpointSaved",
    "Decider",
    "EventCallback",
    "FileStat",
    "FilesChanged",
    "GroupClosed",
    "GroupOpened",
    "HistoryCondensed",
    "ModelAnswered",
    "ModelCallPurpose",
    "ModelNudged",
    "SessionEvent",
    "SessionOpened",
    "SessionResumed",
    "StampedEvent",
    "StopReason",
    "TaskStarted",
    "TaskStopped",
    "TaskSummarized",
    "TextAppended",
    "ThinkingAppended",
    "ThinkingEnded",
    "ToolFinished",
    "ToolOutput",
    "ToolStarted",
    "ToolStatus",
    "TurnStarted",
    "WarningIssued",
]

ModelCallPurpose = Literal["turn", "content", "condense"]
"""Why a model is asked: to go on with the task, to write the file that a call left open, to sum up what is too long."""
StopReason = Literal["done", "unfinished", "iterations", "tokens", "time", "person", "denied", "failed"]
"""Why a task is over. `unfinished`: the model says that it is done, and what was asked for did not happen."""
ToolStatus = Literal["ok", "error", "denied", "stopped", "unknown"]
"""`unknown`: the process ended while the tool ran, and nobody can say how far it came. It is not run again."""
ApprovalSubject = Literal["command", "edit", "read", "tool", "again", "server"]
"""What a person is asked about; `again`: the same call for the third time; `server`: to start an MCP server."""

Decider = Literal["policy", "person", "remembered", "settings"]
"""Who decided; `remembered`: the person, earlier; `settings`: the person, beforehand, or because nobody is there."""


class FileStat(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a file changed."""

    path: str
    added: int
    removed: int
    state: Literal["changed", "created", "deleted"] = "changed"


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True, tag="session_opened"):
    """A session begins; always the first event."""

    session: str
    workspace: str
    model: str
    system: str
    """What the model is told before everything else."""
    sandbox: str = ""
    """How commands are confined, in a sentence."""


class SessionResumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed"):
    """The session was opened again by another process."""

    model: str


class TaskStarted(msgspec.Struct, frozen=True, kw_only=True, tag="task_given"):
    """A person wants something."""

    task: int
    """1, 2, 3 … in this session."""
    text: str
    limits: TaskLimits = TaskLimits()
    window: int = 0
    """Of the model, in tokens; 0 when nobody knows it."""


class BranchCreated(msgspec.Struct, frozen=True, kw_only=True, tag="branch_made"):
    """The task got a git branch of its own."""

    branch: str
    previous: str


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="turn_began"):
    """The model is asked; `number` counts within the task."""

    number: int
    purpose: ModelCallPurpose = "turn"


class ThinkingAppended(msgspec.Struct, frozen=True, tag="thinking"):
    """More of what the model thinks, to be appended."""

    text: str


class ThinkingEnded(msgspec.Struct, frozen=True, tag="thinking_ended"):
    """It has thought for so long."""

    seconds: float


class TextAppended(msgspec.Struct, frozen=True, tag="text"):
    """More of what the model says, to be appended."""

    text: str


class CallProgress(msgspec.Struct, frozen=True, kw_only=True, tag="call_writing"):
    """The model is writing a call, or the content of a file: so many characters by now."""

    name: str
    characters: int


class ModelAnswered(msgspec.Struct, frozen=True, kw_only=True, tag="answered"):
    """The model's whole answer. With a `problem` it is none, or only its beginning."""

    purpose: ModelCallPurpose
    message: Message
    finish: FinishReason
    usage: Usage
    seconds: float
    stopped: bool = False
    """The person stopped it."""
    problem: str = ""


class GroupOpened(msgspec.Struct, frozen=True, kw_only=True, tag="group_opened"):
    """The calls of one answer begin."""

    title: str
    calls: int


class GroupClosed(msgspec.Struct, frozen=True, tag="group_closed"):
    """They are over."""


class ApprovalRequested(msgspec.Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person must decide. Nothing goes on until `Decided` comes for the same call."""

    approval: str
    """To be named in the answer: an answer to another question is none to this one."""
    call: str
    subject: ApprovalSubject
    title: str
    why: str
    tier: Tier = "none"
    command: str = ""
    """May be edited."""
    folder: str = ""
    diff: str = ""
    remember: tuple[str, ...] = ()
    """What "always" would allow for the rest of this session; empty: it cannot be said always."""


class CallDecided(msgspec.Struct, frozen=True, kw_only=True, tag="decided"):
    """Whether a call may run, and as what."""

    call: ToolCall
    """As it may run: the person may have changed it."""
    verdict: Literal["allow", "deny", "stop"]
    by: Decider
    why: str
    words: str = ""
    """What the person wants the model to know."""
    remembered: tuple[str, ...] = ()
    digest: str = ""
    """Of the change that was approved: no other may be made."""


class CheckpointSaved(msgspec.Struct, frozen=True, kw_only=True, tag="checkpointed"):
    """The files that a call is going to write are kept as they are."""

    call: str
    paths: tuple[str, ...]
    problem: str = ""
    """Why the call cannot be carried out after all."""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_began"):
    """A call runs from here on."""

    call: str
    name: str
    view: str
    """The call in one line, for people."""
    command: str = ""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True, tag="tool_told"):
    """Output of a tool while it runs, to be appended."""

    call: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_ended"):
    """What came of a call, also of one that never ran."""

    call: str
    name: str
    view: str
    status: ToolStatus
    content: str
    """What the model is told."""
    files: tuple[FileStat, ...] = ()
    wrote: bool = False
    """Something changed, or may have."""
    seconds: float = 0.0
    exit_code: int | None = None
    diff: str = ""
    """What changed, for people; long ones are cut, and say so."""


class ModelNudged(msgspec.Struct, frozen=True, tag="nudged"):
    """What we told the model on our own account."""

    text: str


class HistoryCondensed(msgspec.Struct, frozen=True, kw_only=True, tag="condensed"):
    """Older messages were shortened, because the window was filling."""

    before: int
    after: int
    """Tokens, about."""
    max_result_chars: int = 0
    """No result is longer than so many characters; 0 for any length."""


class FilesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="files_changed"):
    """All files that the session has changed and that are neither kept nor undone."""

    files: tuple[FileStat, ...]


class ChangesKept(msgspec.Struct, frozen=True, kw_only=True, tag="kept"):
    """The person keeps changes: they can no longer be undone."""

    paths: tuple[str, ...]
    hunk: str = ""


class ChangesUndone(msgspec.Struct, frozen=True, kw_only=True, tag="undone"):
    """The person took changes back. `conflicts` are sentences about files that were left alone."""

    paths: tuple[str, ...]
    hunk: str = ""
    conflicts: tuple[str, ...] = ()


class WarningIssued(msgspec.Struct, frozen=True, tag="warned"):
    """Something that a person should know."""

    text: str


class TaskStopped(msgspec.Struct, frozen=True, kw_only=True, tag="stopped"):
    """The task is over."""

    task: int
    reason: StopReason
    text: str
    """The reason in a sentence."""


class TaskSummarized(msgspec.Struct, frozen=True, kw_only=True, tag="summarised"):
    """What the task came to; the last event of a task."""

    task: int
    text: str
    """What the model said last."""
    done: tuple[str, ...]
    """Calls that worked, in a line each."""
    failed: tuple[str, ...]
    denied: tuple[str, ...]
    files: tuple[FileStat, ...]
    turns: int
    tokens: int
    seconds: float


SessionEvent = (
    SessionOpened
    | SessionResumed
    | TaskStarted
    | BranchCreated
    | TurnStarted
    | ThinkingAppended
    | ThinkingEnded
    | TextAppended
    | CallProgress
    | ModelAnswered
    | GroupOpened
    | GroupClosed
    | ApprovalRequested
    | CallDecided
    | CheckpointSaved
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | ModelNudged
    | HistoryCondensed
    | FilesChanged
    | ChangesKept
    | ChangesUndone
    | WarningIssued
    | TaskStopped
    | TaskSummarized
)


class StampedEvent(msgspec.Struct, frozen=True):
    """An event in its place: `seq` counts 1, 2, 3 … without a gap."""

    seq: int
    at: float
    """Seconds since 1970."""
    event: SessionEvent


EventCallback = Callable[[StampedEvent], None]
"""Called with every event, in order, once it is stored. Must return at once."""
