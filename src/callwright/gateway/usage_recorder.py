"""Records the usage of turns: requests and tokens by day, key, model and client.

A turn only adds numbers in memory. They go to the store in the background, if there is one, and stay in memory
otherwise; what the store refuses is written with the next turns. A query sees every turn that finished before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from callwright.errors import RequestError, StoreError
from callwright.gateway.journal_writer import JournalWriter
from callwright.gateway.turn_record import TurnRecord
from callwright.store.usage_records import USAGE_COLUMNS, UsageRow, UsageTotals, sum_usage_rows

__all__ = ["UsageRecorder"]

log = logging.getLogger("callwright.usage")

_WRITE_DELAY_SECONDS = 1.0
"""Seconds from a turn until its usage is written. Turns that finish meanwhile share the commit."""
_CLOSE_SECONDS = 5.0
"""Seconds for writing the rest when the service stops."""


def _get_today() -> date:
    return datetime.now(UTC).date()


class UsageRecorder:
    """Adds up the usage of turns. One instance lives as long as the service."""

    def __init__(self, journal_writer: JournalWriter, *, today: Callable[[], date] = _get_today) -> None:
        self._journal_writer = journal_writer
        self._today = today
        self._unwritten = UsageTotals()
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def add_turn(self, record: TurnRecord) -> None:
        """Add one turn. Returns at once."""
        usage, day = record.usage, self._today().isoformat()
        self._unwritten.add_row(
            UsageRow(day, record.key, record.model, record.client, 1, usage.prompt_tokens, usage.completion_tokens)
        )
        if self._journal_writer.has_store and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_DELAY_SECONDS, self._start_writing)

    async def query_usage(self, by: Sequence[str] = USAGE_COLUMNS, since: date | None = None) -> list[dict[str, Any]]:
        """Sum the usage for each combination of these columns, from that day on. Raises `RequestError` for an unknown
        column, and `StoreError` when the store cannot be read."""
        for column in by:
            if column not in USAGE_COLUMNS:
                raise RequestError(f"by must be a list of {', '.join(USAGE_COLUMNS)}, not {column!r}.", param="by")
        await self._write_rows()
        async with self._writing:  # what is on its way to the store is neither there nor here
            stored = await self._query_store(by, since)
            unwritten = [row._asdict() for row in self._unwritten.list_rows(since)]
        return sum_usage_rows([*stored, *unwritten], by)

    async def close(self) -> None:
        """Write the rest within the time limit."""
        self._cancel_timer()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._write_rows()
        except TimeoutError:
            log.error("usage of the last turns not written: the store is too slow")  # noqa: TRY400 - no bug

    async def _query_store(self, by: Sequence[str], since: date | None) -> list[dict[str, Any]]:
        if not self._journal_writer.has_store:
            return []
        store = await self._journal_writer.get_store()
        if store is None:
            raise StoreError("the store of the usage is not open at the moment")
        return await store.usage.query_usage(by, since)

    def _start_writing(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._write_rows())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _write_rows(self) -> None:
        """Write what is not yet in the store, if there is one. What it refuses stays in memory."""
        async with self._writing:
            if self._unwritten.is_empty or (store := await self._journal_writer.get_store()) is None:
                return
            rows = self._unwritten.take_rows()
            try:
                await store.usage.add_usage(rows)
            except StoreError as problem:
                for row in rows:
                    self._unwritten.add_row(row)
                log.error("usage not written, it is tried again with the next turn: %s", problem)  # noqa: TRY400 - no bug
