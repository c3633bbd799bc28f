"""The store of snapshots: contents once, rows in order, sessions apart, damage noticed."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import func, select, update

from callwright.errors import StoreError
from callwright.store.snapshots import Snapshot, compute_digest
from callwright.store.tables import contents
from tests.support.opened_store import opened

OLD, NEW = b"old\n" * 1000, bytes(range(256))


def snapshot(path: str = "a.txt", **more: object) -> Snapshot:
    return Snapshot(**{"path": path, "before": compute_digest(OLD), "after": compute_digest(NEW), **more})


def test_rows_and_contents_come_back_as_they_were(address: str) -> None:
    given = [snapshot(task=1, call="c", mode=0o755, folder="x"), snapshot("ü.txt", before=None, kind="undo", hunk="h")]

    async def main() -> None:
        async with opened(address) as store:
            added = await store.snapshots.add("one", given, [OLD, NEW])
            await store.snapshots.add("two", given[:1], [OLD, NEW])
        async with opened(address) as store:
            assert await store.snapshots.list_snapshots("one") == added
            names = [compute_digest(OLD), compute_digest(NEW), compute_digest(OLD)]
            assert await store.snapshots.load_contents("one", names) == {
                compute_digest(OLD): OLD,
                compute_digest(NEW): NEW,
            }
            await store.snapshots.set_states({added[0].number: "done", added[1].number: "unmade"})
            assert [row.state for row in await store.snapshots.list_snapshots("one")] == ["done", "unmade"]
            assert [row.state for row in await store.snapshots.list_snapshots("two")] == ["planned"]

    asyncio.run(main())


def test_more_contents_than_fit_into_one_statement_come_back(address: str) -> None:
    many = [b"%d" % number for number in range(250)]

    async def main() -> None:
        async with opened(address) as store:
            await store.snapshots.add("one", [], many)
            found = await store.snapshots.load_contents("one", map(compute_digest, many))
            assert found == {compute_digest(each): each for each in many}

    asyncio.run(main())


def test_a_content_is_stored_once_and_compressed(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            for _ in range(3):
                await store.snapshots.add("one", [snapshot()], [OLD, NEW])
            async with store._database.read_engine.connect() as connection:
                sizes = (await connection.execute(select(func.length(contents.c.data)))).scalars().all()
            assert len(sizes) == 2
            assert min(sizes) < 100

    asyncio.run(main())


def test_a_forgotten_session_takes_nothing_of_another(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            for session in ("one", "two"):
                await store.snapshots.add(session, [snapshot()], [OLD, NEW])
            await store.snapshots.delete_session("one")
            assert await store.snapshots.list_snapshots("one") == []
            with pytest.raises(StoreError, match="missing or damaged"):
                await store.snapshots.load_contents("one", [compute_digest(OLD)])
            assert len(await store.snapshots.list_snapshots("two")) == 1
            assert await store.snapshots.load_contents("two", [compute_digest(OLD)]) == {compute_digest(OLD): OLD}

    asyncio.run(main())


@pytest.mark.parametrize("damage", [b"no zlib", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_content_is_never_given_out(address: str, damage: bytes) -> None:
    async def main() -> None:
        async with opened(address) as store:
            await store.snapshots.add("one", [], [OLD])
            async with store._database.write_engine.begin() as connection:
                await connection.execute(update(contents).values(data=damage))
            with pytest.raises(StoreError, match="missing or damaged"):
                await store.snapshots.load_contents("one", [compute_digest(OLD)])

    asyncio.run(main())
