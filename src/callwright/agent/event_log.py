"""The log of a session: every event is stored first and shown second, in one order (A-10)."""

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
    """Events as they were stored."""
    return [StampedEvent(row.seq, row.at, _DECODER.decode(row.body)) for row in rows]


class EventLog:
    """What happened in a session so far, and where what happens next is written down."""

    def __init__(
        self,
        store: SessionEventStore,
        session: str,
        past: Iterable[StampedEvent] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = list(past)
        self._store = store
        self._session = session
        self._clock = clock
        self._callbacks: list[EventCallback] = []
        self._write_lock = asyncio.Lock()

    async def add(self, event: SessionEvent) -> StampedEvent:
        """Store it, then show it."""
        # Whoever waits may be cancelled: the event is stored and shown all the same, before any that comes after it.
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
        """What the list of sessions says of it from now on."""
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
        """Show it all events from now on; what is returned ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)
