"""The event log of a session: every event is stored first and then shown, in one order (A-10)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from callwright.agent.session_events import (
    EventCallback,
    FilesChanged,
    SessionEvent,
    StampedEvent,
    TaskStarted,
    TaskStopped,
)
from callwright.store.session_store import EventRow, SessionEventStore

__all__ = ["EventLog", "read_events"]

_MAX_TITLE_CHARS = 80
_DECODER = msgspec.json.Decoder(SessionEvent)
_ENCODER = msgspec.json.Encoder()


def read_events(rows: Iterable[EventRow]) -> list[StampedEvent]:
    """Decode stored events."""
    return [StampedEvent(row.seq, row.at, _DECODER.decode(row.body)) for row in rows]


class EventLog:
    """The events of a session so far, and the place to add new ones."""

    def __init__(
        self,
        store: SessionEventStore,
        session: str,
        recorded: Iterable[StampedEvent] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = list(recorded)
        self._store = store
        self._session = session
        self._clock = clock
        self._callbacks: list[EventCallback] = []
        self._write_lock = asyncio.Lock()

    async def add(self, event: SessionEvent) -> StampedEvent:
        """Store an event, then show it to all subscribers."""
        # The caller may be cancelled: the event is still stored and shown before any later one.
        return await asyncio.shield(self._store_event(event))

    async def _store_event(self, event: SessionEvent) -> StampedEvent:
        async with self._write_lock:
            stamped = StampedEvent(len(self.events) + 1, self._clock(), event)
            row = EventRow(stamped.seq, stamped.at, type(event).__struct_config__.tag, _ENCODER.encode(event).decode())  # type: ignore[arg-type]
            await self._store.append_event(self._session, row, **self._build_head_update(event))
            self.events.append(stamped)
            for watch in tuple(self._callbacks):
                watch(stamped)
        return stamped

    def _build_head_update(self, event: SessionEvent) -> dict[str, Any]:
        """Return the changes to the session's row in the list of sessions."""
        match event:
            case TaskStarted(task=1):
                return {"working": True, "title": " ".join(event.text.split())[:_MAX_TITLE_CHARS]}
            case TaskStarted():
                return {"working": True}
            case TaskStopped():
                return {"working": False}
            case FilesChanged():
                return {
                    "added": sum(file.added for file in event.files),
                    "removed": sum(file.removed for file in event.files),
                }
            case _:
                return {}

    def subscribe(self, callback: EventCallback) -> Callable[[], None]:
        """Show all later events to `callback`; call the result to unsubscribe."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)
