"""Names: a stage that gives calls of tools that were told under an alias the client's name for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callwright.events import CallStart, Event

__all__ = ["RestoreToolNames"]


class RestoreToolNames:
    """Events in, the same events out with the client's names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Events of what just came."""
        return [self._restore_name(event) for event in events]

    def _restore_name(self, event: Event) -> Event:
        if isinstance(event, CallStart) and event.name in self._names:
            return CallStart(event.index, event.id, self._names[event.name])
        return event
