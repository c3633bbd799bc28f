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

from callwright.agent.faces.base import SessionFace, SessionList
from callwright.agent.session_events import SessionOpened, StampedEvent
from callwright.errors import CallwrightError, MisuseError

__all__ = ["Desk", "Shown"]

log = logging.getLogger("callwright.agent.web")

IDLE_SECONDS = 600.0
"""How long a session stays open without a page and without work."""


class Shown:
    """One session as pages see it. `trouble` is what went wrong with its work, if the session cannot say it itself."""

    def __init__(self, desk: Desk, session: str, events: Sequence[StampedEvent]) -> None:
        self.id = session
        self.face: SessionFace | None = None
        self.trouble = ""
        self._desk = desk
        self._read = events
        self._pages: set[Callable[[], None]] = set()
        self._opening = asyncio.Lock()
        self._work: asyncio.Task[object] | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._closing: asyncio.TimerHandle | None = None

    @property
    def events(self) -> Sequence[StampedEvent]:
        """Everything so far: the event of number n stands at n - 1."""
        return self.face.events if self.face else self._read

    @property
    def busy(self) -> bool:
        return self.face is not None and (self.face.busy or self._work is not None)

    @property
    def wanted(self) -> bool:
        """A page looks at it, or work goes on."""
        return bool(self._pages) or self.busy

    def join(self, wake: Callable[[], None]) -> None:
        """Have a page woken by whatever is new."""
        self._pages.add(wake)
        if self._closing:
            self._closing.cancel()

    def leave(self, wake: Callable[[], None]) -> None:
        self._pages.discard(wake)
        self._rest()

    def read(self, events: Sequence[StampedEvent]) -> None:
        """What the store has of it now, for while it is not open here: another process may be at work on it."""
        self._read = events
        self._wake()

    async def open(self) -> SessionFace:
        """The session, open for work. `StoreError` when it is open elsewhere."""
        async with self._opening:
            if self.face is None:
                face = await self._desk.sessions.open(self.id)
                self.id = face.id
                self._unwatch = face.watch(lambda _: self._wake())
                self.face = face
                self._desk.opened(self)
                self._wake()
            return self.face

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Let the session work, whatever becomes of the page that asked for it."""
        if self.busy:
            work.close()
            raise MisuseError("It is still working. Stop it first, or wait.")
        self.trouble = ""
        self._work = asyncio.create_task(work)
        self._work.add_done_callback(self._worked)
        self._wake()

    async def close(self) -> None:
        if self._closing:
            self._closing.cancel()
        if self.face:
            self._unwatch()
            await self.face.close()
            self._read = tuple(self.face.events)
            self.face = None
        if self._work:
            await asyncio.wait([self._work])
        self._wake()

    def _worked(self, work: asyncio.Task[object]) -> None:
        self._work = None
        if not work.cancelled() and (error := work.exception()):
            ours = isinstance(error, CallwrightError)
            self.trouble = str(error) if ours else "The work ended by a mistake in Callwright; its log says more."
            log.error("work on a session failed", exc_info=error)
        self._wake()
        self._rest()

    def _wake(self) -> None:
        for wake in tuple(self._pages):
            wake()

    def _rest(self) -> None:
        if self._closing:
            self._closing.cancel()
        if not self.wanted:
            wait = IDLE_SECONDS if self.face else 0
            self._closing = asyncio.get_running_loop().call_later(wait, self._desk.forget, self)


class Desk:
    """All of them."""

    def __init__(self, sessions: SessionList) -> None:
        self.sessions = sessions
        self._shown: dict[str, Shown] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def show(self, session: str) -> Shown:
        """A session to look at; without a name one that begins with its first task. `StoreError` for no such one."""
        if not session:
            return Shown(self, "", ())
        known = self._shown.get(session)
        if known is None or known.face is None:
            events = await self.sessions.events(session)
            name = _name(events) or session
            known = self._shown.setdefault(name, Shown(self, name, events))
            known.read(events)
        return known

    def opened(self, shown: Shown) -> None:
        """One has got a name, or is open now."""
        self._shown[shown.id] = shown

    def forget(self, shown: Shown) -> None:
        """Nobody looks at it any more."""
        if not shown.wanted and self._shown.get(shown.id) is shown:
            del self._shown[shown.id]
            closing = asyncio.create_task(shown.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def delete(self, session: str) -> None:
        """Forget a session for good; `MisuseError` while it works."""
        known = self._shown.get(session)
        if known and known.busy:
            raise MisuseError("It is still working. Stop it first.")
        if known:
            await known.close()
        await self.sessions.delete(session)
        self._shown.pop(session, None)

    async def close(self) -> None:
        """Stop all work, and close what is open."""
        for shown in tuple(self._shown.values()):
            await shown.close()
        self._shown.clear()
        if self._closing:
            await asyncio.wait(self._closing)


def _name(events: Sequence[StampedEvent]) -> str:
    """A session may be asked for by less than its name."""
    first = events[0].event if events else None
    return first.session if isinstance(first, SessionOpened) else ""
