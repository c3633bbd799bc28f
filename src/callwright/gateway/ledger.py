"""The usage ledger: requests and tokens by day, key, model and client, in SQLite.

One worker thread owns the connection, so turns never wait for the disk and rows are written in order. Without a file
the same database lives in memory. Days are UTC.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any

from callwright.errors import RequestError
from callwright.gateway.turn_record import TurnRecord

__all__ = ["USAGE_COLUMNS", "UsageLedger"]

log = logging.getLogger("callwright.usage")

USAGE_COLUMNS = ("day", "key", "model", "client")
_SUM_COLUMNS = ("requests", "prompt_tokens", "completion_tokens")
_CREATE_TABLE = """
create table if not exists usage (
    day text not null, key text not null, model text not null, client text not null,
    requests integer not null, prompt_tokens integer not null, completion_tokens integer not null,
    primary key (day, key, model, client)
) without rowid
"""
_ADD_TURN = """
insert into usage values (?, ?, ?, ?, 1, ?, ?)
on conflict (day, key, model, client) do update set
    requests = requests + 1,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens
"""


def _get_today() -> date:
    return datetime.now(UTC).date()


class UsageLedger:
    """Adds up what was used. `path` empty keeps it in memory."""

    def __init__(self, path: str = "", *, today: Callable[[], date] = _get_today) -> None:
        self._today = today
        self._worker = ThreadPoolExecutor(1, "ledger")
        self._database = self._worker.submit(_open_database, path or ":memory:").result()

    def add_turn(self, record: TurnRecord) -> None:
        """Note one turn; returns at once."""
        usage = record.usage
        row = (
            self._today().isoformat(), record.key, record.model, record.client,
            usage.prompt_tokens, usage.completion_tokens,
        )  # fmt: skip
        self._worker.submit(self._execute, _ADD_TURN, row).add_done_callback(_log_failure)

    async def query_usage(self, by: Sequence[str] = USAGE_COLUMNS, since: date | None = None) -> list[dict[str, Any]]:
        """Sums for each combination of these columns, from that day on. `RequestError` for an unknown column."""
        for column in by:
            if column not in USAGE_COLUMNS:
                raise RequestError(f"by: {column!r} is no column; use {', '.join(USAGE_COLUMNS)}.", param="by")
        wanted = [*by, *(f"sum({name})" for name in _SUM_COLUMNS)]
        groups = f" group by {', '.join(by)} order by {', '.join(by)}" if by else ""
        text = f"select {', '.join(wanted)} from usage where day >= ?{groups}"  # noqa: S608 - columns from COLUMNS only
        first = since.isoformat() if since else ""
        rows = await asyncio.get_running_loop().run_in_executor(self._worker, self._execute, text, (first,))
        names = [*by, *_SUM_COLUMNS]
        return [dict(zip(names, row, strict=True)) for row in rows if row[-1] is not None]

    def close(self) -> None:
        """Write what is left, and give back the file."""
        self._worker.submit(self._database.close)
        self._worker.shutdown()

    def _execute(self, text: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._database:
            return self._database.execute(text, values).fetchall()


def _open_database(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    # Write-ahead logging: `callwright usage` and other readers never block a turn's row.
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = normal")
    database.execute(_CREATE_TABLE)
    return database


def _log_failure(done: Future[list[tuple[Any, ...]]]) -> None:
    if error := done.exception():
        log.error("the usage of a turn was not written: %s", error)
