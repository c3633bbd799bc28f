"""The repairs of one value or call, by kind."""

from __future__ import annotations

from callwright.model import Repair

__all__ = ["RepairLog"]


class RepairLog:
    """Collects repairs: each kind once, with its first detail; all details where something was dropped, so that every
    piece of dropped text is recorded."""

    __slots__ = ("_details",)

    def __init__(self) -> None:
        self._details: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._details)

    def add_repair(self, kind: str, detail: str = "") -> None:
        """Record a repair."""
        details = self._details.setdefault(kind, {})
        if not details or kind.startswith("dropped"):
            details[detail] = None

    def build_repairs(self) -> tuple[Repair, ...]:
        """Return one repair for each kind."""
        return tuple(Repair(kind, "; ".join(details)) for kind, details in self._details.items())
