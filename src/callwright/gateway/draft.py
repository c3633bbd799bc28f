"""Draft: a row of the journal in the making, from the bytes of a request to what became of it.

Filled while the turn runs, by reference only; the work of making a row of it is done later, by whoever writes it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from callwright.backends.base import EventStream
from callwright.engine.report import TurnReport
from callwright.engine.tape import Tape
from callwright.gateway.profiles import OUTPUT_MODE_HEADER, PROFILE_HEADER, PROFILES
from callwright.gateway.record import TurnRecord
from callwright.model import Message
from callwright.store.journal_records import JournalEntry
from callwright.wire.base import ErrorResponse

__all__ = ["Draft"]

_HEADERS = frozenset(
    {"user-agent", "content-type", "anthropic-version", "anthropic-beta", PROFILE_HEADER, OUTPUT_MODE_HEADER}
).union(*(profile.headers for profile in PROFILES.values()))
"""What decides how a client is served. Others may hold keys, and change nothing."""
_MOST = 4_000_000
"""Bytes of a body; of a longer one only the beginning is kept."""


class Draft:
    """One turn's. `words`: whether what was said is kept, or only what the log says."""

    def __init__(self, headers: Mapping[str, str], *, words: bool) -> None:
        self._at = time.time()
        self._words = words
        self._headers = headers
        self._body = b""
        self._reports: Sequence[TurnReport] = ()
        self._tapes: list[Tape] = []
        self.recalled: Mapping[str, tuple[Message, ...]] = {}
        """The conversations that the request named."""

    def read(self, body: bytes) -> None:
        """The request has come."""
        if self._words:
            self._body = body

    def follow(self, reports: Sequence[TurnReport]) -> None:
        """Record what these will report, one for each choice."""
        self._reports = reports
        for choice, report in enumerate(reports):
            report.tape = Tape(choice, words=self._words)
            self._tapes.append(report.tape)

    def sent(self, turns: Sequence[EventStream]) -> list[EventStream]:
        """The turns of the choices, recorded on their way to the client."""
        return [tape.sent(turn) for tape, turn in zip(self._tapes, turns, strict=True)]

    @property
    def size(self) -> int:
        """Roughly how much memory it holds; what the models got is about as long as what the client sent."""
        return 2 * len(self._body) + sum(tape.size for tape in self._tapes)

    def entry(self, record: TurnRecord, problem: ErrorResponse | None) -> JournalEntry:
        """The row of the turn, which is over. Takes a while for a long one, and may be called in any thread."""
        return JournalEntry(
            at=self._at,
            request_id=record.request_id,
            wire=record.wire,
            model=record.model,
            client=record.client,
            key=record.key,
            status=record.status,
            record=record.fields(),
            problem=problem.message if problem else "",
            headers={name: value for name, value in self._headers.items() if name in _HEADERS},
            client_sent=self._body[:_MOST].decode("utf-8", "replace"),
            recalled=dict(self.recalled),
            asked=tuple(asked for tape in self._tapes for asked in tape.asked),
            client_got=tuple(tape.got for tape in self._tapes),
            repairs=tuple(repair for report in self._reports for repair in report.repairs),
            cut=len(self._body) > _MOST or any(tape.cut for tape in self._tapes),
        )
