"""Follows the events of a session at the reader's own pace.

The session stores its events, so no queue can overflow: a subscription only signals that there are new ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from callwright.agent.session_api import SessionHandle
from callwright.agent.session_events import SessionOpened, SessionResumed, StampedEvent, TaskStopped

__all__ = ["find_opening_index", "follow_events"]


def find_opening_index(session: SessionHandle) -> int:
    """Return the index of the event with which this process opened the session."""
    for index in range(len(session.events) - 1, -1, -1):
        if isinstance(session.events[index].event, SessionOpened | SessionResumed):
            return index
    return 0


async def follow_events(
    session: SessionHandle,
    work: asyncio.Future[TaskStopped | None],
    start: int,
    *,
    refresh_seconds: float | None = None,
) -> AsyncGenerator[Sequence[StampedEvent]]:
    """Yield the events from `start` on, each once and in order, until `work` is done and its last event was yielded.

    With `refresh_seconds`, it yields at least that often, possibly without new events.
    """
    news = asyncio.Event()
    unwatch = session.subscribe(lambda _: news.set())
    work.add_done_callback(lambda _: news.set())
    try:
        while True:
            news.clear()
            over = work.done()
            events = session.events[start:]
            start += len(events)
            yield events
            if over:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), refresh_seconds)
    finally:
        unwatch()
