"""The outcome of a turn, for the log, the metrics, the usage and the client's telemetry."""

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
    """Filled in while the turn runs; complete when it is over."""

    wire: str = ""
    """The client's wire."""
    caller: str = ""
    """The owner of the turn. Stored data is never shown to another caller."""
    model: str = ""
    backend: str = ""
    strategy: str = ""
    """How the tools were given to the model: native, constrained, taught, or none …"""
    strategy_reason: str = ""
    """… and the reason for it."""
    dialect: str = ""
    dialect_reason: str = ""
    retries: list[str] = field(default_factory=list)
    """Why each retry was sent and what changed, as a sentence …"""
    retry_reasons: list[RetryReason] = field(default_factory=list)
    """… and as a code, for metrics."""
    call_names: list[str] = field(default_factory=list)
    has_dropped_calls: bool = False
    """Calls were dropped because there were too many."""
    repairs: list[Repair] = field(default_factory=list)
    malformed_count: int = 0
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    recorder: TurnRecorder | None = None
    """Records the turn, if it is journaled."""

    def record_retry(self, reason: RetryReason, detail: str) -> None:
        """Record an unusable answer."""
        self.retry_reasons.append(reason)
        self.retries.append(detail)
        if self.recorder is not None:
            self.recorder.record_retry(detail)

    def record_repairs(self, repairs: Iterable[Repair]) -> None:
        """Record repairs of the request, each once, however often the request is built."""
        known = set(self.repairs)
        self.repairs.extend(repair for repair in dict.fromkeys(repairs) if repair not in known)

    def record_events(self, events: list[Event]) -> None:
        """Record events on their way to the client."""
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
    """Sum the tokens of several answers."""
    values = tuple(usages)
    return Usage(*(sum(getattr(usage, name) for usage in values) for name in Usage.__struct_fields__))
