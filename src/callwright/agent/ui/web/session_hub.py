"""The sessions that pages look at.

A session is only read until somebody wants something of it: looking at one must not change it, nor take it from the
terminal in which it is open. Once open it stays so for all pages, and for a while after the last of them has gone: a
page that is loaded again finds it as it left it, and work goes on without any.
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
"""How long a session stays open without a page and without work."""


class HubSession:
    """One session as pages see it. `trouble` is what went wrong with its work, if the session cannot say it itself."""

    def __init__(self, desk: SessionHub, session: str, events: Sequence[StampedEvent]) -> None:
        self.id = session
        self.handle: SessionHandle | None = None
        self.problem = ""
        self._hub = desk
        self._stored_events = events
        self._pages: set[Callable[[], None]] = set()
        self._open_lock = asyncio.Lock()
        self._work: asyncio.Task[object] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._close_timer: asyncio.TimerHandle | None = None

    @property
    def events(self) -> Sequence[StampedEvent]:
        """Everything so far: the event of number n stands at n - 1."""
        return self.handle.events if self.handle else self._stored_events

    @property
    def is_busy(self) -> bool:
        return self.handle is not None and (self.handle.is_busy or self._work is not None)

    @property
    def is_needed(self) -> bool:
        """A page looks at it, or work goes on."""
        return bool(self._pages) or self.is_busy

    def add_page(self, wake: Callable[[], None]) -> None:
        """Have a page woken by whatever is new."""
        self._pages.add(wake)
        if self._close_timer:
            self._close_timer.cancel()

    def remove_page(self, wake: Callable[[], None]) -> None:
        self._pages.discard(wake)
        self._schedule_close()

    def update_events(self, events: Sequence[StampedEvent]) -> None:
        """What the store has of it now, for while it is not open here: another process may be at work on it."""
        self._stored_events = events
        self._wake_pages()

    async def open(self) -> SessionHandle:
        """The session, open for work. `StoreError` when it is open elsewhere."""
        async with self._open_lock:
            if self.handle is None:
                face = await self._hub.catalog.open(self.id)
                self.id = face.id
                self._unsubscribe = face.subscribe(lambda _: self._wake_pages())
                self.handle = face
                self._hub.register_session(self)
                self._wake_pages()
            return self.handle

    def start_work(self, work: Coroutine[Any, Any, object]) -> None:
        """Let the session work, whatever becomes of the page that asked for it."""
        if self.is_busy:
            work.close()
            raise MisuseError("It is still working. Stop it first, or wait.")
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
            self.problem = str(error) if ours else "The work ended by a mistake in Callwright; its log says more."
            log.error("work on a session failed", exc_info=error)
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
    """All of them."""

    def __init__(self, sessions: SessionCatalog) -> None:
        self.catalog = sessions
        self._hub_sessions: dict[str, HubSession] = {}
        self._close_tasks: set[asyncio.Task[None]] = set()

    async def load_session(self, session: str) -> HubSession:
        """A session to look at; without a name one that begins with its first task. `StoreError` for no such one."""
        if not session:
            return HubSession(self, "", ())
        known = self._hub_sessions.get(session)
        if known is None or known.handle is None:
            events = await self.catalog.load_events(session)
            name = _find_session_id(events) or session
            known = self._hub_sessions.setdefault(name, HubSession(self, name, events))
            known.update_events(events)
        return known

    def register_session(self, session: HubSession) -> None:
        """One has got a name, or is open now."""
        self._hub_sessions[session.id] = session

    def release_session(self, session: HubSession) -> None:
        """Nobody looks at it any more."""
        if not session.is_needed and self._hub_sessions.get(session.id) is session:
            del self._hub_sessions[session.id]
            closing = asyncio.create_task(session.close())
            self._close_tasks.add(closing)
            closing.add_done_callback(self._close_tasks.discard)

    async def delete_session(self, session: str) -> None:
        """Forget a session for good; `MisuseError` while it works."""
        known = self._hub_sessions.get(session)
        if known and known.is_busy:
            raise MisuseError("It is still working. Stop it first.")
        if known:
            await known.close()
        await self.catalog.delete(session)
        self._hub_sessions.pop(session, None)

    async def close(self) -> None:
        """Stop all work, and close what is open."""
        for shown in tuple(self._hub_sessions.values()):
            await shown.close()
        self._hub_sessions.clear()
        if self._close_tasks:
            await asyncio.wait(self._close_tasks)


def _find_session_id(events: Sequence[StampedEvent]) -> str:
    """A session may be asked for by less than its name."""
    first = events[0].event if events else None
    return first.session if isinstance(first, SessionOpened) else ""
