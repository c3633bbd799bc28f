"""Following a session while it works, at one's own pace.

The session keeps its events, so there is no queue that could fill: a watch only says that there is something new.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from callwright.agent.session_api import SessionHandle
from callwright.agent.session_events import SessionOpened, SessionResumed, StampedEvent, TaskStopped

__all__ = ["find_opening_index", "follow_events"]


def find_opening_index(session: SessionHandle) -> int:
    """Where in its events this process opened the session."""
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
    """The events from `start` on, each once and in order, until `work` is done and its last event was given.

    With `every`, something is given at least so often, be it nothing new.
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
