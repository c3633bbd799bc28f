"""The journal: one row for each turn, with what the client sent, what the model got and said, and what the client got.

A row is cleaned of secrets before it goes anywhere, and is on the disk when `append` returns. What is kept of it is a
setting: nothing, what the log says, or all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.store.cleaning import Cleaner
from callwright.store.entry import Entry, Search, outline
from callwright.store.faults import as_store_error
from callwright.store.schema import BODIES, journal
from callwright.store.settings import Keep
from callwright.store.writer import Writer

__all__ = ["Journal", "search"]

_LONG = 16_384
"""Characters; more are cleaned in a thread, so that streams go on between one expression and the next."""

_TEXTS = ("request_id", "wire", "model", "client", "key", "problem")
_STRUCTURED = {
    field.name: field
    for field in msgspec.structs.fields(Entry)
    if field.name in ("record", "headers", "recalled", "asked", "client_got", "repairs")
}
"""The columns that are JSON, and what they say."""


class Journal:
    """Writes rows through the one writer, and reads them beside it."""

    def __init__(self, writer: Writer, reading: AsyncEngine, *, keep: Keep, cleaner: Cleaner) -> None:
        self._writer = writer
        self._reading = reading
        self._keep = keep
        self._cleaner = cleaner
        self._busy = asyncio.Lock()

    async def append(self, entry: Entry) -> int:
        """Write a row; returns its number when it is committed, 0 when nothing is kept."""
        if self._keep == "off":
            return 0
        if self._keep == "meta":
            entry = outline(entry)
        if entry.asked or len(entry.client_sent) > _LONG:
            # One after the other: in the order in which they came, and on one processor at most.
            async with self._busy:
                row = await asyncio.to_thread(self._row, entry)
        else:
            row = self._row(entry)
        size = sum(len(text.encode()) for text in row.values())
        more = {"at": entry.at, "status": entry.status, "cut": entry.cut, "size": size}

        async def put(connection: AsyncConnection) -> int:
            added = await connection.execute(insert(journal).values(**row, **more).returning(journal.c.number))
            return int(added.scalar_one())

        return await self._writer.write(put)

    async def search(self, wanted: Search) -> list[Entry]:
        """The rows that are wanted, newest first."""
        # As ids are written, so are they looked for.
        wanted = msgspec.structs.replace(wanted, request_id=self._cleaner.text(wanted.request_id))
        return await search(self._reading, wanted)

    def _row(self, entry: Entry) -> dict[str, str]:
        """The columns that are text, as they may be written."""
        row = {name: self._cleaner.text(getattr(entry, name)) for name in _TEXTS}
        for name in _STRUCTURED:
            value = msgspec.to_builtins(getattr(entry, name))
            row[name] = msgspec.json.encode(self._cleaner.value(value)).decode()
        return row | {"client_sent": self._cleaner.body(entry.client_sent)}


async def search(reading: AsyncEngine, wanted: Search) -> list[Entry]:
    """The rows of a database that are wanted, newest first."""
    statement = select(journal).where(*_conditions(wanted)).order_by(journal.c.number.desc()).limit(wanted.limit)
    with as_store_error("the journal cannot be read"):
        async with reading.connect() as connection:
            rows = (await connection.execute(statement)).mappings().all()
    return [_entry(dict(row)) for row in rows]


def _conditions(wanted: Search) -> Iterator[ColumnElement[bool]]:
    """What a row must be."""
    if wanted.number is not None:
        yield journal.c.number == wanted.number
    if wanted.request_id:
        yield journal.c.request_id == wanted.request_id
    if wanted.since is not None:
        yield journal.c.at >= wanted.since
    if wanted.until is not None:
        yield journal.c.at < wanted.until
    if wanted.model:
        yield journal.c.model == wanted.model
    if wanted.failed:
        yield journal.c.status >= 400
    if wanted.text:
        yield or_(*(journal.c[body].icontains(wanted.text, autoescape=True) for body in BODIES))
    if wanted.before is not None:
        yield journal.c.number < wanted.before


def _entry(row: dict[str, Any]) -> Entry:
    del row["size"]
    for name, field in _STRUCTURED.items():
        try:
            row[name] = msgspec.json.decode(row[name], type=field.type)
        except msgspec.ValidationError:
            # An expression of the settings may mask words that have a meaning of their own, such as a role.
            row |= {name: field.default, "cut": True}
    return Entry(**row)
