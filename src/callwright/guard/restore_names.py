"""A stage that replaces tool aliases in calls by the client's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callwright.events import CallStart, Event

__all__ = ["RestoreToolNames"]


class RestoreToolNames:
    """Replaces the names of calls."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with the client's names."""
        return [self._restore_name(event) for event in events]

    def _restore_name(self, event: Event) -> Event:
        if isinstance(event, CallStart) and event.name in self._names:
            return CallStart(event.index, event.id, self._names[event.name])
        return event
