"""Connects to a database and configures it.

There are two engines: one connection for writing, and several for reading. SQLite uses a write-ahead log, so readers
and the writer do not block each other, and `synchronous=full`, so committed data survives a power failure. PostgreSQL
does the same by default.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Dialect, event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import await_only, greenlet_spawn

from callwright.errors import StoreError
from callwright.store.settings import ADDRESS_OPTIONS, StoreSettings, check_store_settings

__all__ = ["Database", "build_database"]

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
_BUSY_TIMEOUT = "busy_timeout = 10000"
"""Another process may be writing. One transaction takes milliseconds."""
_WRITE_PRAGMAS = (
    _BUSY_TIMEOUT,
    # Must precede the first table. Space that retention frees is returned to the disk.
    "auto_vacuum = full",
    "journal_mode = wal",
    "synchronous = full",
)
_READ_PRAGMAS = (_BUSY_TIMEOUT, "query_only = on")
_TRIES, _PAUSE = 100, 0.05


class Database(NamedTuple):
    """The engines of one database."""

    write_engine: AsyncEngine
    read_engine: AsyncEngine

    async def close(self) -> None:
        """Close all connections."""
        await self.read_engine.dispose()
        await self.write_engine.dispose()


def build_database(settings: StoreSettings, folder: Path, *, create: bool = True) -> Database:
    """Create the engines of these settings; without an address the database is a file in `folder`. Connects later.

    Raises `ConfigError` for an invalid address, and `StoreError` when the file cannot be created, or is missing and
    `create` is False.
    """
    check_store_settings(settings)
    url = _build_url(settings, folder)
    # Parameters of a statement contain what people wrote and must not appear in error messages.
    options: dict[str, Any] = {"hide_parameters": True, "pool_pre_ping": True}
    database = Database(
        create_async_engine(url, pool_size=1, max_overflow=0, **options), create_async_engine(url, **options)
    )
    if url.get_backend_name() == "postgresql":
        return database
    path = Path(url.database or "")
    if create:
        _create_file(path)
    elif not path.is_file():
        raise StoreError(f"there is no journal at {path}. Record one with `callwright serve --journal full`")
    # `begin immediate` waits for other writers. A transaction that begins to write later would fail instead.
    for engine, begin, pragmas in (
        (database.write_engine, "begin immediate", _WRITE_PRAGMAS),
        (database.read_engine, "begin", _READ_PRAGMAS),
    ):
        event.listen(engine.sync_engine, "do_connect", _open_connection)
        event.listen(engine.sync_engine, "connect", partial(_configure_connection, pragmas))
        event.listen(engine.sync_engine, "begin", partial(_begin_transaction, begin))
    return database


def _open_connection(dialect: Dialect, _record: object, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    return await_only(_open_or_close(partial(dialect.connect, *arguments, **options)))


async def _open_or_close(connect: Callable[[], Any]) -> Any:
    """Connect. When the caller is cancelled meanwhile, close the connection: SQLite's driver would leave it open."""
    opening = asyncio.ensure_future(greenlet_spawn(connect))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await greenlet_spawn(opening.result().close)
        raise


def _begin_transaction(statement: str, connection: Connection) -> None:
    connection.exec_driver_sql(statement)


def _configure_connection(pragmas: Sequence[str], connection: Any, _record: object) -> None:
    connection.isolation_level = None  # stop Python's driver from starting transactions by itself
    cursor = connection.cursor()
    for pragma in pragmas:
        _set_pragma(cursor, pragma)
    cursor.close()


def _set_pragma(cursor: Any, pragma: str) -> None:
    """Set a pragma, with retries: SQLite does not wait while another process changes the journal mode."""
    for _ in range(_TRIES):
        try:
            cursor.execute(f"pragma {pragma}")
        except sqlite3.OperationalError:
            await_only(asyncio.sleep(_PAUSE))
        else:
            return
    cursor.execute(f"pragma {pragma}")


def _create_file(path: Path) -> None:
    """Create the file, readable by its owner only. SQLite gives its other files the same permissions."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"the store cannot be created: {error}") from error


def _build_url(settings: StoreSettings, folder: Path) -> URL:
    if not settings.address:
        return URL.create(_DRIVERS["sqlite"], database=str(folder / "callwright.db"))
    url = make_url(settings.address)
    query = {ADDRESS_OPTIONS[name]: value for name, value in url.query.items()}
    return url.set(drivername=_DRIVERS[url.drivername], query=query)
