"""Limits on calls, as a stage: which calls count, how many, and what may follow them.

Everything that is dropped is recorded: a forbidden call becomes `Malformed`, dropped text after a call becomes a
repair. When a limit ends the turn, `is_done` is set, and the caller stops the model's generation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Repair

__all__ = ["CallLimiter", "CallLimits"]


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one turn."""

    allowed_tools: Collection[str] | None = None
    """The tools that may be called; None for any."""
    max_calls: int = 0
    """How many calls a turn may have; 0 for any number."""
    stop_rule: str = ""
    """When calls end the turn: after the `first`, after a `burst` of them, or only at the model's own end."""
    drop_tail: bool = False
    drop_repeats: bool = False


class CallLimiter:
    """Keeps the events of one turn within its limits."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self.is_done = False
        """Whether the turn is over, whatever the model still writes."""
        self.is_truncated = False
        """Whether calls were dropped because there were too many."""
        self.call_count = 0
        """How many calls were passed on so far."""
        self._open_call: list[CallStart | CallDelta] = []
        """The open call: all of its events while it may still be dropped, otherwise only its start."""
        self._verdict = ""
        self._seen_calls: set[tuple[str, str]] = set()
        self._repairs: dict[str, str] = {}

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are passed on."""
        out: list[Event] = []
        for event in events:
            match event:
                case Finish():
                    out.append(self._adjust_finish(event))
                case UsageSeen():
                    out.append(event)
                case CallStart() | CallDelta() | CallEnd():
                    out += self._process_call_event(event)
                case TextDelta() | ReasoningDelta() if self.call_count:
                    out += self._filter_tail(event)
                case ReasoningSealed() if self.is_done:
                    pass  # the reasoning that it seals was dropped
                case _:
                    out.append(event)
        return out

    def _process_call_event(self, event: CallStart | CallDelta | CallEnd) -> list[Event]:
        if isinstance(event, CallStart):
            self._verdict = self._check_call(event)
            self._open_call = [event]
            return [] if self._verdict else [CallStart(self.call_count, event.id, event.name)]
        if isinstance(event, CallEnd):
            return self._end_call(event)
        if not self._verdict:
            return [CallDelta(self.call_count, event.text)]
        self._open_call.append(event)
        return []

    def _check_call(self, call: CallStart) -> str:
        """Return why a call is dropped or held back; empty if it is passed on as it arrives."""
        if self.is_done:
            self.is_truncated = True
            return "over"
        if self._limits.allowed_tools is not None and call.name not in self._limits.allowed_tools:
            return "not allowed"
        return "perhaps a repeat" if self._limits.drop_repeats else ""

    def _end_call(self, end: CallEnd) -> list[Event]:
        verdict, self._verdict = self._verdict, ""
        if verdict == "over":
            self._record_repair("dropped_call", f"{self._name}: the turn already had the maximum number of calls")
            return []
        if verdict == "not allowed":
            return [Malformed(f"{self._name} {self._arguments}", "the client's tool_choice does not allow this call")]
        events: list[Event] = []
        if verdict:
            key = (self._name, self._arguments)
            if key in self._seen_calls:
                self._record_repair("repeated_call", f"{self._name} was called twice with the same arguments")
                return []
            self._seen_calls.add(key)
            start = self._open_call[0]
            events = [CallStart(self.call_count, getattr(start, "id", ""), self._name)]
            events += [
                CallDelta(self.call_count, piece.text) for piece in self._open_call if isinstance(piece, CallDelta)
            ]
        events.append(CallEnd(self.call_count, end.complete, end.repairs))
        self.call_count += 1
        self.is_done = self.call_count == self._limits.max_calls or self._limits.stop_rule == "first"
        return events

    def _filter_tail(self, event: TextDelta | ReasoningDelta) -> list[Event]:
        """Filter text after a call."""
        if self._limits.stop_rule == "burst" and isinstance(event, TextDelta) and event.text.strip():
            self.is_done = True
        if self.is_done or (self._limits.drop_tail and isinstance(event, TextDelta)):
            self._record_repair("dropped_tail", f"text after a call was not shown: {event.text[:80]!r}")
            return []
        return [event]

    def _adjust_finish(self, finish: Finish) -> Finish:
        reason: FinishReason = finish.reason
        if self.is_done:
            reason = "tool_calls"
        elif reason == "tool_calls" and not self.call_count:
            reason = "stop"
        repairs = tuple(Repair(kind, detail) for kind, detail in self._repairs.items())
        return msgspec.structs.replace(finish, reason=reason, repairs=(*finish.repairs, *repairs))

    @property
    def _name(self) -> str:
        start = self._open_call[0]
        return start.name if isinstance(start, CallStart) else ""

    @property
    def _arguments(self) -> str:
        return "".join(piece.text for piece in self._open_call if isinstance(piece, CallDelta))

    def _record_repair(self, kind: str, detail: str) -> None:
        self._repairs.setdefault(kind, detail)
