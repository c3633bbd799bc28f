"""Draft: a row of the journal in the making, from the bytes of a request to what became of it.

Filled while the turn runs, by reference only; the work of making a row of it is done later, by whoever writes it.
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
"""What decides how a client is served. Others may hold keys, and change nothing."""
_MAX_BODY_BYTES = 4_000_000
"""Bytes of a body; of a longer one only the beginning is kept."""


class JournalEntryBuilder:
    """One turn's. `words`: whether what was said is kept, or only what the log says."""

    def __init__(self, headers: Mapping[str, str], *, keep_content: bool) -> None:
        self._started_at = time.time()
        self._keeps_content = keep_content
        self._headers = headers
        self._body = b""
        self._reports: Sequence[TurnReport] = ()
        self._recorders: list[TurnRecorder] = []
        self.named_conversations: Mapping[str, tuple[Message, ...]] = {}
        """The conversations that the request named."""

    def set_body(self, body: bytes) -> None:
        """The request has come."""
        if self._keeps_content:
            self._body = body

    def attach_recorders(self, reports: Sequence[TurnReport]) -> None:
        """Record what these will report, one for each choice."""
        self._reports = reports
        for choice, report in enumerate(reports):
            report.recorder = TurnRecorder(choice, keep_content=self._keeps_content)
            self._recorders.append(report.recorder)

    def record_turns(self, turns: Sequence[EventStream]) -> list[EventStream]:
        """The turns of the choices, recorded on their way to the client."""
        return [tape.record_turn(turn) for tape, turn in zip(self._recorders, turns, strict=True)]

    @property
    def size_estimate(self) -> int:
        """Roughly how much memory it holds; what the models got is about as long as what the client sent."""
        return 2 * len(self._body) + sum(tape.character_count for tape in self._recorders)

    def build_entry(self, record: TurnRecord, problem: ErrorResponse | None) -> JournalEntry:
        """The row of the turn, which is over. Takes a while for a long one, and may be called in any thread."""
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
            asked=tuple(asked for tape in self._recorders for asked in tape.attempts),
            client_got=tuple(tape.client_events for tape in self._recorders),
            repairs=tuple(repair for report in self._reports for repair in report.repairs),
            cut=len(self._body) > _MAX_BODY_BYTES or any(tape.is_truncated for tape in self._recorders),
        )
