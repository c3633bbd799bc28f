"""Rules about calls, as a stage: which of them count, how many, and what may come after them.

Whatever is left out is recorded: a call that may not be made becomes `Malformed`, a tail that is not shown a repair.
When a rule ends the turn, `done` says so, and whoever feeds the stage ends the model's generation for real.
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

__all__ = ["CallLimits", "CallRules"]


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules are for one turn."""

    allowed: Collection[str] | None = None
    """The tools that may be called; None for any."""
    most: int = 0
    """How many calls a turn may hold; 0 for any number."""
    stop: str = ""
    """When calls end the turn: after the `first`, after a `burst` of them, or not before the model's own end."""
    drop_tail: bool = False
    drop_repeats: bool = False


class CallRules:
    """Keeps one turn's events within its limits."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self.done = False
        """The turn is over, whatever the model still says."""
        self.truncated = False
        """Calls were left out because there were too many."""
        self.passed = 0
        """Calls let through so far."""
        self._call: list[CallStart | CallDelta] = []
        """The call that is open: all of it while it may still be left out, else its start."""
        self._verdict = ""
        self._seen: set[tuple[str, str]] = set()
        self._repairs: dict[str, str] = {}

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events that may go on."""
        out: list[Event] = []
        for event in events:
            match event:
                case Finish():
                    out.append(self._finish(event))
                case UsageSeen():
                    out.append(event)
                case CallStart() | CallDelta() | CallEnd():
                    out += self._take(event)
                case TextDelta() | ReasoningDelta() if self.passed:
                    out += self._tail(event)
                case ReasoningSealed() if self.done:
                    pass  # so was what it seals
                case _:
                    out.append(event)
        return out

    def _take(self, event: CallStart | CallDelta | CallEnd) -> list[Event]:
        if isinstance(event, CallStart):
            self._verdict = self._judge(event)
            self._call = [event]
            return [] if self._verdict else [CallStart(self.passed, event.id, event.name)]
        if isinstance(event, CallEnd):
            return self._end(event)
        if not self._verdict:
            return [CallDelta(self.passed, event.text)]
        self._call.append(event)
        return []

    def _judge(self, call: CallStart) -> str:
        """Why a call does not go on, or not yet; empty when it goes on as it comes."""
        if self.done:
            self.truncated = True
            return "over"
        if self._limits.allowed is not None and call.name not in self._limits.allowed:
            return "not allowed"
        return "perhaps a repeat" if self._limits.drop_repeats else ""

    def _end(self, end: CallEnd) -> list[Event]:
        verdict, self._verdict = self._verdict, ""
        if verdict == "over":
            self._note("dropped_call", f"{self._name}: the turn had its calls already")
            return []
        if verdict == "not allowed":
            return [Malformed(f"{self._name} {self._arguments}", "the client's tool_choice does not allow this call")]
        held: list[Event] = []
        if verdict:
            key = (self._name, self._arguments)
            if key in self._seen:
                self._note("repeated_call", f"{self._name} was called twice with the same arguments")
                return []
            self._seen.add(key)
            start = self._call[0]
            held = [CallStart(self.passed, getattr(start, "id", ""), self._name)]
            held += [CallDelta(self.passed, piece.text) for piece in self._call if isinstance(piece, CallDelta)]
        held.append(CallEnd(self.passed, end.complete, end.repairs))
        self.passed += 1
        self.done = self.passed == self._limits.most or self._limits.stop == "first"
        return held

    def _tail(self, event: TextDelta | ReasoningDelta) -> list[Event]:
        """Words after a call."""
        if self._limits.stop == "burst" and isinstance(event, TextDelta) and event.text.strip():
            self.done = True
        if self.done or (self._limits.drop_tail and isinstance(event, TextDelta)):
            self._note("dropped_tail", f"text after a call was not shown: {event.text[:80]!r}")
            return []
        return [event]

    def _finish(self, finish: Finish) -> Finish:
        reason: FinishReason = finish.reason
        if self.done:
            reason = "tool_calls"
        elif reason == "tool_calls" and not self.passed:
            reason = "stop"
        repairs = tuple(Repair(kind, detail) for kind, detail in self._repairs.items())
        return msgspec.structs.replace(finish, reason=reason, repairs=(*finish.repairs, *repairs))

    @property
    def _name(self) -> str:
        start = self._call[0]
        return start.name if isinstance(start, CallStart) else ""

    @property
    def _arguments(self) -> str:
        return "".join(piece.text for piece in self._call if isinstance(piece, CallDelta))

    def _note(self, kind: str, detail: str) -> None:
        self._repairs.setdefault(kind, detail)
