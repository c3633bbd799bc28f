"""The journal: what is written, what is found again, and what never gets there."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from callwright.errors import StoreError
from callwright.events import CallDelta, CallEnd, CallStart, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Message, Repair, Request, Text, ToolSpec, Usage
from callwright.redaction import MASK, Redactor
from callwright.store.database import build_database
from callwright.store.journal_records import JournalQuery, RecordedAttempt, RecordedFailure
from callwright.store.migrations import MIGRATIONS, run_migrations
from callwright.store.settings import StoreSettings
from callwright.store.tables import METADATA
from tests.support.opened_store import NOWHERE, entry, opened

REQUEST = Request("big", (Message("user", (Text("Hello"),)),), (ToolSpec("ping"),), options={"temperature": 0.5})
SAID = (ReasoningDelta("hm"), TextDelta("<tool_call>"), UsageSeen(Usage(7, 11, 3, 2)), Finish("stop"))
FULL = entry(
    client="copilot",
    key="team",
    status=502,
    record={"finish_reason": "stop", "retries": ["it is empty"], "usage": {"prompt_tokens": 7}},
    problem="it is empty",
    headers={"user-agent": "test"},
    client_sent='{"messages":  []}',
    recalled={"resp_1": REQUEST.messages},
    asked=(
        RecordedAttempt(
            backend="one",
            strategy="taught",
            strategy_reason="so",
            request=REQUEST,
            extra={"a": 1},
            events=SAID,
            retry_reason="it is empty",
        ),
        RecordedAttempt(
            backend="two", failure=RecordedFailure(message="gone", kind="refused", status=400, salvage="<tool")
        ),
    ),
    client_got=(
        (CallStart(0, "call_1", "ping"), CallDelta(0, "{}"), CallEnd(0, repairs=(Repair("x", "y"),)), Finish("stop")),
    ),
    repairs=(Repair("trailing_comma", "a comma stood before '}'"),),
)


def test_a_row_comes_back_as_it_was(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            number = await store.journal.append(FULL)
            (back,) = await store.journal.search(JournalQuery())
            assert number == back.number > 0
            assert back == entry(**{name: getattr(FULL, name) for name in FULL.__struct_fields__} | {"number": number})

    asyncio.run(main())


ROWS = [
    entry("a", at=1.0, model="big", client_sent="Hello World"),
    entry("b", at=2.0, model="small", asked=(RecordedAttempt(events=(TextDelta("100% of it"),)),)),
    entry("c", at=3.0, model="big", client_got=((TextDelta("snake_case"),),)),
    entry("a", at=4.0, model="small", problem='C:\\temp\'s "quote"', status=500),
]


SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({}, "acba"),
    ({"limit": 2}, "ac"),
    ({"request_id": "a"}, "aa"),
    ({"request_id": "A"}, ""),
    ({"since": 2.0, "until": 4.0}, "cb"),
    ({"model": "big"}, "ca"),
    ({"model": "big", "text": "hello"}, "a"),
    ({"text": "HELLO w"}, "a"),
    ({"text": "0%"}, "b"),
    ({"text": "%"}, "b"),
    ({"text": "e_c"}, "c"),
    ({"text": "\\temp's \"Q"}, "a"),
    ({"text": "openai_chat"}, ""),
    ({"failed": True}, "a"),
]


def test_rows_are_found_newest_first(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            for row in ROWS:
                await store.journal.append(row)
            for search, expected in SEARCHES:
                rows = await store.journal.search(JournalQuery(**search))
                assert "".join(row.request_id for row in rows) == expected, search

    asyncio.run(main())


def test_pages_follow_each_other_without_gap_or_repetition(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            for number in range(10):
                await store.journal.append(entry(f"r{number}"))
            seen, before = [], None
            while page := await store.journal.search(JournalQuery(limit=3, before=before)):
                seen += [each.request_id for each in page]
                before = page[-1].number
            assert seen == [f"r{number}" for number in reversed(range(10))]

    asyncio.run(main())


KEPT_APART = {"problem", "headers", "client_sent", "recalled", "asked", "client_got", "repairs"}


@pytest.mark.parametrize("keep", ["off", "meta", "full"])
def test_what_is_kept_is_a_setting(address: str, keep: str) -> None:
    async def main() -> None:
        async with opened(address, journal=keep) as store:
            number = await store.journal.append(FULL)
            rows = await store.journal.search(JournalQuery())
            assert [each.number for each in rows] == ([] if keep == "off" else [number])
            assert bool(number) is (keep != "off")
            for row in rows:
                assert row.record == FULL.record
                assert [each.retry_reason for each in row.asked] == ["it is empty", ""]
                same = {name for name in KEPT_APART if getattr(row, name) == getattr(FULL, name)}
                assert same == (KEPT_APART if keep == "full" else set())
                if keep == "meta":
                    assert not [word for word in ("Hello", "<tool", "gone", "stood", "hm") if word in repr(row)]

    asyncio.run(main())


@pytest.mark.parametrize("padding", [0, 50_000], ids=["short", "long"])
def test_a_secret_never_reaches_the_file(tmp_path: Path, padding: int) -> None:
    secrets = ("hunter2-hunter2", "sk-abcdefgh12345678", "card 1234 5678", 'quo"te-secret')
    everywhere = " ".join(secrets) + ' {"authorization": "Bearer zzzz-yyyy"} quo\\"te-secret' + " " * padding
    redactor = Redactor(("hunter2-hunter2", 'quo"te-secret'))

    async def main() -> None:
        async with opened(f"sqlite:///{tmp_path / 'store.db'}", redactor=redactor, redact=(r"card [\d ]+",)) as store:
            await store.journal.append(
                entry(
                    everywhere,
                    problem=everywhere,
                    client_sent=everywhere,
                    record={"retries": [everywhere]},
                    headers={"user-agent": everywhere},
                    recalled={"x": (Message("user", (Text(everywhere),)),)},
                    asked=(RecordedAttempt(retry_reason=everywhere, events=(TextDelta(everywhere),)),),
                    client_got=((TextDelta(everywhere),),),
                    repairs=(Repair("dropped", everywhere),),
                )
            )
            (row,) = await store.journal.search(JournalQuery(request_id=everywhere))
            assert all(MASK in repr(getattr(row, field)) for field in (*KEPT_APART, "request_id", "record"))
            raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
            assert not [secret for secret in (*secrets, "zzzz-yyyy", 'quo\\"te') if secret.encode() in raw]

    asyncio.run(main())


def test_secrets_that_are_learnt_later_count_from_then_on(address: str) -> None:
    async def main() -> None:
        redactor = Redactor()
        async with opened(address, redactor=redactor) as store:
            redactor.add_secrets(["new-secret-word"])
            await store.journal.append(entry(client_sent="it is new-secret-word"))
            (row,) = await store.journal.search(JournalQuery())
            assert row.client_sent == f"it is {MASK}"

    asyncio.run(main())


def test_an_expression_that_matches_digits_leaves_the_numbers_alone(address: str) -> None:
    async def main() -> None:
        async with opened(address, redact=(r"\d", '"')) as store:
            await store.journal.append(entry("r", record={"usage": 123, "why": '"5"'}))
            (row,) = await store.journal.search(JournalQuery())
            assert row.record == {"usage": 123, "why": MASK * 3}

    asyncio.run(main())


def test_any_text_can_be_written(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            for odd in ("a\0b", "\ud83d", "\ud83d\ude00", "日本 ☃", "'; drop table journal; --", ""):
                repairs = (Repair("dropped", odd),)
                await store.journal.append(entry(odd, model=odd, client_sent=odd, repairs=repairs, headers={"a": odd}))
                (row,) = await store.journal.search(JournalQuery(limit=1))
                texts = {row.request_id, row.model, row.client_sent, row.repairs[0].detail, row.headers["a"]}
                assert texts == {odd.replace("\0", "\ufffd").replace("\ud83d\ude00", "😀").replace("\ud83d", "\ufffd")}

    asyncio.run(main())


def test_a_closed_store_takes_nothing(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            await store.journal.append(entry())
        with pytest.raises(StoreError, match="closed"):
            await store.journal.append(entry())

    asyncio.run(main())


def test_what_was_asked_for_before_the_end_is_written(address: str) -> None:
    async def main() -> None:
        async with opened(address) as store:
            writing = [asyncio.ensure_future(store.journal.append(entry(f"r{number}"))) for number in range(600)]
            await asyncio.sleep(0)
        assert len(set(await asyncio.gather(*writing))) == 600
        async with opened(address) as store:
            assert len(await store.journal.search(JournalQuery(limit=1000))) == 600

    asyncio.run(main())


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    """Another process holds SQLite's write lock for as long as it likes."""
    path = tmp_path / "store.db"

    async def main() -> None:
        async with opened(f"sqlite:///{path}") as store:
            await store.journal.append(entry("before"))
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("begin immediate")
            writing = asyncio.ensure_future(store.journal.append(entry("waits")))
            rows = await asyncio.wait_for(store.journal.search(JournalQuery()), 5)
            assert [row.request_id for row in rows] == ["before"]
            assert not writing.done()
            other.execute("rollback")
            other.close()
            assert await asyncio.wait_for(writing, 10)

    asyncio.run(main())


