"""What outlives a turn: the journal, and which of a backend's conversations belongs to which history.

    store = await open_store(settings, folder, redactor)
    found = await store.conversations.find(request.messages, Scope("team", "big", "platform"))
    await store.journal.append(Entry(…))        # on the disk when it returns
    await store.close()

SQLite in a file by default, PostgreSQL by its address; both behave the same. Several replicas may share a PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from callwright.errors import StoreError
from callwright.redaction import Redactor
from callwright.store.conversations import Conversations, Found
from callwright.store.database import Database, connect
from callwright.store.faults import as_store_error
from callwright.store.identity import Scope
from callwright.store.journal import Entry, Journal, Search
from callwright.store.migrations import migrate
from callwright.store.retention import Retention
from callwright.store.settings import StoreSettings, patterns
from callwright.store.writer import Writer

__all__ = ["Conversations", "Entry", "Found", "Journal", "Scope", "Search", "Store", "StoreSettings", "open_store"]


@dataclass(frozen=True)
class Store:
    """An open store; `close` writes what is left."""

    journal: Journal
    conversations: Conversations
    retention: Retention
    _writer: Writer
    _database: Database

    async def close(self) -> None:
        """Finish writing, and give back the database."""
        await self.retention.close()
        await self._writer.close()
        await self._database.close()


async def open_store(
    settings: StoreSettings, folder: Path, redactor: Redactor, *, clock: Callable[[], float] = time.time
) -> Store:
    """The store of these settings, its tables brought up to date. `folder` is for those that name no address.

    `redactor` knows the secrets of the moment. `ConfigError` for settings that cannot be, `StoreError` when the
    database cannot be reached or belongs to a newer version.
    """
    hidden = patterns(settings)
    database = connect(settings, folder)
    try:
        with as_store_error(f"the store {settings.shown or folder} cannot be opened"):
            async with database.writing.begin() as connection:
                await migrate(connection, clock=clock)
    except StoreError:
        await database.close()
        raise
    writer = Writer(database.writing)
    return Store(
        journal=Journal(writer, database.reading, keep=settings.keep, redactor=redactor, hidden=hidden),
        conversations=Conversations(writer, clock=clock),
        retention=Retention(writer, database.reading, settings, clock=clock),
        _writer=writer,
        _database=database,
    )
