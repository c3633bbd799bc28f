"""Retention: what is too old or too much is deleted, in the background, a little at a time.

Each deletion is a change of its own, so rows that are being written never wait for more than one of them.
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
"""Rows, which may have bodies of megabytes."""

_DAY_SECONDS = 24 * 60 * 60
_MEGABYTE_BYTES = 1_000_000
_SWEEP_SECONDS = 300.0


class RetentionSweeper:
    """Looks at the limits now and then, from the beginning on, until it is closed."""

    def __init__(
        self,
        writer: DatabaseWriter,
        reading: AsyncEngine,
        settings: StoreSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._read_engine = reading
        self._settings = settings
        self._clock = clock
        self._task = asyncio.create_task(self._run_sweeps())

    async def close(self) -> None:
        """Stop; what is left is deleted next time."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def delete_expired(self) -> int:
        """Delete what is beyond the limits; returns how many rows of the journal went."""
        gone = await self._delete_rows(
            journal, or_(self._build_age_condition(journal), journal.c.number <= await self._find_last_overflow())
        )
        await self._delete_rows(conversations, self._build_age_condition(conversations))
        return gone

    async def _run_sweeps(self) -> None:
        while True:
            try:
                if gone := await self.delete_expired():
                    log.info("the journal is within its limits again", extra={"fields": {"deleted_rows": gone}})
            except StoreError as error:
                log.warning("the journal was not cut back: %s", error)
            await asyncio.sleep(_SWEEP_SECONDS)

    def _build_age_condition(self, table: Table) -> ColumnElement[bool]:
        oldest = self._clock() - self._settings.days * _DAY_SECONDS if self._settings.days else 0.0
        return table.c.at < oldest

    async def _find_last_overflow(self) -> int:
        """The newest row that does not fit any more, counted from the end; 0 when all do."""
        if not self._settings.megabytes:
            return 0
        kept = func.sum(journal.c.size).over(order_by=journal.c.number.desc())
        sums = select(journal.c.number, kept.label("kept")).subquery()
        beyond = select(func.max(sums.c.number)).where(sums.c.kept > self._settings.megabytes * _MEGABYTE_BYTES)
        with as_store_error("the journal cannot be read"):
            async with self._read_engine.connect() as connection:
                return (await connection.execute(beyond)).scalar() or 0

    async def _delete_rows(self, table: Table, doomed: ColumnElement[bool]) -> int:
        # Rows that another replica is at are passed over: two that wait for each other would both fail.
        some = select(table.c.number).where(doomed).limit(_BATCH_SIZE).with_for_update(skip_locked=True)

        async def change(connection: AsyncConnection) -> int:
            return (await connection.execute(delete(table).where(table.c.number.in_(some)))).rowcount

        total = 0
        while gone := await self._writer.write(change):
            total += gone
        return total
