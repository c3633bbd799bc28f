"""The rows of the journal as values: one turn, each time that a model was asked in it, and which rows are wanted.

An `Entry` holds all that a turn depended on and all that it came to, so that it can be run again: the body that the
client sent, what each backend was told and said, and the events that went to the client.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.errors import BackendErrorKind
from callwright.events import Event
from callwright.model import Message, Repair, Request

__all__ = ["JournalEntry", "JournalQuery", "RecordedAttempt", "RecordedFailure", "remove_content"]


class RecordedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """How a backend failed: what its `BackendError` said."""

    message: str = ""
    kind: BackendErrorKind = "protocol"
    retryable: bool = False
    status: int = 0
    retry_after: float | None = None
    salvage: str = ""
    code: str = ""


class RecordedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a model was asked."""

    choice: int = 0
    """Of a request that wants several, the one that this is for."""
    backend: str = ""
    kind: str = ""
    wire: str = ""
    flavour: str | None = None
    """How the backend could be told to hold an answer to a form."""
    strategy: str = ""
    """How the model got its tools …"""
    strategy_reason: str = ""
    """… and the reason for it."""
    request: Request | None = None
    extra: dict[str, Any] = {}
    """What the backend was sent beside the request: fields of a wire that the client speaks too."""
    events: tuple[Event, ...] = ()
    """As the backend sent it, before anything was read; neighbouring deltas are joined."""
    failure: RecordedFailure | None = None
    retry_reason: str = ""
    """Why it was asked once more, where it was."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int = 0
    """Its place in the journal, which gives it."""
    at: float
    """When the request came, in seconds since 1970."""
    request_id: str
    """The client's or ours; a client may use one more than once."""
    wire: str
    model: str
    """As the configuration names it."""
    client: str = ""
    """The profile."""
    key: str = ""
    """The name of the key, never the key."""
    status: int = 200
    record: dict[str, Any] = {}
    """What became of the turn: the same that its line in the log says."""
    problem: str = ""
    """What the client was told when it failed."""
    headers: dict[str, str] = {}
    """Those that tell what client it was; never one that may hold a key."""
    client_sent: str = ""
    """The body, byte for byte unless something in it had to be masked."""
    recalled: dict[str, tuple[Message, ...]] = {}
    """Earlier conversations that the request only named, by the name."""
    asked: tuple[RecordedAttempt, ...] = ()
    client_got: tuple[tuple[Event, ...], ...] = ()
    """The events of each choice; neighbouring deltas are joined."""
    repairs: tuple[Repair, ...] = ()
    cut: bool = False
    """Something was too long to be kept whole, so the turn cannot be run again."""


def remove_content(entry: JournalEntry) -> JournalEntry:
    """The same without anybody's words: no more than the log says."""
    return msgspec.structs.replace(
        entry,
        problem="",
        headers={},
        client_sent="",
        recalled={},
        client_got=(),
        repairs=tuple(Repair(repair.kind) for repair in entry.repairs),
        asked=tuple(
            msgspec.structs.replace(
                asked,
                request=None,
                extra={},
                events=(),
                failure=asked.failure and RecordedFailure(kind=asked.failure.kind, status=asked.failure.status),
            )
            for asked in entry.asked
        ),
    )


class JournalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows, newest first. What is left out does not matter."""

    number: int | None = None
    request_id: str = ""
    since: float | None = None
    until: float | None = None
    """Not including this moment."""
    model: str = ""
    failed: bool = False
    """Only turns that failed."""
    text: str = ""
    """Somewhere in what was said, in capitals or not, as JSON spells it."""
    before: int | None = None
    """Only rows with smaller numbers: the next page."""
    limit: Annotated[int, msgspec.Meta(ge=1)] = 100
