"""Sessions on both databases: appended in order, found by words, and gone when they are forgotten."""

import asyncio
from pathlib import Path

import pytest

from callwright.errors import StoreError
from callwright.store.open import open_agent_store
from callwright.store.session_store import EventRow, SessionRecord
from callwright.store.settings import StoreSettings

NOWHERE = Path("/nowhere")


def head(name: str, at: float) -> SessionRecord:
    return SessionRecord(name, at, at, "", "/project", "model", False, 0, 0, 0)


def run(address, test):
    async def main():
        async with open_agent_store(StoreSettings(address=address), NOWHERE) as store:
            await test(store.sessions)

    asyncio.run(main())


def test_events_come_back_in_order_and_change_the_head(address):
    async def test(sessions):
        await sessions.create_session(head("0101-abc", 1.0))
        rows = [EventRow(seq, float(seq), "text", f'{{"text": "{seq} é \\u0000"}}') for seq in (1, 2, 3)]
        for row in rows:
            await sessions.append_event("0101-abc", row)
        await sessions.append_event("0101-abc", EventRow(4, 4.0, "task_started", "{}"), working=True, title="Fix it")
        assert (await sessions.list_events("0101-abc"))[:3] == rows
        found = await sessions.find_session("0101")
        assert (found.title, found.working, found.updated, found.events) == ("Fix it", True, 4.0, 4)

    run(address, test)


def test_an_event_is_written_once(address):
    async def test(sessions):
        await sessions.create_session(head("a", 1.0))
        await sessions.append_event("a", EventRow(1, 1.0, "text", "{}"))
        with pytest.raises(StoreError):
            await sessions.append_event("a", EventRow(1, 1.0, "text", "{}"))

    run(address, test)


def test_search_wants_every_word_somewhere(address):
    async def test(sessions):
        for number, words in enumerate(["fix the 100% parser", "write Docs", "nothing"]):
            name = f"s{number}"
            await sessions.create_session(head(name, float(number)))
            await sessions.append_event(name, EventRow(1, float(number), "model_answered", f'{{"t": "{words}"}}'))
        assert [found.id for found in await sessions.list_sessions()] == ["s2", "s1", "s0"]
        assert [found.id for found in await sessions.list_sessions("docs WRITE")] == ["s1"]
        assert [found.id for found in await sessions.list_sessions("100%")] == ["s0"]
        assert await sessions.list_sessions("fix docs") == []
        assert [found.id for found in await sessions.list_sessions(limit=1, offset=1)] == ["s1"]

    run(address, test)


def test_a_session_is_named_by_its_beginning_if_that_is_clear(address):
    async def test(sessions):
        await sessions.create_session(head("ab1", 1.0))
        await sessions.create_session(head("ab2", 1.0))
        for name, what in (("ab", "several"), ("x", "no session"), ("a%", "no session")):
            with pytest.raises(StoreError, match=what):
                await sessions.find_session(name)
        await sessions.append_event("ab1", EventRow(1, 1.0, "text", "{}"))
        await sessions.delete_session("ab1")
        assert (await sessions.find_session("ab")).id == "ab2"
        assert await sessions.list_events("ab1") == []

    run(address, test)
