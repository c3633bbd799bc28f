"""What files were before and after an agent wrote them, and what has become of each of its changes.

Contents are stored once for each session, compressed, under the digest of what they are; a row says which two belong
to a change. A session's rows are in the order in which they were planned, and nothing of them is ever rewritten but
their state.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.errors import as_store_error
from callwright.store.tables import contents, edits
from callwright.store.writer import DatabaseWriter

__all__ = ["Snapshot", "SnapshotState", "SnapshotStore", "compute_digest"]

SnapshotKind = Literal["edit", "undo", "keep"]
SnapshotState = Literal["planned", "done", "unmade", "kept", "undone"]

_BATCH_SIZE = 100
"""Contents, which may have megabytes."""

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One file of one change."""

    number: int = 0
    """Its place, which the store gives it."""
    path: str
    kind: SnapshotKind = "edit"
    """By the agent; or the person's wish to take it back, or to keep one hunk of it."""
    state: SnapshotState = "planned"
    task: int | None = None
    """None for what concerns all of them."""
    call: str = ""
    before: str | None
    """The digest of what it was; None for a file that was not there."""
    after: str | None
    mode: int | None = None
    """The rights of the file that was there."""
    folder: str = ""
    """The topmost folder that had to be made for it."""
    hunk: str = ""
    """The hunk that it is about, where it is not about all of the file."""


def compute_digest(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


class SnapshotStore:
    """The snapshots of all sessions. What a method has written is on the disk when it returns."""

    def __init__(self, writer: DatabaseWriter, reading: AsyncEngine, *, clock: Callable[[], float] = time.time) -> None:
        self._writer = writer
        self._read_engine = reading
        self._clock = clock

    async def add(self, session: str, snapshots: Sequence[Snapshot], data: Iterable[bytes]) -> list[Snapshot]:
        """Write rows, with the contents that they name; returns them with their numbers."""
        packed = await asyncio.to_thread(lambda: {compute_digest(each): zlib.compress(each) for each in data})
        rows = [{**msgspec.to_builtins(row), "session": session, "at": self._clock()} for row in snapshots]

        async def put(connection: AsyncConnection) -> list[int]:
            for name, each in packed.items():
                content = _INSERTS[connection.dialect.name](contents).values(session=session, digest=name, data=each)
                await connection.execute(content.on_conflict_do_nothing())
            numbers = []
            for row in rows:
                values = {name: value for name, value in row.items() if name != "number"}
                added = await connection.execute(insert(edits).values(**values).returning(edits.c.number))
                numbers.append(int(added.scalar_one()))
            return numbers

        numbers = await self._writer.write(put)
        return [msgspec.structs.replace(row, number=each) for row, each in zip(snapshots, numbers, strict=True)]

    async def set_states(self, states: Mapping[int, SnapshotState]) -> None:
        """What has become of these rows, all at once."""

        async def put(connection: AsyncConnection) -> None:
            for number, state in states.items():
                await connection.execute(update(edits).where(edits.c.number == number).values(state=state))

        if states:
            await self._writer.write(put)

    async def list_snapshots(self, session: str) -> list[Snapshot]:
        """All rows of a session, in order."""
        columns = [edits.c[field.name] for field in msgspec.structs.fields(Snapshot)]
        statement = select(*columns).where(edits.c.session == session).order_by(edits.c.number)
        with as_store_error("the snapshots cannot be read"):
            async with self._read_engine.connect() as connection:
                found = (await connection.execute(statement)).mappings().all()
        return [Snapshot(**row) for row in found]

    async def load_contents(self, session: str, names: Iterable[str]) -> dict[str, bytes]:
        """Contents by their digests. `StoreError` when one is not there, or not what it was."""
        wanted = sorted(set(names))
        packed: dict[str, bytes] = {}
        with as_store_error("the snapshots cannot be read"):
            async with self._read_engine.connect() as connection:
                for at in range(0, len(wanted), _BATCH_SIZE):
                    is_wanted = contents.c.digest.in_(wanted[at : at + _BATCH_SIZE])
                    statement = select(contents.c.digest, contents.c.data)
                    found = await connection.execute(statement.where(contents.c.session == session, is_wanted))
                    packed.update((row.digest, row.data) for row in found)
        return await asyncio.to_thread(
            lambda: {name: _decompress_content(name, packed.get(name, b"")) for name in wanted}
        )

    async def delete_session(self, session: str) -> None:
        """Delete all of a session."""

        async def change(connection: AsyncConnection) -> None:
            await connection.execute(delete(edits).where(edits.c.session == session))
            await connection.execute(delete(contents).where(contents.c.session == session))

        await self._writer.write(change)


def _decompress_content(name: str, packed: bytes) -> bytes:
    try:
        data = zlib.decompress(packed)
    except zlib.error:
        data = None
    if data is None or compute_digest(data) != name:
        raise StoreError(f"the snapshot {name[:12]} is missing or damaged")
    return data
