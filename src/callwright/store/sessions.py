"""Sessions of the agent: what happened in them, event by event. What an event is, is not known here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.faults import as_store_error
from callwright.store.schema import session_events, sessions
from callwright.store.writer import Writer

__all__ = ["EventRow", "SessionHead", "Sessions"]


class EventRow(NamedTuple):
    """An event as it is kept: its place, its time, its kind, and the rest as JSON."""

    seq: int
    at: float
    kind: str
    body: str


class SessionHead(NamedTuple):
    """What is known of a session without reading its events."""

    id: str
    began: float
    updated: float
    title: str
    workspace: str
    model: str
    working: bool
    """A task has begun and not ended."""
    added: int
    removed: int
    events: int


class Sessions:
    """All sessions of a store. What was appended is on the disk when `append` returns."""

    def __init__(self, writer: Writer, reading: AsyncEngine) -> None:
        self._writer = writer
        self._reading = reading

    async def begin(self, head: SessionHead) -> None:
        """A new session, without events."""
        row = head._asdict()
        row.pop("events")

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(sessions).values(**row))

        await self._writer.write(put)

    async def append(self, session: str, event: EventRow, **head: Any) -> None:
        """One more event, and what it changes of the head."""

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(session_events).values(session=session, **event._asdict()))
            await connection.execute(update(sessions).where(sessions.c.id == session).values(updated=event.at, **head))

        await self._writer.write(put)

    async def head(self, session: str) -> SessionHead:
        """One session, by its id or the beginning of it. `StoreError` when there is none, or more than one."""
        statement = _heads().where(sessions.c.id.startswith(session, autoescape=True)).limit(2)
        found = await self._rows(statement)
        if len(found) != 1:
            what = "there is no session" if not found else "there are several sessions"
            raise StoreError(f"{what} {session!r}: see `callwright sessions list`")
        return SessionHead(*found[0])

    async def heads(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionHead]:
        """The sessions that were worked on last; with a query those in whose events every word of it occurs."""
        statement = _heads().order_by(sessions.c.updated.desc(), sessions.c.number.desc()).limit(limit).offset(offset)
        for word in query.split():
            said = exists().where(
                and_(
                    session_events.c.session == sessions.c.id,
                    session_events.c.kind.in_(("task_given", "answered", "tool_ended")),
                    session_events.c.body.icontains(word, autoescape=True),
                )
            )
            statement = statement.where(or_(sessions.c.title.icontains(word, autoescape=True), said))
        return [SessionHead(*row) for row in await self._rows(statement)]

    async def events(self, session: str) -> list[EventRow]:
        """All events of a session, in order."""
        columns = (session_events.c.seq, session_events.c.at, session_events.c.kind, session_events.c.body)
        statement = select(*columns).where(session_events.c.session == session).order_by(session_events.c.seq)
        return [EventRow(*row) for row in await self._rows(statement)]

    async def forget(self, session: str) -> None:
        """Delete a session and its events."""

        async def drop(connection: AsyncConnection) -> None:
            await connection.execute(delete(session_events).where(session_events.c.session == session))
            await connection.execute(delete(sessions).where(sessions.c.id == session))

        await self._writer.write(drop)

    async def _rows(self, statement: Any) -> Sequence[Any]:
        with as_store_error("the sessions cannot be read"):
            async with self._reading.connect() as connection:
                return (await connection.execute(statement)).all()


def _heads() -> Any:
    count = select(func.count()).where(session_events.c.session == sessions.c.id).scalar_subquery()
    names = [name for name in SessionHead._fields if name != "events"]
    return select(*(sessions.c[name] for name in names), count)
