"""The usage table, in both databases."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest

from callwright.errors import StoreError
from callwright.store.usage_records import UsageRow
from tests.support.opened_store import opened

FIRST = UsageRow("2026-05-01", "team", "coder", "copilot", 1, 10, 4)


def query(address: str, rows: list[list[UsageRow]], *question: Any) -> list[dict[str, Any]]:
    """An answer after these rows were added, one list after the other."""

    async def main() -> list[dict[str, Any]]:
        async with opened(address) as store:
            for each in rows:
                await store.usage.add_usage(each)
            return sorted(await store.usage.query_usage(*question), key=str)

    return asyncio.run(main())


def test_rows_of_the_same_columns_add_up(address: str) -> None:
    rows = [[FIRST, FIRST._replace(client="codex")], [FIRST], []]
    assert query(address, rows, ["client"]) == [
        {"client": "codex", "requests": 1, "prompt_tokens": 10, "completion_tokens": 4},
        {"client": "copilot", "requests": 2, "prompt_tokens": 20, "completion_tokens": 8},
    ]
    answer = query(address, [], [])
    assert answer == [{"requests": 3, "prompt_tokens": 30, "completion_tokens": 12}]
    assert all(type(number) is int for number in answer[0].values()), "JSON has no decimals of PostgreSQL"


def test_days_before_the_first_do_not_count(address: str) -> None:
    rows = [[FIRST, FIRST._replace(day="2026-05-02", requests=7)]]
    assert query(address, rows, ["day"], date(2026, 5, 2))[0]["requests"] == 7
    assert query(address, [], [], date(2026, 5, 3)) == []


def test_names_that_no_database_takes_are_counted_too(address: str) -> None:
    rows = [[FIRST._replace(model="a\0"), FIRST._replace(model="a\ud800"), FIRST._replace(model="a\ufffd")]]
    assert query(address, rows, ["model"])[0] == {
        "model": "a\ufffd", "requests": 3, "prompt_tokens": 30, "completion_tokens": 12,
    }  # fmt: skip


def test_gateways_that_write_at_once_lose_nothing(address: str) -> None:
    rows = [FIRST._replace(model=f"m{number}") for number in range(20)]

    async def main() -> None:
        async with opened(address) as one, opened(address) as other:
            for _ in range(10):
                await asyncio.gather(one.usage.add_usage(rows), other.usage.add_usage(rows[::-1]))
            [answer] = await one.usage.query_usage([])
            assert answer["requests"] == 2 * 10 * len(rows)

    asyncio.run(main())


def test_a_closed_store_says_so(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            pass
        with pytest.raises(StoreError):
            await store.usage.add_usage([FIRST])

    asyncio.run(main())
