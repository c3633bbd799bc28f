"""The sessions that pages show.

A session is read-only until a page sends a command: viewing must not change it, nor take it from the terminal in which
it is open. Once open it stays open for all pages, and for a while after the last one has gone: a reloaded page finds it
unchanged, and a task continues without any page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from callwright.agent.session_api import SessionCatalog, SessionHandle
from callwright.agent.session_events import SessionOpened, StampedEvent
from callwright.errors import CallwrightError, MisuseError

__all__ = ["HubSession", "SessionHub"]

log = logging.getLogger("callwright.agent.web")

IDLE_SECONDS = 600.0
"""How long a session stays open without a page and without a running task."""


class HubSession:
    """One session as pages see it. `problem` is an error of its task that is not among its events."""

    def __init__(self, hub: SessionHub, session: str, events: Sequence[StampedEvent]) -> None:
        self.id = session
        self.handle: SessionHandle | None = None
        self.problem = ""
        self._hub = hub
        self._stored_events = events
        self._pages: set[Callable[[], None]] = set()
        self._open_lock = asyncio.Lock()
        self._work: asyncio.Task[object] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._close_timer: asyncio.TimerHandle | None = None

    @property
    def events(self) -> Sequence[StampedEvent]:
        """All events so far: event number n is at index n - 1."""
        return self.handle.events if self.handle else self._stored_events

    @property
    def is_busy(self) -> bool:
        return self.handle is not None and (self.handle.is_busy or self._work is not None)

    @property
    def is_needed(self) -> bool:
        """Whether a page shows it or a task is running."""
        return bool(self._pages) or self.is_busy

    def add_page(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there is something new for a page."""
        self._pages.add(wake)
        if self._close_timer:
            self._close_timer.cancel()

    def remove_page(self, wake: Callable[[], None]) -> None:
        self._pages.discard(wake)
        self._schedule_close()

    def update_events(self, events: Sequence[StampedEvent]) -> None:
        """Set the stored events of a session that is not open here: another process may be running it."""
        self._stored_events = events
        self._wake_pages()

    async def open(self) -> SessionHandle:
        """Open the session for commands. Raises `StoreError` if it is open elsewhere."""
        async with self._open_lock:
            if self.handle is None:
                handle = await self._hub.catalog.open(self.id)
                self.id = handle.id
                self._unsubscribe = handle.subscribe(lambda _: self._wake_pages())
                self.handle = handle
                self._hub.register_session(self)
                self._wake_pages()
            return self.handle

    def start_work(self, work: Coroutine[Any, Any, object]) -> None:
        """Start work that continues even if the page that requested it disconnects."""
        if self.is_busy:
            work.close()
            raise MisuseError("A task is already running. Stop it first, or wait.")
        self.problem = ""
        self._work = asyncio.create_task(work)
        self._work.add_done_callback(self._finish_work)
        self._wake_pages()

    async def close(self) -> None:
        if self._close_timer:
            self._close_timer.cancel()
        if self.handle:
            self._unsubscribe()
            await self.handle.close()
            self._stored_events = tuple(self.handle.events)
            self.handle = None
        if self._work:
            await asyncio.wait([self._work])
        self._wake_pages()

    def _finish_work(self, work: asyncio.Task[object]) -> None:
        self._work = None
        if not work.cancelled() and (error := work.exception()):
            ours = isinstance(error, CallwrightError)
            self.problem = (
                str(error) if ours else "The task failed because of a bug in Callwright; the log has the details."
            )
            log.error("a task of a session failed", exc_info=error)
        self._wake_pages()
        self._schedule_close()

    def _wake_pages(self) -> None:
        for wake in tuple(self._pages):
            wake()

    def _schedule_close(self) -> None:
        if self._close_timer:
            self._close_timer.cancel()
        if not self.is_needed:
            wait = IDLE_SECONDS if self.handle else 0
            self._close_timer = asyncio.get_running_loop().call_later(wait, self._hub.release_session, self)


class SessionHub:
    """All sessions that pages show."""

    def __init__(self, sessions: SessionCatalog) -> None:
        self.catalog = sessions
        self._hub_sessions: dict[str, HubSession] = {}
        self._close_tasks: set[asyncio.Task[None]] = set()

    async def load_session(self, session: str) -> HubSession:
        """Load a session; without an id, one that starts with its first task. Raises `StoreError` if it does not
        exist.
        """
        if not session:
            return HubSession(self, "", ())
        cached = self._hub_sessions.get(session)
        if cached is None or cached.handle is None:
            events = await self.catalog.load_events(session)
            name = _find_session_id(events) or session
            cached = self._hub_sessions.setdefault(name, HubSession(self, name, events))
            cached.update_events(events)
        return cached

    def register_session(self, session: HubSession) -> None:
        """Register a session that has got an id or was opened."""
        self._hub_sessions[session.id] = session

    def release_session(self, session: HubSession) -> None:
        """Release a session that no page shows any more."""
        if not session.is_needed and self._hub_sessions.get(session.id) is session:
            del self._hub_sessions[session.id]
            closing = asyncio.create_task(session.close())
            self._close_tasks.add(closing)
            closing.add_done_callback(self._close_tasks.discard)

    async def delete_session(self, session: str) -> None:
        """Delete a session permanently. Raises `MisuseError` while a task is running."""
        cached = self._hub_sessions.get(session)
        if cached and cached.is_busy:
            raise MisuseError("A task is still running. Stop it first.")
        if cached:
            await cached.close()
        await self.catalog.delete(session)
        self._hub_sessions.pop(session, None)

    async def close(self) -> None:
        """Stop all tasks and close all sessions."""
        for session in tuple(self._hub_sessions.values()):
            await session.close()
        self._hub_sessions.clear()
        if self._close_tasks:
            await asyncio.wait(self._close_tasks)


def _find_session_id(events: Sequence[StampedEvent]) -> str:
    """Return the full id, since a session may be requested by a prefix of it."""
    first = events[0].event if events else None
    return first.session if isinstance(first, SessionOpened) else ""
