"""Opening a store, and reading one that somebody else writes.

    store = await open_store(settings, folder, redactor)
    found = await store.conversations.find(request.messages, Scope("team", "big", "platform"))
    await store.journal.append(Entry(…))        # on the disk when it returns
    await store.close()

SQLite in a file by default, PostgreSQL by its address; both behave the same. Several replicas may share a PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from callwright.errors import StoreError
from callwright.redaction import Redactor
from callwright.store.cleaning import Cleaner
from callwright.store.conversations import Conversations
from callwright.store.database import Database, connect
from callwright.store.entry import Entry, Search
from callwright.store.faults import as_store_error
from callwright.store.journal import Journal, search
from callwright.store.migrations import migrate
from callwright.store.retention import Retention
from callwright.store.sessions import Sessions
from callwright.store.settings import StoreSettings, patterns
from callwright.store.snapshots import Snapshots
from callwright.store.writer import Writer

__all__ = ["Find", "SessionStore", "Store", "open_store", "reading", "sessions_of"]

Find = Callable[[Search], Awaitable[list[Entry]]]
"""Looks for rows of a journal."""


@dataclass(frozen=True)
class Store:
    """An open store; `close` writes what is left."""

    journal: Journal
    conversations: Conversations
    retention: Retention
    snapshots: Snapshots
    _writer: Writer
    _database: Database

    async def close(self) -> None:
        """Finish writing, and give back the database."""
        await self.retention.close()
        await self._writer.close()
        await self._database.close()


class SessionStore(NamedTuple):
    """The agent's half of a store."""

    sessions: Sessions
    snapshots: Snapshots


async def open_store(
    settings: StoreSettings, folder: Path, redactor: Redactor, *, clock: Callable[[], float] = time.time
) -> Store:
    """The store of these settings, its tables brought up to date. `folder` is for those that name no address.

    `redactor` knows the secrets of the moment. `ConfigError` for settings that cannot be, `StoreError` when the
    database cannot be reached or belongs to a newer version.
    """
    hidden = patterns(settings)
    database = await _opened(settings, folder, clock)
    writer = Writer(database.writing)
    return Store(
        journal=Journal(writer, database.reading, keep=settings.journal, cleaner=Cleaner(redactor, hidden)),
        conversations=Conversations(writer, clock=clock),
        retention=Retention(writer, database.reading, settings, clock=clock),
        snapshots=Snapshots(writer, database.reading, clock=clock),
        _writer=writer,
        _database=database,
    )


async def _opened(settings: StoreSettings, folder: Path, clock: Callable[[], float]) -> Database:
    database = connect(settings, folder)
    try:
        with as_store_error(f"the store {settings.shown or folder} cannot be opened"):
            async with database.writing.begin() as connection:
                await migrate(connection, clock=clock)
    except StoreError:
        await database.close()
        raise
    return database


@asynccontextmanager
async def sessions_of(
    settings: StoreSettings, folder: Path, *, clock: Callable[[], float] = time.time
) -> AsyncIterator[SessionStore]:
    """Where the agent keeps its sessions and what they changed, in the same database."""
    database = await _opened(settings, folder, clock)
    writer = Writer(database.writing)
    try:
        yield SessionStore(Sessions(writer, database.reading), Snapshots(writer, database.reading))
    finally:
        await writer.close()
        await database.close()


@asynccontextmanager
async def reading(settings: StoreSettings, folder: Path) -> AsyncIterator[Find]:
    """The journal of these settings, for who only reads: nothing is made, changed or deleted. `StoreError` when there
    is none."""
    database = connect(settings, folder, make=False)
    try:
        yield partial(search, database.reading)
    finally:
        await database.close()
