"""The scribe: no turn waits for it, what it cannot write is counted, and what it was given is written at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from callwright.engine import Engine
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import StoreError
from callwright.events import Event, Finish, TextDelta
from callwright.gateway import journal_writer as scribes
from callwright.gateway.app import build_app
from callwright.gateway.entry_builder import JournalEntryBuilder
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.journal_writer import JournalWriter, StoreOpener
from callwright.gateway.metrics import Metrics
from callwright.gateway.replay import replay_turn
from callwright.gateway.service import GatewayService, GatewayState
from callwright.gateway.settings import ServerSettings
from callwright.gateway.turn_endpoints import TurnEndpoints
from callwright.gateway.turn_record import TurnRecord
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry, JournalQuery
from callwright.store.open import Store, open_journal_search, open_store
from callwright.store.settings import StoreSettings
from callwright.wire import SERVER_CODECS
from tests.support.asgi import call
from tests.support.fake import Fake

FULL = StoreSettings(journal="full", days=0)


class Slow:
    """A store that takes a row only when it is told to, and may fail."""

    def __init__(self, problem: StoreError | None = None) -> None:
        self.problem = problem
        self.gate = asyncio.Event()
        self.rows: list[JournalEntry] = []
        self.opened = self.closed = 0

    @property
    def journal(self) -> Slow:
        return self

    @property
    def usage(self) -> Slow:
        return self

    async def add_usage(self, _rows: object) -> None:
        """These tests are about the journal."""

    async def open(self, _redactor: Redactor) -> Slow:
        self.opened += 1
        return self

    async def append(self, entry: JournalEntry) -> int:
        await self.gate.wait()
        if self.problem:
            raise self.problem
        self.rows.append(entry)
        return len(self.rows)

    async def close(self) -> None:
        self.closed += 1


def record(name: str = "r") -> TurnRecord:
    return TurnRecord(request_id=name, wire="openai_chat", model="m")


def put(scribe: JournalWriter, name: str = "r", body: bytes = b"{}") -> None:
    draft = scribe.start_entry({})
    if draft:
        draft.set_body(body)
        scribe.queue_entry(draft, record(name), None)


def outcomes(metrics: Metrics) -> tuple[float, float]:
    counted = [
        metrics.registry.get_sample_value("callwright_journal_entries_total", {"outcome": name}) for name in OUTCOMES
    ]
    return counted[0] or 0.0, counted[1] or 0.0


OUTCOMES = ("written", "dropped")


def run(test: Callable[[JournalWriter, Metrics], Awaitable[None]]) -> None:
    async def main() -> None:
        metrics = Metrics()
        async with asyncio.timeout(20):
            await test(JournalWriter(Redactor(), metrics), metrics)

    asyncio.run(main())


def test_nothing_is_made_while_nothing_is_kept() -> None:
    async def test(scribe: JournalWriter, _metrics: Metrics) -> None:
        before = len(asyncio.all_tasks())
        scribe.use_store(None)
        assert scribe.start_entry({}) is None
        assert len(asyncio.all_tasks()) == before
        await scribe.close()

    run(test)


def test_rows_are_written_in_order_and_before_the_end() -> None:
    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        store = Slow()
        store.gate.set()
        scribe.use_store(StoreOpener(FULL, store.open))
        for number in range(100):
            put(scribe, f"r{number}")
        await scribe.close()
        assert [row.request_id for row in store.rows] == [f"r{number}" for number in range(100)]
        assert (store.closed, outcomes(metrics)) == (1, (100.0, 0.0))

    run(test)


@pytest.mark.parametrize(("rows", "body"), [(scribes._MAX_ENTRIES, b"{}"), (4, b"x" * (scribes._MAX_SIZE // 8))])
def test_what_does_not_fit_into_the_queue_is_dropped_and_counted_and_told_once(
    rows: int, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        store = Slow()
        scribe.use_store(StoreOpener(FULL, store.open))
        for _ in range(rows + 7):
            put(scribe, body=body)
        assert outcomes(metrics) == (0.0, 7.0)
        assert [line.getMessage() for line in caplog.records] == [
            "journal entries dropped: the queue is full because the store is too slow"
        ]
        store.gate.set()
        await scribe.close()
        assert outcomes(metrics) == (rows, 7.0)

    run(test)


def test_a_row_that_the_store_refuses_is_dropped_and_the_next_is_tried() -> None:
    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        store = Slow(StoreError("the disk is full"))
        store.gate.set()
        scribe.use_store(StoreOpener(FULL, store.open))
        put(scribe, "lost")
        while outcomes(metrics) != (0.0, 1.0):
            await asyncio.sleep(0.01)
        store.problem = None
        put(scribe, "kept")
        await scribe.close()
        assert [row.request_id for row in store.rows] == ["kept"]

    run(test)


def test_a_store_that_cannot_be_opened_yet_is_tried_again_and_rows_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scribes, "_REOPEN_SECONDS", 0.01)

    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        store, tries = Slow(), iter(range(3))
        store.gate.set()

        async def opening(redactor: Redactor) -> Slow:
            if next(tries, None) is not None:
                raise StoreError("no server there")
            return await store.open(redactor)

        scribe.use_store(StoreOpener(FULL, opening))
        put(scribe)
        while not store.rows:
            await asyncio.sleep(0.01)
        await scribe.close()
        assert outcomes(metrics) == (1.0, 0.0)

    run(test)


def test_a_store_that_never_answers_holds_up_no_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scribes, "_DRAIN_SECONDS", 0.1)

    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        store = Slow()
        scribe.use_store(StoreOpener(FULL, store.open))
        for _ in range(3):
            put(scribe)
        async with asyncio.timeout(2):
            await scribe.close()
        assert (outcomes(metrics), store.closed) == ((0.0, 3.0), 1)

    run(test)


def test_a_reload_keeps_the_store_or_changes_it_without_losing_a_row() -> None:
    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        first, second = Slow(), Slow()
        first.gate.set()
        second.gate.set()
        scribe.use_store(StoreOpener(FULL, first.open))
        put(scribe, "one")
        scribe.use_store(StoreOpener(StoreSettings(journal="full", days=0), first.open))
        put(scribe, "two")
        scribe.use_store(StoreOpener(StoreSettings(journal="meta"), second.open))
        put(scribe, "three")
        scribe.use_store(None)
        put(scribe, "four")
        await scribe.close()
        assert [row.request_id for row in first.rows] == ["one", "two"]
        assert [(row.request_id, row.client_sent) for row in second.rows] == [("three", "")]
        assert (first.opened, first.closed, second.opened, second.closed) == (1, 1, 1, 1)

    run(test)


def test_a_full_disk_breaks_nothing_and_rows_go_on_when_there_is_room(tmp_path: Path) -> None:
    """SQLite says the same of a database that may not grow as of a disk that is full."""
    stores: list[Store] = []

    async def opening(redactor: Redactor) -> Store:
        stores.append(await open_store(FULL, tmp_path, redactor))
        await grow(stores[0], 1)
        return stores[0]

    async def grow(store: Store, pages: int) -> None:
        async with store._database.write_engine.connect() as connection:
            await connection.execute(text(f"pragma max_page_count = {pages}"))

    async def test(scribe: JournalWriter, metrics: Metrics) -> None:
        scribe.use_store(StoreOpener(FULL, opening))
        put(scribe, "lost", json.dumps("x" * 100_000).encode())
        while outcomes(metrics) != (0.0, 1.0):
            await asyncio.sleep(0.01)
        await grow(stores[0], 1_000_000)
        put(scribe, "kept", json.dumps("x" * 100_000).encode())
        await scribe.close()
        async with open_journal_search(FULL, tmp_path) as find:
            assert [row.request_id for row in await find(JournalQuery())] == ["kept"]

    run(test)


# ── through the gateway ──────────────────────────────────────────────────────────────────────────

BODY = {"model": "m", "messages": [{"role": "user", "content": "go"}]}


def kept(backend: Any, body: dict[str, Any], level: str = "full") -> tuple[Any, JournalEntry]:
    """One turn over ASGI: the answer, and its row."""

    async def main() -> tuple[Any, JournalEntry]:
        store = Slow()
        store.gate.set()
        settings = StoreSettings(journal=level)
        engine = Engine([ModelSettings(name="m")], {"one": backend}, ToolRules())
        service = GatewayService(
            GatewayState(ServerSettings(), (), engine, store_opener=StoreOpener(settings, store.open))
        )
        app = build_app(
            service,
            SERVER_CODECS,
            TurnEndpoints(service, ErrorResponder(SERVER_CODECS, service.metrics)).build_endpoint,
        )
        reply = await call(app, "POST", "/v1/chat/completions", body=json.dumps(body).encode())
        await service.close()
        (row,) = store.rows
        return reply, row

    return asyncio.run(main())


def said(*texts: str) -> list[Event]:
    return [*map(TextDelta, texts), Finish("stop")]


class Broken(Fake):
    """A backend with a bug."""

    async def stream_response(self, request: Any, extra: Any) -> Any:
        yield [TextDelta("a")]
        raise ZeroDivisionError("private words")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_bug_of_ours_is_a_turn_that_failed_and_says_nothing_of_it(stream: bool) -> None:
    _, row = kept(Broken(said("")), BODY | {"stream": stream})
    assert (row.status, row.record["fault"]) == (500, "gateway")
    assert "private words" not in repr(row)


def test_several_choices_are_told_apart_and_come_out_again() -> None:
    backend = Fake(said("one"), said("two"), said("three"))
    reply, row = kept(backend, BODY | {"n": 3})
    texts = [choice["message"]["content"] for choice in reply.json["choices"]]
    assert [events[0].text for events in row.client_got if isinstance(events[0], TextDelta)] == texts
    assert sorted(asked.choice for asked in row.asked) == [0, 1, 2]


def test_a_row_without_the_words_cannot_be_replayed_and_says_why() -> None:
    _, row = kept(Fake(said("Hello")), BODY, "meta")
    assert (row.client_sent, row.asked[0].request, row.asked[0].events) == ("", None, ())
    engine = Engine([ModelSettings(name="m")], {"one": Fake(said("Hello"))}, ToolRules())
    with pytest.raises(Exception, match="incomplete and cannot be replayed"):
        asyncio.run(replay_turn(row, engine))


def test_a_draft_keeps_only_headers_that_tell_the_client() -> None:
    headers = {"user-agent": "x", "authorization": "Bearer abc", "cookie": "a=b", "x-api-key": "k", "x-secret": "s"}
    assert JournalEntryBuilder(headers, keep_content=True).build_entry(record(), None).headers == {"user-agent": "x"}
