"""Opens a store, for reading and writing or for reading only.

    store = await open_store(settings, folder, redactor)
    match = await store.conversations.find(request.messages, ConversationScope("team", "big", "platform"))
    await store.journal.append(JournalEntry(…))        # on disk when it returns
    await store.close()

The default is a SQLite file; an address selects PostgreSQL, which behaves the same and may be shared by several
replicas.
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
from callwright.store.conversations import ConversationStore
from callwright.store.database import Database, build_database
from callwright.store.errors import as_store_error
from callwright.store.journal import Journal, search_journal
from callwright.store.journal_records import JournalEntry, JournalQuery
from callwright.store.journal_redaction import JournalRedactor
from callwright.store.migrations import run_migrations
from callwright.store.retention import RetentionSweeper
from callwright.store.session_store import SessionEventStore
from callwright.store.settings import StoreSettings, compile_redactions
from callwright.store.snapshots import SnapshotStore
from callwright.store.usage_table import UsageStore
from callwright.store.writer import DatabaseWriter

__all__ = ["AgentStore", "JournalSearch", "Store", "open_agent_store", "open_journal_search", "open_store"]

JournalSearch = Callable[[JournalQuery], Awaitable[list[JournalEntry]]]
"""Searches a journal."""


@dataclass(frozen=True)
class Store:
    """An open store. `close` writes what is pending."""

    journal: Journal
    conversations: ConversationStore
    retention: RetentionSweeper
    snapshots: SnapshotStore
    usage: UsageStore
    _writer: DatabaseWriter
    _database: Database

    async def close(self) -> None:
        """Finish writing, and close the database."""
        await self.retention.close()
        await self._writer.close()
        await self._database.close()


class AgentStore(NamedTuple):
    """The parts of a store that the agent uses."""

    sessions: SessionEventStore
    snapshots: SnapshotStore


async def open_store(
    settings: StoreSettings, folder: Path, redactor: Redactor, *, clock: Callable[[], float] = time.time
) -> Store:
    """Open the store of these settings and migrate its tables. `folder` holds the file when there is no address.

    `redactor` knows the current secrets. Raises `ConfigError` for invalid settings, and `StoreError` when the database
    cannot be reached or belongs to a newer version.
    """
    patterns = compile_redactions(settings)
    database = await _open_database(settings, folder, clock)
    writer = DatabaseWriter(database.write_engine)
    return Store(
        journal=Journal(
            writer, database.read_engine, level=settings.journal, redactor=JournalRedactor(redactor, patterns)
        ),
        conversations=ConversationStore(writer, clock=clock),
        retention=RetentionSweeper(writer, database.read_engine, settings, clock=clock),
        snapshots=SnapshotStore(writer, database.read_engine, clock=clock),
        usage=UsageStore(writer, database.read_engine),
        _writer=writer,
        _database=database,
    )


async def _open_database(settings: StoreSettings, folder: Path, clock: Callable[[], float]) -> Database:
    database = build_database(settings, folder)
    try:
        with as_store_error(f"the store {settings.display_address or folder} cannot be opened"):
            async with database.write_engine.begin() as connection:
                await run_migrations(connection, clock=clock)
    except StoreError:
        await database.close()
        raise
    return database


@asynccontextmanager
async def open_agent_store(
    settings: StoreSettings, folder: Path, *, clock: Callable[[], float] = time.time
) -> AsyncIterator[AgentStore]:
    """Open the store of the agent's sessions and snapshots, in the same database."""
    database = await _open_database(settings, folder, clock)
    writer = DatabaseWriter(database.write_engine)
    try:
        yield AgentStore(SessionEventStore(writer, database.read_engine), SnapshotStore(writer, database.read_engine))
    finally:
        await writer.close()
        await database.close()


@asynccontextmanager
async def open_journal_search(settings: StoreSettings, folder: Path) -> AsyncIterator[JournalSearch]:
    """Open the journal for reading only: nothing is created, changed or deleted. Raises `StoreError` when there is no
    journal."""
    database = build_database(settings, folder, create=False)
    try:
        yield partial(search_journal, database.read_engine)
    finally:
        await database.close()
