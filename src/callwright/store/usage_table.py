"""The usage table: requests and tokens by day, key, model and client. Gateways that share a database share it.

Each gateway adds to the same rows, in one statement per row, so no gateway overwrites what another one added. Rows are
added in the order of their columns: two gateways that wait for each other's rows would both fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.store.errors import as_store_error
from callwright.store.tables import INSERTS, usage
from callwright.store.usage_records import USAGE_COLUMNS, USAGE_SUMS, UsageRow
from callwright.store.writer import DatabaseWriter

__all__ = ["UsageStore"]


class UsageStore:
    """Adds rows through the writer, and reads them on other connections."""

    def __init__(self, writer: DatabaseWriter, read_engine: AsyncEngine) -> None:
        self._writer = writer
        self._read_engine = read_engine

    async def add_usage(self, rows: Sequence[UsageRow]) -> None:
        """Add these rows to the stored ones, in one commit. Raises `StoreError` when none was stored."""
        values = [row._asdict() for row in sorted(rows)]

        async def add(connection: AsyncConnection) -> None:
            insert = INSERTS[connection.dialect.name](usage)
            sums = {name: usage.c[name] + insert.excluded[name] for name in USAGE_SUMS}
            await connection.execute(insert.on_conflict_do_update(index_elements=USAGE_COLUMNS, set_=sums), values)

        if values:
            await self._writer.write(add)

    async def query_usage(self, by: Sequence[str], since: date | None = None) -> list[dict[str, Any]]:
        """Sum the usage for each combination of these columns, from that day on, unsorted."""
        names = list(dict.fromkeys(by))
        columns = [usage.c[name] for name in names]
        sums = [func.sum(usage.c[name]) for name in USAGE_SUMS]
        query = select(*columns, *sums).where(usage.c.day >= (since.isoformat() if since else "")).group_by(*columns)
        with as_store_error("the usage cannot be read"):
            async with self._read_engine.connect() as connection:
                rows = (await connection.execute(query)).all()
        count = len(names)
        return [
            # PostgreSQL sums integers to decimals. Without a group it sums nothing to null.
            {**dict(zip(names, row[:count], strict=True)), **dict(zip(USAGE_SUMS, map(int, row[count:]), strict=True))}
            for row in rows
            if row[-1] is not None
        ]
