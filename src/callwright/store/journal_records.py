"""Journal entries as values: one turn, each attempt in it, and a query for entries.

A `JournalEntry` contains everything that a turn depended on and everything that resulted, so that it can be replayed:
the body that the client sent, what each backend received and sent, and the events that the client received.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.errors import BackendErrorKind
from callwright.events import Event
from callwright.model import Message, Repair, Request

__all__ = ["JournalEntry", "JournalQuery", "RecordedAttempt", "RecordedFailure", "remove_content"]


class RecordedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a backend: the fields of its `BackendError`."""

    message: str = ""
    kind: BackendErrorKind = "protocol"
    retryable: bool = False
    status: int = 0
    retry_after: float | None = None
    salvage: str = ""
    code: str = ""


class RecordedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model."""

    choice: int = 0
    """The number of the choice, for a request with several."""
    backend: str = ""
    kind: str = ""
    wire: str = ""
    flavour: str | None = None
    """The constraint format that the backend supported."""
    strategy: str = ""
    """How the tools were given to the model …"""
    strategy_reason: str = ""
    """… and the reason for it."""
    request: Request | None = None
    extra: dict[str, Any] = {}
    """Extra fields sent to the backend, when the client uses the same wire."""
    events: tuple[Event, ...] = ()
    """The backend's events before any processing; adjacent deltas are joined."""
    failure: RecordedFailure | None = None
    retry_reason: str = ""
    """Why this retry was sent; empty for the first attempt."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int = 0
    """Its number in the journal, which the journal assigns."""
    at: float
    """The time of the request, in seconds since 1970."""
    request_id: str
    """The client's id or ours. A client may use an id more than once."""
    wire: str
    model: str
    """The model's name in the configuration."""
    client: str = ""
    """The profile of the client."""
    key: str = ""
    """The name of the key, never the secret."""
    status: int = 200
    record: dict[str, Any] = {}
    """The outcome of the turn: the fields of its log line."""
    problem: str = ""
    """The error message that the client received."""
    headers: dict[str, str] = {}
    """Headers that identify the client, none that may contain a key."""
    client_sent: str = ""
    """The body of the request, unchanged except for masked secrets."""
    recalled: dict[str, tuple[Message, ...]] = {}
    """Earlier conversations that the request refers to, by name."""
    asked: tuple[RecordedAttempt, ...] = ()
    client_got: tuple[tuple[Event, ...], ...] = ()
    """The events of each choice; adjacent deltas are joined."""
    repairs: tuple[Repair, ...] = ()
    cut: bool = False
    """A part was too long to be stored, so the turn cannot be replayed."""


def remove_content(entry: JournalEntry) -> JournalEntry:
    """Remove all content, so that the entry contains no more than the log."""
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
                attempt,
                request=None,
                extra={},
                events=(),
                failure=attempt.failure and RecordedFailure(kind=attempt.failure.kind, status=attempt.failure.status),
            )
            for attempt in entry.asked
        ),
    )


class JournalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects entries, newest first. Fields that are not set are ignored."""

    number: int | None = None
    request_id: str = ""
    since: float | None = None
    until: float | None = None
    """Exclusive."""
    model: str = ""
    failed: bool = False
    """Only failed turns."""
    text: str = ""
    """Text in the content, ignoring case, in JSON spelling."""
    before: int | None = None
    """Only smaller entry numbers: the next page."""
    limit: Annotated[int, msgspec.Meta(ge=1)] = 100
