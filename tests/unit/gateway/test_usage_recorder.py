"""What turns used: added up in memory, and written to a store behind the turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import date
from typing import Any

import msgspec
import pytest

from callwright.errors import RequestError, StoreError
from callwright.gateway import usage_recorder
from callwright.gateway.journal_writer import JournalWriter, StoreOpener
from callwright.gateway.metrics import Metrics
from callwright.gateway.turn_record import TurnRecord
from callwright.gateway.usage_recorder import UsageRecorder
from callwright.model import Usage
from callwright.redaction import Redactor
from callwright.store.settings import StoreSettings
from callwright.store.usage_records import UsageRow, UsageTotals, sum_usage_rows

RECORD = TurnRecord(
    request_id="req_1",
    wire="openai_chat",
    model="coder",
    key="team",
    client="copilot",
    usage=Usage(prompt_tokens=10, completion_tokens=4),
)
MAY_DAY = date(2026, 5, 1)


class FakeStore:
    """A store that can be slow, or refuse what it is given."""

    def __init__(self) -> None:
        self.totals = UsageTotals()
        self.writes = 0
        self.is_broken = False
        self.is_writable = asyncio.Event()
        self.is_writable.set()

    journal = conversations = None

    @property
    def usage(self) -> FakeStore:
        return self

    async def add_usage(self, rows: Sequence[UsageRow]) -> None:
        await self.is_writable.wait()
        if self.is_broken:
            raise StoreError("the disk is full")
        self.writes += 1
        for row in rows:
            self.totals.add_row(row)

    async def query_usage(self, by: Sequence[str], since: date | None = None) -> list[dict[str, Any]]:
        if self.is_broken:
            raise StoreError("the disk is full")
        return sum_usage_rows((row._asdict() for row in self.totals.list_rows(since)), by)

    async def open(self, _redactor: Redactor) -> Any:
        return self

    async def close(self) -> None:
        pass


def run(test: Callable[[UsageRecorder, FakeStore], Awaitable[None]]) -> None:
    """A test with a recorder whose store is a fake."""

    async def main() -> None:
        store = FakeStore()
        async with recording(StoreOpener(StoreSettings(), store.open)) as recorder:
            await test(recorder, store)

    asyncio.run(main())


@asynccontextmanager
async def recording(opener: StoreOpener | None, **options: Any) -> Any:
    writer = JournalWriter(Redactor(), Metrics())
    writer.use_store(opener)
    recorder = UsageRecorder(writer, today=lambda: MAY_DAY, **options)
    try:
        yield recorder
    finally:
        await recorder.close()
        await writer.close()


async def count_requests(recorder: UsageRecorder) -> int:
    return sum(row["requests"] for row in await recorder.query_usage([]))


def in_memory(records: Iterable[TurnRecord], days: Iterable[date], *query: Any) -> list[dict[str, Any]]:
    """The answer of a recorder without a store."""

    async def main() -> list[dict[str, Any]]:
        day = iter(days)
        recorder = UsageRecorder(JournalWriter(Redactor(), Metrics()), today=lambda: next(day))
        for record in records:
            recorder.add_turn(record)
        return await recorder.query_usage(*query)

    return asyncio.run(main())


def test_without_a_store_usage_adds_up_in_memory_by_any_columns() -> None:
    records = [
        msgspec.structs.replace(RECORD, key=key, client=client)
        for key, client in (("team", "copilot"), ("team", "codex"), ("guest", "codex"))
    ]
    assert in_memory(records, [MAY_DAY] * 3, ["key"]) == [
        {"key": "guest", "requests": 1, "prompt_tokens": 10, "completion_tokens": 4},
        {"key": "team", "requests": 2, "prompt_tokens": 20, "completion_tokens": 8},
    ]
    assert in_memory(records, [MAY_DAY] * 3, []) == [{"requests": 3, "prompt_tokens": 30, "completion_tokens": 12}]
    rows = in_memory(records, [MAY_DAY] * 3)
    assert [row["day"] for row in rows] == ["2026-05-01"] * 3


def test_usage_is_counted_from_a_day_on() -> None:
    days = [MAY_DAY, date(2026, 5, 2)]
    assert [row["requests"] for row in in_memory([RECORD] * 2, days, ["model"], days[1])] == [1]
    assert in_memory([RECORD] * 2, days, [], date(2026, 5, 3)) == []
    assert in_memory([], [], []) == []


@pytest.mark.parametrize("column", ["secret", "day; drop table usage", "requests", "sum(requests)", "*"])
def test_only_columns_are_columns(column: str) -> None:
    with pytest.raises(RequestError, match="by must be a list of day, key"):
        in_memory([], [], [column])


def test_turns_are_written_together_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_recorder, "_WRITE_DELAY_SECONDS", 0)

    async def test(recorder: UsageRecorder, store: FakeStore) -> None:
        for _ in range(3):
            recorder.add_turn(RECORD)
        while not store.writes:
            await asyncio.sleep(0)
        assert store.writes == 1
        assert store.totals.list_rows() == [UsageRow("2026-05-01", "team", "coder", "copilot", 3, 30, 12)]

    run(test)


def test_no_turn_waits_for_a_slow_store_and_a_query_sees_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_recorder, "_WRITE_DELAY_SECONDS", 0)

    async def test(recorder: UsageRecorder, store: FakeStore) -> None:
        store.is_writable.clear()
        recorder.add_turn(RECORD)
        for _ in range(20):
            await asyncio.sleep(0)
        recorder.add_turn(RECORD)  # while the first one is being written
        counting = asyncio.ensure_future(count_requests(recorder))
        await asyncio.sleep(0)
        store.is_writable.set()
        assert await counting == 2

    run(test)


def test_what_a_store_refuses_is_written_later_and_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test(recorder: UsageRecorder, store: FakeStore) -> None:
        store.is_broken = True
        recorder.add_turn(RECORD)
        with pytest.raises(StoreError, match="disk is full"):
            await recorder.query_usage()
        assert "usage not written" in caplog.text
        store.is_broken = False
        recorder.add_turn(RECORD)
        assert await count_requests(recorder) == 2
        assert await count_requests(recorder) == 2
        assert store.writes == 1

    run(test)


def test_the_rest_is_written_at_the_end() -> None:
    store = []

    async def test(recorder: UsageRecorder, fake: FakeStore) -> None:
        store.append(fake)
        recorder.add_turn(RECORD)

    run(test)
    assert [row.requests for row in store[0].totals.list_rows()] == [1]


def test_a_store_that_cannot_be_opened_is_an_error_of_the_query_and_loses_nothing() -> None:
    async def refuse(_redactor: Redactor) -> Any:
        raise StoreError("nobody listens")

    async def main() -> None:
        async with recording(StoreOpener(StoreSettings(), refuse)) as recorder:
            recorder.add_turn(RECORD)
            with pytest.raises(StoreError, match="not open"):
                await recorder.query_usage()
            recorder._journal_writer.use_store(None)
            assert await count_requests(recorder) == 1

    asyncio.run(main())
