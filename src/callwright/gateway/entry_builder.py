"""Collects the journal entry of a running turn, from the bytes of the request to the outcome.

It only takes references while the turn runs. The journal writer builds the entry later.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from callwright.backends.base import EventStream
from callwright.engine.turn_recorder import TurnRecorder
from callwright.engine.turn_report import TurnReport
from callwright.gateway.profiles import OUTPUT_MODE_HEADER, PROFILE_HEADER, PROFILES
from callwright.gateway.turn_record import TurnRecord
from callwright.model import Message
from callwright.store.journal_records import JournalEntry
from callwright.wire.base import ErrorResponse

__all__ = ["JournalEntryBuilder"]

_RECORDED_HEADERS = frozenset(
    {"user-agent", "content-type", "anthropic-version", "anthropic-beta", PROFILE_HEADER, OUTPUT_MODE_HEADER}
).union(*(profile.headers for profile in PROFILES.values()))
"""Headers that affect how a client is served. Others may contain keys."""
_MAX_BODY_BYTES = 4_000_000
"""Maximum bytes of a body. Of a longer one only the beginning is recorded."""


class JournalEntryBuilder:
    """Builds the entry of one turn. Without `keep_content` it records only what the log shows."""

    def __init__(self, headers: Mapping[str, str], *, keep_content: bool) -> None:
        self._started_at = time.time()
        self.keeps_content = keep_content
        """Whether the content is recorded, not only the fields of the log."""
        self._headers = headers
        self._body = b""
        self._reports: Sequence[TurnReport] = ()
        self._recorders: list[TurnRecorder] = []
        self.named_conversations: Mapping[str, tuple[Message, ...]] = {}
        """The stored conversations that the request refers to."""

    def set_body(self, body: bytes) -> None:
        """Take the body of the request."""
        if self.keeps_content:
            self._body = body

    def attach_recorders(self, reports: Sequence[TurnReport]) -> None:
        """Attach a recorder to each report, one per choice."""
        self._reports = reports
        for choice, report in enumerate(reports):
            report.recorder = TurnRecorder(choice, keep_content=self.keeps_content)
            self._recorders.append(report.recorder)

    def record_turns(self, turns: Sequence[EventStream]) -> list[EventStream]:
        """Wrap the turns of all choices so that their events are recorded."""
        return [recorder.record_turn(turn) for recorder, turn in zip(self._recorders, turns, strict=True)]

    @property
    def size_estimate(self) -> int:
        """Estimated size in memory. What the models receive is about as long as what the client sent."""
        return 2 * len(self._body) + sum(recorder.character_count for recorder in self._recorders)

    def build_entry(self, record: TurnRecord, problem: ErrorResponse | None) -> JournalEntry:
        """Build the entry of the finished turn. Slow for a long turn; may be called in any thread."""
        return JournalEntry(
            at=self._started_at,
            request_id=record.request_id,
            wire=record.wire,
            model=record.model,
            client=record.client,
            key=record.key,
            status=record.status,
            record=record.to_log_fields(),
            problem=problem.message if problem else "",
            headers={name: value for name, value in self._headers.items() if name in _RECORDED_HEADERS},
            client_sent=self._body[:_MAX_BODY_BYTES].decode("utf-8", "replace"),
            recalled=dict(self.named_conversations),
            asked=tuple(attempt for recorder in self._recorders for attempt in recorder.attempts),
            client_got=tuple(recorder.client_events for recorder in self._recorders),
            repairs=tuple(repair for report in self._reports for repair in report.repairs),
            cut=len(self._body) > _MAX_BODY_BYTES or any(recorder.is_truncated for recorder in self._recorders),
        )