def test_a_full_sync_stands_behind_every_commit(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        database = build_database(StoreSettings(), tmp_path)
        async with database.write_engine.connect() as connection:
            asked = ("journal_mode", "synchronous")
            found = [(await connection.exec_driver_sql(f"pragma {name}")).scalar() for name in asked]
        await database.close()
        return found

    assert asyncio.run(main()) == ["wal", 2]


def test_the_migrations_make_the_tables_that_the_code_expects(address: str) -> None:
    def columns(connection: Any) -> dict[str, set[tuple[str, str]]]:
        looked = inspect(connection)
        return {
            table: {(column["name"], column["type"]._type_affinity.__name__) for column in looked.get_columns(table)}
            for table in looked.get_table_names()
        }

    async def main() -> None:
        async with opened(address):
            pass
        database = build_database(StoreSettings(address=address), NOWHERE)
        async with database.write_engine.begin() as connection:
            migrated = await connection.run_sync(columns)
            for table in migrated:
                await connection.execute(text(f"drop table {table}"))
            await connection.run_sync(METADATA.create_all)
            assert migrated == await connection.run_sync(columns)
            assert migrated.keys() == METADATA.tables.keys()
        await database.close()

    asyncio.run(main())


def test_only_missing_steps_are_run_and_all_or_none(address: str) -> None:
    more = [*MIGRATIONS, ["create table extra (a integer)"], ["insert into extra values (1)"]]
    broken = [*more, ["insert into extra values (2)", "this is no SQL"]]

    async def main() -> None:
        async with opened(address) as store:
            await store.journal.append(entry())
        database = build_database(StoreSettings(address=address), NOWHERE)
        for steps in (more, more, broken):
            try:
                async with database.write_engine.begin() as connection:
                    await run_migrations(connection, steps)
            except Exception:
                assert steps is broken
        async with database.read_engine.connect() as connection:
            assert (await connection.execute(text("select a from extra"))).scalars().all() == [1]
            numbers = (await connection.execute(text("select number from versions order by number"))).scalars().all()
            assert numbers == [*range(1, len(more) + 1)]
            assert (await connection.execute(text("select count(*) from journal"))).scalar() == 1
        await database.close()
        with pytest.raises(StoreError, match="newer"):
            async with opened(address):
                pass

    asyncio.run(main())


def test_replicas_that_start_together_migrate_once(address: str) -> None:
    async def start(number: int) -> None:
        async with opened(address) as store:
            await store.journal.append(entry(f"r{number}"))

    async def main() -> None:
        await asyncio.gather(*map(start, range(6)))
        async with opened(address) as store:
            assert len(await store.journal.search(JournalQuery())) == 6

    asyncio.run(main())
