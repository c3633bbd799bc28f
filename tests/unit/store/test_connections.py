"""Connections are closed by those who open them, also when the work that wanted one is cancelled."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import StoreError
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalQuery
from callwright.store.open import open_journal_search, open_store
from callwright.store.settings import StoreSettings
from tests.support.opened_store import entry, opened


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Every connection to SQLite that is opened during the test."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def record_connection(*arguments: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*arguments, **{**options, "check_same_thread": False}))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", record_connection)
    return made


def count_open(connections: list[sqlite3.Connection]) -> int:
    count = 0
    for connection in connections:
        try:
            connection.execute("select 1")
        except sqlite3.ProgrammingError:
            continue
        count += 1
        connection.close()
    return count


def test_a_store_that_is_closed_leaves_no_connection_open(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    async def main() -> None:
        async with opened(f"sqlite:///{tmp_path / 'store.db'}") as store:
            await store.journal.append(entry())
            await asyncio.gather(*(store.journal.search(JournalQuery()) for _ in range(5)))

    asyncio.run(main())
    assert len(connections) > 1
    assert count_open(connections) == 0


@pytest.mark.parametrize("rounds", range(12))
def test_a_connection_is_closed_when_nobody_waits_for_it_any_more(
    tmp_path: Path, connections: list[sqlite3.Connection], rounds: int
) -> None:
    async def main() -> None:
        async with opened(f"sqlite:///{tmp_path / 'store.db'}") as store:
            reading = asyncio.ensure_future(store.journal.search(JournalQuery()))
            for _ in range(rounds):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])

    asyncio.run(main())
    assert count_open(connections) == 0


@pytest.mark.parametrize("content", [b"no database " * 1000, b""], ids=["no database", "no tables"])
def test_a_store_that_cannot_be_opened_leaves_no_connection_open(
    tmp_path: Path, connections: list[sqlite3.Connection], content: bytes
) -> None:
    (tmp_path / "callwright.db").write_bytes(content)

    async def main() -> None:
        async with open_journal_search(StoreSettings(), tmp_path) as search:
            await search(JournalQuery())

    with pytest.raises(StoreError):
        asyncio.run(main())
    if content:
        with pytest.raises(StoreError):
            asyncio.run(open_store(StoreSettings(), tmp_path, Redactor()))
    assert connections
    assert count_open(connections) == 0
