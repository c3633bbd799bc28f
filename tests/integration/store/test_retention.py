"""What is too old or too much goes, the oldest first, and nothing else does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callwright.model import Message, Text
from callwright.store import retention as module
from callwright.store.conversations import MatchedConversation
from callwright.store.identity import ConversationScope
from callwright.store.journal_records import JournalQuery
from callwright.store.open import Store
from tests.support.opened_store import entry, opened

DAY = 86_400
NOW = 100 * DAY
SCOPE = ConversationScope("team", "big", "platform")
ASKED, ANSWERED = Message("user", (Text("Hello"),)), Message("assistant", (Text("Hi"),))


async def _kept(store: Store) -> list[str]:
    return [row.request_id for row in await store.journal.search(JournalQuery(limit=1000))]


def _clock() -> float:
    return NOW


@pytest.mark.parametrize(("days", "kept"), [(0, ["old", "new", "late"]), (1, ["new"]), (30, ["new", "late"])])
def test_rows_go_by_age_whatever_their_order(address: str, days: int, kept: list[str]) -> None:
    async def main() -> None:
        async with opened(address, days=days, clock=_clock) as store:
            for name, age in (("late", 29), ("new", 0.5), ("old", 31)):
                await store.journal.append(entry(name, at=NOW - age * DAY))
            await store.retention.delete_expired()
            assert await _kept(store) == kept

    asyncio.run(main())


def test_conversations_that_nobody_continued_go_by_age(address: str) -> None:
    now = [float(NOW)]

    async def main() -> None:
        async with opened(address, days=10, clock=lambda: now[0]) as store:
            await store.conversations.remember([ASKED, ANSWERED], SCOPE, "old")
            now[0] += 9 * DAY
            await store.conversations.remember([ASKED, ANSWERED, ASKED, ANSWERED], SCOPE, "new")
            now[0] += 2 * DAY
            await store.retention.delete_expired()
            history = [ASKED, ANSWERED, ASKED, ANSWERED, ASKED]
            assert await store.conversations.find(history, SCOPE) == MatchedConversation("new", 4)
            assert await store.conversations.find(history, SCOPE) is None

    asyncio.run(main())


def test_the_oldest_rows_go_until_the_rest_fits(address: str) -> None:
    async def main() -> None:
        async with opened(address, megabytes=1) as store:
            for number in range(150):
                await store.journal.append(entry(f"r{number}", client_sent="x" * 9_900))
            await store.retention.delete_expired()
            kept = await _kept(store)
            # Each row is a little over 9 900 bytes.
            assert kept == [f"r{number}" for number in range(149, 149 - len(kept), -1)]
            assert 95 < len(kept) <= 1_000_000 / 9_900
            assert await store.retention.delete_expired() == 0

    asyncio.run(main())


def test_size_is_counted_in_bytes(address: str) -> None:
    async def main() -> None:
        async with opened(address, megabytes=1) as store:
            for name in "ab":
                await store.journal.append(entry(name, client_sent="☃" * 250_000))
            await store.retention.delete_expired()
            assert await _kept(store) == ["b"]

    asyncio.run(main())


def test_the_file_shrinks_with_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def main() -> None:
        async with opened(f"sqlite:///{path}", megabytes=0) as store:
            for number in range(40):
                await store.journal.append(entry(f"r{number}", client_sent="x" * 100_000))
        assert path.stat().st_size > 4_000_000
        async with opened(f"sqlite:///{path}", megabytes=1) as store:
            await store.retention.delete_expired()
        assert path.stat().st_size < 1_200_000

    asyncio.run(main())


def test_it_happens_by_itself(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SWEEP_SECONDS", 0.02)

    async def main() -> None:
        async with opened(address, days=1, clock=_clock) as store:
            await store.journal.append(entry("old", at=0.0))
            async with asyncio.timeout(10):
                while await _kept(store):
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_two_replicas_that_sweep_together_do_not_stop_each_other(address: str) -> None:
    async def main() -> None:
        limits: dict[str, Any] = {"days": 1, "clock": _clock}
        async with opened(address, **limits) as one, opened(address, **limits) as other:
            await asyncio.gather(*(one.journal.append(entry(f"r{number}", at=0.0)) for number in range(300)))
            await asyncio.gather(*(store.retention.delete_expired() for store in (one, other) * 3))
            await one.retention.delete_expired()
            assert await _kept(other) == []

    asyncio.run(main())
