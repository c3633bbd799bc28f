"""What became of a turn: for the log line, the metrics, the ledger and the client's telemetry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from callwright.engine.again import Reason
from callwright.engine.tape import Tape
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Repair, Usage

__all__ = ["TurnReport", "total"]


@dataclass
class TurnReport:
    """Filled while the turn runs; whole when it is over."""

    wire: str = ""
    """The client's."""
    caller: str = ""
    """Whose turn it is: nobody is shown what was kept for another."""
    model: str = ""
    backend: str = ""
    strategy: str = ""
    """How the model got its tools: native, constrained, taught, or none …"""
    strategy_why: str = ""
    """… and the reason for it."""
    dialect: str = ""
    why: str = ""
    asked_again: list[str] = field(default_factory=list)
    """Why the model was asked again, each time, and what it was told …"""
    reasons: list[Reason] = field(default_factory=list)
    """… and the same in one word each, for counting."""
    calls: list[str] = field(default_factory=list)
    truncated: bool = False
    """Calls were left out because there were too many."""
    repairs: list[Repair] = field(default_factory=list)
    malformed: int = 0
    finish: str = ""
    usage: Usage = field(default_factory=Usage)
    tape: Tape | None = None
    """Records the turn, if it is to be kept."""

    def again(self, reason: Reason, why: str) -> None:
        """Take note of an answer that will not do."""
        self.reasons.append(reason)
        self.asked_again.append(why)
        if self.tape is not None:
            self.tape.again(why)

    def mend(self, repairs: Iterable[Repair]) -> None:
        """Take note of what was mended in the request; once, however often it is told."""
        self.repairs.extend(repair for repair in repairs if repair not in self.repairs)

    def see(self, events: list[Event]) -> None:
        """Take note of events on their way to the client."""
        for event in events:
            match event:
                case TextDelta() | CallDelta() | ReasoningDelta() | ReasoningSealed():
                    pass
                case CallStart():
                    self.calls.append(event.name)
                case CallEnd():
                    self.repairs.extend(event.repairs)
                case Malformed():
                    self.malformed += 1
                case UsageSeen():
                    self.usage = event.usage
                case Finish():
                    self.finish, self.dialect, self.why = event.reason, event.dialect, event.why
                    self.repairs.extend(event.repairs)


def total(usages: Iterable[Usage]) -> Usage:
    """The tokens of several answers together."""
    some = tuple(usages)
    return Usage(*(sum(getattr(usage, name) for usage in some) for name in Usage.__struct_fields__))
