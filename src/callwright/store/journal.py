"""The journal: one entry per turn, with the client's request, each request to a model, its answer, and the response.

Secrets are removed before an entry is written, and an entry is on disk when `append` returns. A setting selects what is
recorded: nothing, the fields of the log, or everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.store.errors import as_store_error
from callwright.store.journal_records import JournalEntry, JournalQuery, remove_content
from callwright.store.journal_redaction import JournalRedactor
from callwright.store.settings import JournalLevel
from callwright.store.tables import CONTENT_COLUMNS, journal
from callwright.store.writer import DatabaseWriter

__all__ = ["Journal", "search_journal"]

_THREAD_THRESHOLD = 16_384
"""Longer entries are redacted in a thread, so that streams continue meanwhile. In characters."""

_TEXT_COLUMNS = ("request_id", "wire", "model", "client", "key", "problem")
_JSON_COLUMNS = {
    field.name: field
    for field in msgspec.structs.fields(JournalEntry)
    if field.name in ("record", "headers", "recalled", "asked", "client_got", "repairs")
}
"""The JSON columns, with the fields that define their types."""


class Journal:
    """Writes entries through the writer, and reads them on other connections."""

    def __init__(
        self, writer: DatabaseWriter, engine: AsyncEngine, *, level: JournalLevel, redactor: JournalRedactor
    ) -> None:
        self._writer = writer
        self._read_engine = engine
        self._level = level
        self._redactor = redactor
        self._busy = asyncio.Lock()

    async def append(self, entry: JournalEntry) -> int:
        """Write an entry. Returns its number once it is committed, or 0 when nothing is recorded."""
        if self._level == "off":
            return 0
        if self._level == "meta":
            entry = remove_content(entry)
        if entry.asked or len(entry.client_sent) > _THREAD_THRESHOLD:
            # One at a time: entries keep their order, and redaction uses one processor at most.
            async with self._busy:
                row = await asyncio.to_thread(self._build_row, entry)
        else:
            row = self._build_row(entry)
        size = sum(len(text.encode()) for text in row.values())
        more = {"at": entry.at, "status": entry.status, "cut": entry.cut, "size": size}

        async def put(connection: AsyncConnection) -> int:
            added = await connection.execute(insert(journal).values(**row, **more).returning(journal.c.number))
            return int(added.scalar_one())

        return await self._writer.write(put)

    async def search(self, query: JournalQuery) -> list[JournalEntry]:
        """Return the entries that match, newest first."""
        # Ids are stored redacted, so the query is redacted too.
        query = msgspec.structs.replace(query, request_id=self._redactor.redact_text(query.request_id))
        return await search_journal(self._read_engine, query)

    def _build_row(self, entry: JournalEntry) -> dict[str, str]:
        """Build the text columns of an entry, redacted."""
        row = {name: self._redactor.redact_text(getattr(entry, name)) for name in _TEXT_COLUMNS}
        for name in _JSON_COLUMNS:
            value = msgspec.to_builtins(getattr(entry, name))
            row[name] = msgspec.json.encode(self._redactor.redact_value(value)).decode()
        return row | {"client_sent": self._redactor.redact_body(entry.client_sent)}


async def search_journal(engine: AsyncEngine, query: JournalQuery) -> list[JournalEntry]:
    """Return the entries of a database that match, newest first."""
    statement = select(journal).where(*_build_conditions(query)).order_by(journal.c.number.desc()).limit(query.limit)
    with as_store_error("the journal cannot be read"):
        async with engine.connect() as connection:
            rows = (await connection.execute(statement)).mappings().all()
    return [_parse_entry(dict(row)) for row in rows]


def _build_conditions(query: JournalQuery) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions of a query."""
    if query.number is not None:
        yield journal.c.number == query.number
    if query.request_id:
        yield journal.c.request_id == query.request_id
    if query.since is not None:
        yield journal.c.at >= query.since
    if query.until is not None:
        yield journal.c.at < query.until
    if query.model:
        yield journal.c.model == query.model
    if query.failed:
        yield journal.c.status >= 400
    if query.text:
        yield or_(*(journal.c[body].icontains(query.text, autoescape=True) for body in CONTENT_COLUMNS))
    if query.before is not None:
        yield journal.c.number < query.before


def _parse_entry(row: dict[str, Any]) -> JournalEntry:
    del row["size"]
    for name, field in _JSON_COLUMNS.items():
        try:
            row[name] = msgspec.json.decode(row[name], type=field.type)
        except msgspec.ValidationError:
            # A `redact` pattern may mask a word that the format needs, such as a role.
            row |= {name: field.default, "cut": True}
    return JournalEntry(**row)
