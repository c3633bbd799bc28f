"""Deletes old and excess rows in the background, in small batches.

Each batch is a change of its own, so other writes never wait for more than one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from sqlalchemy import ColumnElement, Table, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.errors import as_store_error
from callwright.store.settings import StoreSettings
from callwright.store.tables import conversations, journal
from callwright.store.writer import DatabaseWriter

__all__ = ["RetentionSweeper"]

log = logging.getLogger("callwright.store")

_BATCH_SIZE = 50
"""Rows per batch. A row may contain megabytes."""

_DAY_SECONDS = 24 * 60 * 60
_MEGABYTE_BYTES = 1_000_000
_SWEEP_SECONDS = 300.0


class RetentionSweeper:
    """Enforces the limits at once and then every five minutes, until it is closed."""

    def __init__(
        self,
        writer: DatabaseWriter,
        read_engine: AsyncEngine,
        settings: StoreSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._read_engine = read_engine
        self._settings = settings
        self._clock = clock
        self._task = asyncio.create_task(self._run_sweeps())

    async def close(self) -> None:
        """Stop. The rest is deleted at the next start."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def delete_expired(self) -> int:
        """Delete rows beyond the limits, and return the number of deleted journal entries."""
        deleted = await self._delete_rows(
            journal, or_(self._build_age_condition(journal), journal.c.number <= await self._find_last_overflow())
        )
        await self._delete_rows(conversations, self._build_age_condition(conversations))
        return deleted

    async def _run_sweeps(self) -> None:
        while True:
            try:
                if deleted := await self.delete_expired():
                    log.info("expired journal entries deleted", extra={"fields": {"deleted_rows": deleted}})
            except StoreError as error:
                log.warning("expired journal entries were not deleted: %s", error)
            await asyncio.sleep(_SWEEP_SECONDS)

    def _build_age_condition(self, table: Table) -> ColumnElement[bool]:
        oldest = self._clock() - self._settings.days * _DAY_SECONDS if self._settings.days else 0.0
        return table.c.at < oldest

    async def _find_last_overflow(self) -> int:
        """Find the newest entry that exceeds the size limit, counting from the newest; 0 when all fit."""
        if not self._settings.megabytes:
            return 0
        running_size = func.sum(journal.c.size).over(order_by=journal.c.number.desc())
        sums = select(journal.c.number, running_size.label("running_size")).subquery()
        last_overflow = select(func.max(sums.c.number)).where(
            sums.c.running_size > self._settings.megabytes * _MEGABYTE_BYTES
        )
        with as_store_error("the journal cannot be read"):
            async with self._read_engine.connect() as connection:
                return (await connection.execute(last_overflow)).scalar() or 0

    async def _delete_rows(self, table: Table, condition: ColumnElement[bool]) -> int:
        # Rows locked by another replica are skipped: two that wait for each other would both fail.
        batch = select(table.c.number).where(condition).limit(_BATCH_SIZE).with_for_update(skip_locked=True)

        async def change(connection: AsyncConnection) -> int:
            return (await connection.execute(delete(table).where(table.c.number.in_(batch)))).rowcount

        total = 0
        while deleted := await self._writer.write(change):
            total += deleted
        return total
