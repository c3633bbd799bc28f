"""Sessions of the agent: what happened in them, event by event. What an event is, is not known here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.errors import as_store_error
from callwright.store.tables import session_events, sessions
from callwright.store.writer import DatabaseWriter

__all__ = ["EventRow", "SessionEventStore", "SessionRecord"]


class EventRow(NamedTuple):
    """An event as it is kept: its place, its time, its kind, and the rest as JSON."""

    seq: int
    at: float
    kind: str
    body: str


class SessionRecord(NamedTuple):
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


class SessionEventStore:
    """All sessions of a store. What was appended is on the disk when `append` returns."""

    def __init__(self, writer: DatabaseWriter, reading: AsyncEngine) -> None:
        self._writer = writer
        self._read_engine = reading

    async def create_session(self, head: SessionRecord) -> None:
        """A new session, without events."""
        row = head._asdict()
        row.pop("events")

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(sessions).values(**row))

        await self._writer.write(put)

    async def append_event(self, session: str, event: EventRow, **head: Any) -> None:
        """One more event, and what it changes of the head."""

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(session_events).values(session=session, **event._asdict()))
            await connection.execute(update(sessions).where(sessions.c.id == session).values(updated=event.at, **head))

        await self._writer.write(put)

    async def find_session(self, session: str) -> SessionRecord:
        """One session, by its id or the beginning of it. `StoreError` when there is none, or more than one."""
        statement = _select_sessions().where(sessions.c.id.startswith(session, autoescape=True)).limit(2)
        found = await self._fetch_rows(statement)
        if len(found) != 1:
            what = "there is no session" if not found else "there are several sessions"
            raise StoreError(f"{what} {session!r}: see `callwright sessions list`")
        return SessionRecord(*found[0])

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRecord]:
        """The sessions that were worked on last; with a query those in whose events every word of it occurs."""
        statement = (
            _select_sessions().order_by(sessions.c.updated.desc(), sessions.c.number.desc()).limit(limit).offset(offset)
        )
        for word in query.split():
            said = exists().where(
                and_(
                    session_events.c.session == sessions.c.id,
                    session_events.c.kind.in_(("task_given", "answered", "tool_ended")),
                    session_events.c.body.icontains(word, autoescape=True),
                )
            )
            statement = statement.where(or_(sessions.c.title.icontains(word, autoescape=True), said))
        return [SessionRecord(*row) for row in await self._fetch_rows(statement)]

    async def list_events(self, session: str) -> list[EventRow]:
        """All events of a session, in order."""
        columns = (session_events.c.seq, session_events.c.at, session_events.c.kind, session_events.c.body)
        statement = select(*columns).where(session_events.c.session == session).order_by(session_events.c.seq)
        return [EventRow(*row) for row in await self._fetch_rows(statement)]

    async def delete_session(self, session: str) -> None:
        """Delete a session and its events."""

        async def drop(connection: AsyncConnection) -> None:
            await connection.execute(delete(session_events).where(session_events.c.session == session))
            await connection.execute(delete(sessions).where(sessions.c.id == session))

        await self._writer.write(drop)

    async def _fetch_rows(self, statement: Any) -> Sequence[Any]:
        with as_store_error("the sessions cannot be read"):
            async with self._read_engine.connect() as connection:
                return (await connection.execute(statement)).all()


def _select_sessions() -> Any:
    count = select(func.count()).where(session_events.c.session == sessions.c.id).scalar_subquery()
    names = [name for name in SessionRecord._fields if name != "events"]
    return select(*(sessions.c[name] for name in names), count)
