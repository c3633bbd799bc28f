"""What became of a turn: for the log line, the metrics, the usage and the client's telemetry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from callwright.engine.reask import RetryReason
from callwright.engine.turn_recorder import TurnRecorder
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

__all__ = ["TurnReport", "sum_usage"]


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
    strategy_reason: str = ""
    """… and the reason for it."""
    dialect: str = ""
    dialect_reason: str = ""
    retries: list[str] = field(default_factory=list)
    """Why the model was asked again, each time, and what it was told …"""
    retry_reasons: list[RetryReason] = field(default_factory=list)
    """… and the same in one word each, for counting."""
    call_names: list[str] = field(default_factory=list)
    has_dropped_calls: bool = False
    """Calls were left out because there were too many."""
    repairs: list[Repair] = field(default_factory=list)
    malformed_count: int = 0
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    recorder: TurnRecorder | None = None
    """Records the turn, if it is to be kept."""

    def record_retry(self, reason: RetryReason, detail: str) -> None:
        """Take note of an answer that will not do."""
        self.retry_reasons.append(reason)
        self.retries.append(detail)
        if self.recorder is not None:
            self.recorder.record_retry(detail)

    def record_repairs(self, repairs: Iterable[Repair]) -> None:
        """Take note of what was mended in the request; once, however often it is told."""
        self.repairs.extend(repair for repair in repairs if repair not in self.repairs)

    def record_events(self, events: list[Event]) -> None:
        """Take note of events on their way to the client."""
        for event in events:
            match event:
                case TextDelta() | CallDelta() | ReasoningDelta() | ReasoningSealed():
                    pass
                case CallStart():
                    self.call_names.append(event.name)
                case CallEnd():
                    self.repairs.extend(event.repairs)
                case Malformed():
                    self.malformed_count += 1
                case UsageSeen():
                    self.usage = event.usage
                case Finish():
                    self.finish_reason, self.dialect, self.dialect_reason = event.reason, event.dialect, event.why
                    self.repairs.extend(event.repairs)


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """The tokens of several answers together."""
    some = tuple(usages)
    return Usage(*(sum(getattr(usage, name) for usage in some) for name in Usage.__struct_fields__))
