"""Stores the agent's sessions as sequences of events. It does not interpret the events."""

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
    """A stored event: its number in the session, its time, its kind, and the rest as JSON."""

    seq: int
    at: float
    kind: str
    body: str


class SessionRecord(NamedTuple):
    """The summary of a session, available without its events."""

    id: str
    began: float
    updated: float
    title: str
    workspace: str
    model: str
    working: bool
    """Whether a task has begun and not ended."""
    added: int
    removed: int
    events: int


class SessionEventStore:
    """All sessions of a store. `append_event` returns when the event is on disk."""

    def __init__(self, writer: DatabaseWriter, read_engine: AsyncEngine) -> None:
        self._writer = writer
        self._read_engine = read_engine

    async def create_session(self, head: SessionRecord) -> None:
        """Create a session without events."""
        row = head._asdict()
        row.pop("events")

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(sessions).values(**row))

        await self._writer.write(put)

    async def append_event(self, session: str, event: EventRow, **head: Any) -> None:
        """Append an event, and update the summary with the fields in `head`."""

        async def put(connection: AsyncConnection) -> None:
            await connection.execute(insert(session_events).values(session=session, **event._asdict()))
            await connection.execute(update(sessions).where(sessions.c.id == session).values(updated=event.at, **head))

        await self._writer.write(put)

    async def find_session(self, session: str) -> SessionRecord:
        """Find a session by its id or a prefix of it. Raises `StoreError` when none or several match."""
        statement = _select_sessions().where(sessions.c.id.startswith(session, autoescape=True)).limit(2)
        rows = await self._fetch_rows(statement)
        if len(rows) != 1:
            what = "no session matches" if not rows else "several sessions match"
            raise StoreError(f"{what} {session!r}: see `callwright sessions list`")
        return SessionRecord(*rows[0])

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRecord]:
        """List sessions, the most recently used first. With a query, every word must occur in the title or an event."""
        statement = (
            _select_sessions().order_by(sessions.c.updated.desc(), sessions.c.number.desc()).limit(limit).offset(offset)
        )
        for word in query.split():
            in_events = exists().where(
                and_(
                    session_events.c.session == sessions.c.id,
                    session_events.c.kind.in_(("task_started", "model_answered", "tool_finished")),
                    session_events.c.body.icontains(word, autoescape=True),
                )
            )
            statement = statement.where(or_(sessions.c.title.icontains(word, autoescape=True), in_events))
        return [SessionRecord(*row) for row in await self._fetch_rows(statement)]

    async def list_events(self, session: str) -> list[EventRow]:
        """List all events of a session, in order."""
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
