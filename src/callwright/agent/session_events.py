"""Session events: everything that happens in a session, in order.

Only events are stored of a session, and user interfaces show only events; so a reopened session looks as it did, and an
interrupted loop continues where it was. An event is stored first and then shown. The answers to effects are events too:
`ModelAnswered`, `CallDecided`, `CheckpointSaved`, `ToolFinished`.
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
"""Why the model is called: for the next step of the task, to write the file that a call left open, or to summarize a
conversation that is too long.
"""
StopReason = Literal["done", "unfinished", "iterations", "tokens", "time", "person", "denied", "failed"]
"""Why a task ended. `unfinished`: the model reports that it is done, but the requested change did not happen."""
ToolStatus = Literal["ok", "error", "denied", "stopped", "unknown"]
"""`unknown`: the process ended while the tool ran, so its outcome is unknown. It is not run again."""
ApprovalSubject = Literal["command", "edit", "read", "tool", "again", "server"]
"""What needs approval; `again`: the same call for the third time; `server`: starting an MCP server."""

Decider = Literal["policy", "person", "remembered", "settings"]
"""Who decided; `remembered`: the user, earlier; `settings`: the settings, or the lack of a user."""


class FileStat(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a file changed."""

    path: str
    added: int
    removed: int
    state: Literal["changed", "created", "deleted"] = "changed"


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True, tag="session_opened"):
    """A session starts; always the first event."""

    session: str
    workspace: str
    model: str
    system: str
    """The system prompt."""
    sandbox: str = ""
    """How commands are confined, in a sentence."""


class SessionResumed(msgspec.Struct, frozen=True, kw_only=True, tag="session_resumed"):
    """Another process reopened the session."""

    model: str


class TaskStarted(msgspec.Struct, frozen=True, kw_only=True, tag="task_started"):
    """The user starts a task."""

    task: int
    """1, 2, 3 … in this session."""
    text: str
    limits: TaskLimits = TaskLimits()
    window: int = 0
    """The model's context window in tokens; 0 if unknown."""


class BranchCreated(msgspec.Struct, frozen=True, kw_only=True, tag="branch_created"):
    """A git branch was created for the task."""

    branch: str
    previous: str


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="turn_started"):
    """The model is called; `number` counts within the task."""

    number: int
    purpose: ModelCallPurpose = "turn"


class ThinkingAppended(msgspec.Struct, frozen=True, tag="thinking"):
    """More of the model's thinking, to be appended."""

    text: str


class ThinkingEnded(msgspec.Struct, frozen=True, tag="thinking_ended"):
    """How long the model thought."""

    seconds: float


class TextAppended(msgspec.Struct, frozen=True, tag="text"):
    """More of the model's text, to be appended."""

    text: str


class CallProgress(msgspec.Struct, frozen=True, kw_only=True, tag="call_progress"):
    """The number of characters that the model has written so far of a call or of a file's content."""

    name: str
    characters: int


class ModelAnswered(msgspec.Struct, frozen=True, kw_only=True, tag="model_answered"):
    """The model's whole answer. With a `problem` it is missing or incomplete."""

    purpose: ModelCallPurpose
    message: Message
    finish: FinishReason
    usage: Usage
    seconds: float
    stopped: bool = False
    """Whether the user stopped it."""
    problem: str = ""


class GroupOpened(msgspec.Struct, frozen=True, kw_only=True, tag="group_opened"):
    """The calls of one answer start."""

    title: str
    calls: int


class GroupClosed(msgspec.Struct, frozen=True, tag="group_closed"):
    """The calls of one answer are finished."""


class ApprovalRequested(msgspec.Struct, frozen=True, kw_only=True, tag="approval_requested"):
    """An approval is needed. Nothing happens until `CallDecided` for the same call."""

    approval: str
    """Must be repeated in the answer, so that an answer never applies to another approval."""
    call: str
    subject: ApprovalSubject
    title: str
    why: str
    tier: Tier = "none"
    command: str = ""
    """The user may edit it."""
    folder: str = ""
    diff: str = ""
    remember: tuple[str, ...] = ()
    """What "always" would allow for the rest of this session; empty if "always" is not possible."""


class CallDecided(msgspec.Struct, frozen=True, kw_only=True, tag="call_decided"):
    """Whether a call may run, and in which form."""

    call: ToolCall
    """The call as it may run: the user may have changed it."""
    verdict: Literal["allow", "deny", "stop"]
    by: Decider
    why: str
    words: str = ""
    """A note of the user for the model."""
    remembered: tuple[str, ...] = ()
    digest: str = ""
    """The hash of the approved change: no other change may be written."""


class CheckpointSaved(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoint_saved"):
    """The contents of the files that a call will write are stored."""

    call: str
    paths: tuple[str, ...]
    problem: str = ""
    """Why the call cannot be carried out."""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_started"):
    """A call starts to run."""

    call: str
    name: str
    view: str
    """The call in one line, for the user."""
    command: str = ""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True, tag="tool_output"):
    """Output of a running tool, to be appended."""

    call: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """The result of a call, also of one that never ran."""

    call: str
    name: str
    view: str
    status: ToolStatus
    content: str
    """The result for the model."""
    files: tuple[FileStat, ...] = ()
    wrote: bool = False
    """Whether something changed, or may have changed."""
    seconds: float = 0.0
    exit_code: int | None = None
    diff: str = ""
    """The changes, for the user; a long diff is truncated and marked as such."""


class ModelNudged(msgspec.Struct, frozen=True, tag="model_nudged"):
    """A message that the loop itself sent to the model."""

    text: str


class HistoryCondensed(msgspec.Struct, frozen=True, kw_only=True, tag="history_condensed"):
    """Older messages were shortened because the context window was filling up."""

    before: int
    after: int
    """Approximate tokens."""
    max_result_chars: int = 0
    """The maximum length of a result in characters; 0 for no limit."""


class FilesChanged(msgspec.Struct, frozen=True, kw_only=True, tag="files_changed"):
    """All files that the session has changed and that are neither kept nor undone."""

    files: tuple[FileStat, ...]


class ChangesKept(msgspec.Struct, frozen=True, kw_only=True, tag="changes_kept"):
    """The user kept changes: they can no longer be undone."""

    paths: tuple[str, ...]
    hunk: str = ""


class ChangesUndone(msgspec.Struct, frozen=True, kw_only=True, tag="changes_undone"):
    """The user undid changes. `conflicts` are sentences about files that were not changed."""

    paths: tuple[str, ...]
    hunk: str = ""
    conflicts: tuple[str, ...] = ()


class WarningIssued(msgspec.Struct, frozen=True, tag="warning_issued"):
    """Something that the user should know."""

    text: str


class TaskStopped(msgspec.Struct, frozen=True, kw_only=True, tag="task_stopped"):
    """The task has ended."""

    task: int
    reason: StopReason
    text: str
    """The reason in a sentence."""


class TaskSummarized(msgspec.Struct, frozen=True, kw_only=True, tag="task_summarized"):
    """The result of the task; the last event of a task."""

    task: int
    text: str
    """The model's last text."""
    done: tuple[str, ...]
    """Successful calls, one line each."""
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
    """An event with its position: `seq` counts 1, 2, 3 … without gaps."""

    seq: int
    at: float
    """Seconds since 1970."""
    event: SessionEvent


EventCallback = Callable[[StampedEvent], None]
"""Called with every event, in order, after it is stored. Must return immediately."""
