"""The log of a session: every event is stored first and shown second, in one order (A-10)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from callwright.agent.events import FilesChanged, SessionEvent, Stamped, Stopped, TaskGiven
from callwright.store.session_store import EventRow, SessionEventStore

__all__ = ["Log", "Watch", "read_events"]

Watch = Callable[[Stamped], None]
_TITLE = 80
_READER = msgspec.json.Decoder(SessionEvent)
_WRITER = msgspec.json.Encoder()


def read_events(rows: Iterable[EventRow]) -> list[Stamped]:
    """Events as they were stored."""
    return [Stamped(row.seq, row.at, _READER.decode(row.body)) for row in rows]


class Log:
    """What happened in a session so far, and where what happens next is written down."""

    def __init__(
        self,
        store: SessionEventStore,
        session: str,
        past: Iterable[Stamped] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = list(past)
        self._store = store
        self._session = session
        self._clock = clock
        self._watches: list[Watch] = []
        self._turn = asyncio.Lock()

    async def add(self, event: SessionEvent) -> Stamped:
        """Store it, then show it."""
        # Whoever waits may be cancelled: the event is stored and shown all the same, before any that comes after it.
        return await asyncio.shield(self._put(event))

    async def _put(self, event: SessionEvent) -> Stamped:
        async with self._turn:
            stamped = Stamped(len(self.events) + 1, self._clock(), event)
            row = EventRow(stamped.seq, stamped.at, type(event).__struct_config__.tag, _WRITER.encode(event).decode())  # type: ignore[arg-type]
            await self._store.append_event(self._session, row, **self._head(event))
            self.events.append(stamped)
            for watch in tuple(self._watches):
                watch(stamped)
        return stamped

    def _head(self, event: SessionEvent) -> dict[str, Any]:
        """What the list of sessions says of it from now on."""
        match event:
            case TaskGiven(task=1):
                return {"working": True, "title": " ".join(event.text.split())[:_TITLE]}
            case TaskGiven():
                return {"working": True}
            case Stopped():
                return {"working": False}
            case FilesChanged():
                return {
                    "added": sum(file.added for file in event.files),
                    "removed": sum(file.removed for file in event.files),
                }
            case _:
                return {}

    def watch(self, watch: Watch) -> Callable[[], None]:
        """Show it all events from now on; what is returned ends that."""
        self._watches.append(watch)
        return lambda: self._watches.remove(watch)
