"""The store under load and under fire: conversations that never mix, a restart, and a process that is killed.

The law of conversations: what a conversation of the backend has seen is exactly what the client that continues it has
said and heard, and nobody else continues it at the same time. Everything is said in very few words here, so that most
histories look like somebody else's.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from callwright.model import Message
from callwright.store.conversations import MatchedConversation
from callwright.store.identity import ConversationScope
from callwright.store.journal_records import JournalQuery
from callwright.store.open import Store
from tests.integration.store.test_conversations import history
from tests.integration.store_child import SCOPE, conversation
from tests.support.databases import emptied
from tests.support.opened_store import entry, opened
from tests.support.sampling import FULL

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30
EXAMPLES = itertools.count()
WRITES = 200 if FULL else 50


class Platform:
    """A backend that keeps conversations and cannot unsay anything."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Message]] = {}
        self.owner: dict[str, ConversationScope] = {}
        self.busy: set[str] = set()

    def begin(self, scope: ConversationScope) -> str:
        name = f"conversation {len(self.seen)}"
        self.seen[name], self.owner[name] = [], scope
        return name

    async def ask(self, name: str, messages: Sequence[Message], pause: int) -> Message:
        assert name not in self.busy, "two clients speak in one conversation"
        self.busy.add(name)
        self.seen[name] += messages
        for _ in range(pause):
            await asyncio.sleep(0)
        (answer,) = history("a")
        self.seen[name].append(answer)
        self.busy.remove(name)
        return answer


class Client:
    """Sends whole histories, as clients do."""

    def __init__(self, platform: Platform, scope: ConversationScope) -> None:
        self.platform = platform
        self.scope = scope
        self.history: list[Message] = []
        self.continued = 0

    async def turn(self, store: Store, step: str, pause: int) -> None:
        """One request: a letter says something, `<` forgets the last exchange first, `!` is lost half-way."""
        if step == "<":
            self.history = self.history[:-2]
        asked = [*self.history, *history("B" if step == "B" else "A")]
        found = await store.conversations.find(asked, self.scope)
        name, known = found or (self.platform.begin(self.scope), 0)
        assert self.platform.owner[name] == self.scope, "a conversation of somebody else"
        assert self.platform.seen[name] == asked[:known], "the conversation has seen something else"
        answer = await self.platform.ask(name, asked[known:], pause)
        if step == "!":
            return
        self.continued += known > 0
        self.history = [*asked, answer]
        assert self.platform.seen[name] == self.history
        await store.conversations.remember(self.history, self.scope, name)


@asynccontextmanager
async def replicas(address: str, count: int = 2) -> AsyncIterator[list[Store]]:
    """Several stores on one database, as several gateways would have them."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened(address)) for _ in range(count)]


async def talk(address: str, clients: list[Client], plans: list[list[str]], dice: random.Random, restarts: int) -> None:
    """Every client follows its plan, all at once, on whichever replica it meets; with restarts on the way."""

    async def follow(client: Client, steps: list[str], stores: list[Store]) -> None:
        for step in steps:
            await client.turn(dice.choice(stores), step, dice.randrange(4))

    for phase in range(restarts + 1):
        async with replicas(address) as stores:
            parts = [plan[phase :: restarts + 1] for plan in plans]
            await asyncio.gather(*(follow(client, part, stores) for client, part in zip(clients, parts, strict=True)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    plans=st.lists(st.lists(st.sampled_from("AAB<!"), min_size=1, max_size=6), min_size=1, max_size=6),
    restarts=st.integers(0, 1),
    seed=st.integers(0, 1000),
)
def test_interleaved_conversations_never_mix(address: str, plans: list[list[str]], restarts: int, seed: int) -> None:
    platform, example = Platform(), f"example {next(EXAMPLES)}"
    scopes = [ConversationScope(f"{example} caller {number}", "big", "platform") for number in range(2)]
    clients = [Client(platform, scopes[number % 2]) for number in range(len(plans))]
    asyncio.run(asyncio.wait_for(talk(address, clients, plans, random.Random(seed), restarts), SECONDS))


def test_forty_equal_conversations_at_once_each_keep_their_own(address: str) -> None:
    """Nobody edits and nobody fails, so every turn but the first goes on where the last one ended."""
    platform = Platform()
    clients = [Client(platform, SCOPE) for _ in range(40)]
    plans = [["A"] * 6 for _ in clients]
    asyncio.run(asyncio.wait_for(talk(address, clients, plans, random.Random(4), 2), SECONDS))
    assert len(platform.seen) == 40
    assert [client.continued for client in clients] == [5] * 40
    assert [len(seen) for seen in platform.seen.values()] == [12] * 40


def test_of_many_who_continue_one_history_at_once_only_one_gets_its_conversation(address: str) -> None:
    async def main() -> None:
        async with replicas(address, 4) as stores:
            await stores[0].conversations.remember(history("Aa"), SCOPE, "one")
            found = await asyncio.gather(
                *(store.conversations.find(history("AaB"), SCOPE) for store in stores for _ in range(8))
            )
            assert [each for each in found if each] == [MatchedConversation("one", 2)]

    asyncio.run(asyncio.wait_for(main(), SECONDS))


@pytest.fixture(params=[1, 8], ids=lambda writers: f"{writers} at once")
def acknowledged(request: pytest.FixtureRequest, address: str) -> list[str]:
    """Another process is killed after many writes, while it goes on; what it was told is written."""
    command = [sys.executable, "-m", "tests.integration.store_child", address, str(request.param), str(WRITES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    child = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment, timeout=SECONDS, check=False
    )
    assert child.returncode == -signal.SIGKILL
    names = child.stdout.split()
    assert len(names) == WRITES
    return names


def test_a_killed_process_loses_nothing_that_was_acknowledged(address: str, acknowledged: list[str]) -> None:
    async def main() -> None:
        async with opened(address) as store:
            rows = await store.journal.search(JournalQuery(limit=10_000))
            assert set(acknowledged) <= {row.request_id for row in rows}
            assert all(row.client_sent == row.request_id * 500 for row in rows)
            for name in acknowledged:
                said = history(conversation(name))
                assert await store.conversations.find([*said, *history("Z")], SCOPE) == MatchedConversation(
                    name, len(said)
                )

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    if address.startswith("sqlite"):
        with sqlite3.connect(address.removeprefix("sqlite:///")) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        database.close()


def test_a_conversation_that_a_dead_process_was_continuing_is_not_continued(address: str) -> None:
    """Nobody knows how much of its turn the backend saw."""

    async def remember() -> None:
        async with opened(address) as store:
            await store.conversations.remember(history("Aa"), SCOPE, "one")

    async def take() -> MatchedConversation | None:
        async with opened(address) as store:
            return await store.conversations.find(history("AaB"), SCOPE)

    asyncio.run(remember())
    assert asyncio.run(take()) == MatchedConversation("one", 2)
    assert asyncio.run(take()) is None


def test_a_server_that_drops_its_connections_is_connected_to_again(postgres: str) -> None:
    address = emptied(postgres)
    others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = user"

    async def main() -> None:
        async with replicas(address, 2) as (store, other):
            for name in ("before", "after"):
                assert await store.journal.append(entry(name))
                assert name in [row.request_id for row in await store.journal.search(JournalQuery())]
                async with other._database.write_engine.connect() as connection:
                    await connection.execute(text(others))

    asyncio.run(asyncio.wait_for(main(), SECONDS))
