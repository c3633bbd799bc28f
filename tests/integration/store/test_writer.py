"""The one writer: acknowledged means committed, and one that fails harms no other."""

from __future__ import annotations

import asyncio
import sqlite3
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import await_only

from callwright.errors import StoreError
from callwright.store import database as databases
from callwright.store.database import Database, build_database
from callwright.store.settings import StoreSettings
from callwright.store.writer import DatabaseChange, DatabaseWriter
from tests.support.opened_store import NOWHERE


@asynccontextmanager
async def _writing(address: str) -> AsyncIterator[tuple[DatabaseWriter, Database]]:
    database = build_database(StoreSettings(address=address), NOWHERE)
    async with database.write_engine.begin() as connection:
        await connection.execute(text("create table seen (a integer primary key)"))
    writer = DatabaseWriter(database.write_engine)
    try:
        yield writer, database
    finally:
        await writer.close()
        await database.close()


def _put(number: int) -> DatabaseChange[int]:
    async def change(connection: AsyncConnection) -> int:
        await connection.execute(text("insert into seen values (:a)"), {"a": number})
        return number

    return change


async def _seen(database: Database) -> set[int]:
    async with database.read_engine.connect() as connection:
        return set((await connection.execute(text("select a from seen"))).scalars())


def test_what_waits_together_is_committed_together_and_answered_in_order(address: str) -> None:
    async def main() -> None:
        async with _writing(address) as (writer, database):
            commits = []
            event.listen(database.write_engine.sync_engine, "commit", commits.append)
            assert await asyncio.gather(*(writer.write(_put(number)) for number in range(200))) == list(range(200))
            assert len(commits) == 1
            assert await _seen(database) == set(range(200))

    asyncio.run(main())


def test_nothing_is_acknowledged_while_its_commit_is_on_the_way(address: str) -> None:
    done_at_the_end_of_a_commit = []

    async def main() -> None:
        def slow(_connection: object) -> None:
            await_only(asyncio.sleep(0.05))
            done_at_the_end_of_a_commit.extend(task.done() for task in tasks)

        async with _writing(address) as (writer, database):
            event.listen(database.write_engine.sync_engine, "commit", slow)
            tasks = [asyncio.ensure_future(writer.write(_put(number))) for number in range(3)]
            await asyncio.gather(*tasks)

    asyncio.run(main())
    assert done_at_the_end_of_a_commit == [False] * 3


def test_a_change_that_fails_spoils_no_other(address: str) -> None:
    async def main() -> None:
        async with _writing(address) as (writer, database):
            numbers = [1, 2, 2, 3, 1, 4]
            results = await asyncio.gather(*(writer.write(_put(number)) for number in numbers), return_exceptions=True)
            assert [result if isinstance(result, int) else type(result) for result in results] == [
                1, 2, StoreError, 3, StoreError, 4,
            ]  # fmt: skip
            assert await _seen(database) == {1, 2, 3, 4}

    asyncio.run(main())


def test_a_commit_that_fails_is_told_to_all_and_not_tried_again(address: str) -> None:
    """A server that goes away during a commit may have made it; a second try would write everything twice."""
    tried = []

    def fail(_connection: object) -> None:
        tried.append(1)
        raise OperationalError("commit", None, ConnectionResetError())

    async def main() -> None:
        async with _writing(address) as (writer, database):
            event.listen(database.write_engine.sync_engine, "commit", fail)
            results = await asyncio.gather(*map(writer.write, map(_put, range(3))), return_exceptions=True)
            assert [type(result) for result in results] == [StoreError] * 3
            event.remove(database.write_engine.sync_engine, "commit", fail)
            assert len(tried) == 1
            assert await writer.write(_put(9)) == 9
            assert await _seen(database) == {9}

    asyncio.run(main())


def test_an_error_does_not_say_what_was_being_written(address: str) -> None:
    async def wrong(connection: AsyncConnection) -> None:
        await connection.execute(text("insert into nowhere values (:words)"), {"words": "private words"})

    async def main() -> None:
        async with _writing(address) as (writer, _):
            with pytest.raises(StoreError, match="nowhere") as caught:
                await writer.write(wrong)
            assert "private words" not in "".join(traceback.format_exception(caught.value))

    asyncio.run(main())


def test_nobody_waits_for_ever_when_a_change_has_a_bug(address: str) -> None:
    async def bug(_connection: AsyncConnection) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        database = build_database(StoreSettings(address=address), NOWHERE)
        writer = DatabaseWriter(database.write_engine)
        async with asyncio.timeout(10):
            results = await asyncio.gather(*map(writer.write, (bug, bug)), return_exceptions=True)
            assert [type(result) for result in results] == [StoreError] * 2
            with pytest.raises(StoreError, match="closed"):
                await writer.write(bug)
            with pytest.raises(ZeroDivisionError):
                await writer.close()
        await database.close()

    asyncio.run(main())


def test_a_caller_that_leaves_does_not_hold_up_the_others(address: str) -> None:
    async def main() -> None:
        async with _writing(address) as (writer, database):
            leaving = [asyncio.ensure_future(writer.write(_put(number))) for number in range(50)]
            staying = [asyncio.ensure_future(writer.write(_put(number))) for number in range(50, 100)]
            for number, task in enumerate(leaving):
                if number % 10 == 0:
                    await asyncio.sleep(0)
                task.cancel()
            assert await asyncio.gather(*staying) == list(range(50, 100))
            assert set(range(50, 100)) <= await _seen(database)

    asyncio.run(main())


def test_a_lock_is_waited_for_once_and_not_by_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_WRITE_PRAGMAS", ("busy_timeout = 100", *databases._WRITE_PRAGMAS[1:]))
    path = tmp_path / "store.db"

    async def main() -> None:
        async with _writing(f"sqlite:///{path}") as (writer, _):
            await writer.write(_put(0))
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("begin immediate")
            async with asyncio.timeout(3):  # forty waits, one after the other, would take longer
                waiting = (writer.write(_put(number)) for number in range(1, 41))
                results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {StoreError}
            other.execute("rollback")
            other.close()
            assert await writer.write(_put(41)) == 41

    asyncio.run(main())
