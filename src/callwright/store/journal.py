"""The journal: one row for each turn, with what the client sent, what the model got and said, and what the client got.

A row is cleaned of secrets before it goes anywhere, and is on the disk when `append` returns. What is kept of it is a
setting; the four bodies are kept only when everything is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from sqlalchemy import ColumnElement, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.model import Repair, Usage
from callwright.redaction import MASK, Redactor
from callwright.store.faults import as_store_error
from callwright.store.schema import BODIES, journal, storable
from callwright.store.settings import Keep
from callwright.store.writer import Writer

__all__ = ["Entry", "Journal", "Search"]

_LONG = 16_384
"""Characters; more are cleaned in a thread, so that streams go on between one expression and the next."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    number: int = 0
    """Its place in the journal, which gives it."""
    at: float
    """When the request came, in seconds since 1970."""
    request_id: str
    """The client's or ours; a client may use one more than once."""
    wire: str
    model: str
    """As the configuration names it."""
    client: str = ""
    """The profile."""
    key: str = ""
    """The name of the key, never the key."""
    client_sent: str = ""
    model_got: str = ""
    model_said: str = ""
    client_got: str = ""
    repairs: tuple[Repair, ...] = ()
    attempts: tuple[str, ...] = ()
    """Why the model was asked again, each time."""
    usage: Usage = Usage()


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows, newest first. What is left out does not matter."""

    request_id: str = ""
    since: float | None = None
    until: float | None = None
    """Not including this moment."""
    model: str = ""
    text: str = ""
    """Somewhere in one of the bodies, in capitals or not."""
    before: int | None = None
    """Only rows with smaller numbers: the next page."""
    limit: Annotated[int, msgspec.Meta(ge=1)] = 100

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """What a row must be."""
        if self.request_id:
            yield journal.c.request_id == self.request_id
        if self.since is not None:
            yield journal.c.at >= self.since
        if self.until is not None:
            yield journal.c.at < self.until
        if self.model:
            yield journal.c.model == self.model
        if self.text:
            yield or_(*(journal.c[body].icontains(self.text, autoescape=True) for body in BODIES))
        if self.before is not None:
            yield journal.c.number < self.before


class Journal:
    """Writes rows through the one writer, and reads them beside it."""

    def __init__(
        self, writer: Writer, reading: AsyncEngine, *, keep: Keep, redactor: Redactor, hidden: Sequence[re.Pattern[str]]
    ) -> None:
        self._writer = writer
        self._reading = reading
        self._keep = keep
        self._redactor = redactor
        self._hidden = hidden

    async def append(self, entry: Entry) -> int:
        """Write a row; returns its number when it is committed, 0 when nothing is kept."""
        if self._keep == "off":
            return 0
        if self._keep == "meta":
            entry = msgspec.structs.replace(entry, **dict.fromkeys(BODIES, ""))
        if sum(len(getattr(entry, body)) for body in BODIES) > _LONG:
            row = await asyncio.to_thread(self._row, entry)
        else:
            row = self._row(entry)
        size = sum(len(text.encode()) for text in row.values())

        async def put(connection: AsyncConnection) -> int:
            added = await connection.execute(
                insert(journal).values(**row, at=entry.at, size=size).returning(journal.c.number)
            )
            return int(added.scalar_one())

        return await self._writer.write(put)

    async def search(self, wanted: Search) -> list[Entry]:
        """The rows that are wanted, newest first."""
        # As ids are written, so are they looked for.
        wanted = msgspec.structs.replace(wanted, request_id=self._clean(wanted.request_id))
        statement = select(journal).where(*wanted.conditions()).order_by(journal.c.number.desc()).limit(wanted.limit)
        with as_store_error("the journal cannot be read"):
            async with self._reading.connect() as connection:
                rows = (await connection.execute(statement)).mappings().all()
        return [_entry(dict(row)) for row in rows]

    def _row(self, entry: Entry) -> dict[str, str]:
        """The columns that are text, as they may be written. Structured ones are cleaned before they become JSON."""
        entry = msgspec.structs.replace(
            entry,
            request_id=self._clean(entry.request_id),
            repairs=tuple(Repair(repair.kind, self._clean(repair.detail)) for repair in entry.repairs),
            attempts=tuple(map(self._clean, entry.attempts)),
            **{body: self._clean(getattr(entry, body)) for body in BODIES},
        )
        fields: dict[str, Any] = msgspec.structs.asdict(entry)
        del fields["number"], fields["at"]
        fields |= {name: msgspec.json.encode(fields[name]).decode() for name in _STRUCTURED}
        return {name: storable(text) for name, text in fields.items()}

    def _clean(self, text: str) -> str:
        text = self._redactor.clean(storable(text))
        for pattern in self._hidden:
            text = pattern.sub(MASK, text)
        return text


_STRUCTURED: dict[str, Any] = {"repairs": tuple[Repair, ...], "attempts": tuple[str, ...], "usage": Usage}
"""The columns that are JSON, and what they say."""


def _entry(row: dict[str, Any]) -> Entry:
    del row["size"]
    said = {name: msgspec.json.decode(row[name], type=kind) for name, kind in _STRUCTURED.items()}
    return Entry(**row | said)
