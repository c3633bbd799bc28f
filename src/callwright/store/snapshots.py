"""Stores the contents of files before and after an agent's changes, and the state of each change.

Contents are stored once per session, compressed, by digest; a row refers to the two contents of a change. The rows of a
session are in the order in which they were planned, and only their state is ever updated.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.errors import as_store_error
from callwright.store.tables import INSERTS, contents, edits
from callwright.store.writer import DatabaseWriter

__all__ = ["Snapshot", "SnapshotState", "SnapshotStore", "compute_digest"]

SnapshotKind = Literal["edit", "undo", "keep"]
SnapshotState = Literal["planned", "done", "unmade", "kept", "undone"]

_BATCH_SIZE = 100
"""Contents per statement. One may have megabytes."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One file of one change."""

    number: int = 0
    """Its number, which the store assigns."""
    path: str
    kind: SnapshotKind = "edit"
    """`edit`: a change by the agent. `undo`, `keep`: a request of the user to revert it, or to keep one hunk."""
    state: SnapshotState = "planned"
    task: int | None = None
    """The number of the task; None for all tasks."""
    call: str = ""
    before: str | None
    """Digest of the content before the change; None for a new file."""
    after: str | None
    mode: int | None = None
    """Permissions of the existing file."""
    folder: str = ""
    """The topmost folder that was created for it."""
    hunk: str = ""
    """The hunk that it concerns; empty for the whole file."""


def compute_digest(data: bytes) -> str:
    """Compute the digest of a content."""
    return hashlib.sha256(data).hexdigest()


class SnapshotStore:
    """The snapshots of all sessions. Each method returns when its data is on disk."""

    def __init__(
        self, writer: DatabaseWriter, read_engine: AsyncEngine, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._writer = writer
        self._read_engine = read_engine
        self._clock = clock

    async def add(self, session: str, snapshots: Sequence[Snapshot], data: Iterable[bytes]) -> list[Snapshot]:
        """Add rows and the contents that they refer to. Returns the rows with their numbers."""
        packed = await asyncio.to_thread(lambda: {compute_digest(each): zlib.compress(each) for each in data})
        rows = [{**msgspec.to_builtins(row), "session": session, "at": self._clock()} for row in snapshots]

        async def put(connection: AsyncConnection) -> list[int]:
            for name, each in packed.items():
                content = INSERTS[connection.dialect.name](contents).values(session=session, digest=name, data=each)
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
        """Update the states of these rows in one change."""

        async def put(connection: AsyncConnection) -> None:
            for number, state in states.items():
                await connection.execute(update(edits).where(edits.c.number == number).values(state=state))

        if states:
            await self._writer.write(put)

    async def list_snapshots(self, session: str) -> list[Snapshot]:
        """List all rows of a session, in order."""
        columns = [edits.c[field.name] for field in msgspec.structs.fields(Snapshot)]
        statement = select(*columns).where(edits.c.session == session).order_by(edits.c.number)
        with as_store_error("the snapshots cannot be read"):
            async with self._read_engine.connect() as connection:
                found = (await connection.execute(statement)).mappings().all()
        return [Snapshot(**row) for row in found]

    async def load_contents(self, session: str, names: Iterable[str]) -> dict[str, bytes]:
        """Load contents by digest. Raises `StoreError` when one is missing or damaged."""
        wanted = sorted(set(names))
        packed: dict[str, bytes] = {}
        with as_store_error("the snapshots cannot be read"):
            async with self._read_engine.connect() as connection:
                for start in range(0, len(wanted), _BATCH_SIZE):
                    is_wanted = contents.c.digest.in_(wanted[start : start + _BATCH_SIZE])
                    statement = select(contents.c.digest, contents.c.data)
                    found = await connection.execute(statement.where(contents.c.session == session, is_wanted))
                    packed.update((row.digest, row.data) for row in found)
        return await asyncio.to_thread(
            lambda: {name: _decompress_content(name, packed.get(name, b"")) for name in wanted}
        )

    async def delete_session(self, session: str) -> None:
        """Delete everything of a session."""

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
