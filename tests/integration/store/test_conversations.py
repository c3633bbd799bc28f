"""Which conversation a history finds, one at a time; `tests/integration/test_store.py` has many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from callwright.errors import MisuseError
from callwright.model import Message, Text
from callwright.store.conversations import ConversationStore, MatchedConversation
from callwright.store.identity import ConversationScope
from tests.support.opened_store import opened

SCOPE = ConversationScope("team", "big", "platform")


def history(text: str) -> list[Message]:
    """Turns of one letter: the user's in capitals, the model's not."""
    return [Message("user" if each.isupper() else "assistant", (Text(each),)) for each in text]


def on(address: str, test: Callable[[ConversationStore], Awaitable[None]]) -> None:
    async def main() -> None:
        async with opened(address) as store:
            await test(store.conversations)

    asyncio.run(main())


def test_a_new_history_finds_nothing(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        for text in ("", "A", "AaB"):
            assert await conversations.find(history(text), SCOPE) is None

    on(address, test)


def test_the_longest_known_prefix_is_found(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("AaBb"), SCOPE, "long")
        await conversations.remember(history("Aa"), SCOPE, "short")
        assert await conversations.find(history("AaBbC"), SCOPE) == MatchedConversation("long", 4)
        assert await conversations.find(history("AaBbC"), SCOPE) == MatchedConversation("short", 2)

    on(address, test)


def test_a_conversation_moves_on_with_its_history(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("Aa"), SCOPE, "one")
        for known in ("Aa", "AaBb", "AaBbCc"):
            asked = known + chr(ord("A") + len(known) // 2)
            assert await conversations.find(history(asked), SCOPE) == MatchedConversation("one", len(known))
            await conversations.remember(history(asked + asked[-1].lower()), SCOPE, "one")
            assert await conversations.find(history(asked), SCOPE) is None

    on(address, test)


@pytest.mark.parametrize("edited", ["XaBbC", "AxBbC", "AaXbC", "AaBxC", "AaC", "Aa", "BbC", "C"])
def test_an_edited_history_starts_a_new_one(address: str, edited: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("AaBb"), SCOPE, "one")
        assert await conversations.find(history(edited), SCOPE) is None
        assert await conversations.find(history("AaBbC"), SCOPE) == MatchedConversation("one", 4)

    on(address, test)


def test_the_same_history_without_anything_new_finds_nothing(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("Aa"), SCOPE, "one")
        assert await conversations.find(history("Aa"), SCOPE) is None

    on(address, test)


def test_a_conversation_that_is_being_continued_is_not_continued_twice(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("Aa"), SCOPE, "one")
        assert await conversations.find(history("AaB"), SCOPE) == MatchedConversation("one", 2)
        assert await conversations.find(history("AaC"), SCOPE) is None
        await conversations.remember(history("AaBb"), SCOPE, "one")
        await conversations.remember(history("AaCc"), SCOPE, "fork")
        assert await conversations.find(history("AaCcD"), SCOPE) == MatchedConversation("fork", 4)
        assert await conversations.find(history("AaBbD"), SCOPE) == MatchedConversation("one", 4)

    on(address, test)


def test_equal_histories_have_conversations_of_their_own(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        for name in ("one", "two"):
            await conversations.remember(history("Aa"), SCOPE, name)
        found = [await conversations.find(history("AaB"), SCOPE) for _ in range(3)]
        assert {each.backend_id for each in found if each} == {"one", "two"}
        assert found[2] is None

    on(address, test)


def test_a_conversation_can_be_given_back(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("Aa"), SCOPE, "one")
        for _ in range(2):
            found = await conversations.find(history("AaB"), SCOPE)
            assert found == MatchedConversation("one", 2)
            await conversations.remember(history("AaB")[: found.known_messages], SCOPE, found.backend_id)

    on(address, test)


def test_other_scopes_see_nothing(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        await conversations.remember(history("Aa"), SCOPE, "one")
        for field in ConversationScope._fields:
            assert await conversations.find(history("AaB"), SCOPE._replace(**{field: "other"})) is None
        # Backends number their conversations as they like: the same id elsewhere is another conversation.
        await conversations.remember(history("Zz"), SCOPE._replace(backend="other"), "one")
        assert await conversations.find(history("AaB"), SCOPE) == MatchedConversation("one", 2)

    on(address, test)


def test_a_history_of_thousands_of_messages_is_found(address: str) -> None:
    async def test(conversations: ConversationStore) -> None:
        long = history("Aa" * 2000)
        await conversations.remember(long[:2], SCOPE, "one")
        assert await conversations.find(long, SCOPE) == MatchedConversation("one", 2)
        await conversations.remember(long[:-2], SCOPE, "one")
        assert await conversations.find(long, SCOPE) == MatchedConversation("one", 3998)

    on(address, test)


@pytest.mark.parametrize(("messages", "backend_id"), [([], "one"), (history("Aa"), "")])
def test_a_conversation_without_messages_or_id_is_a_bug_of_the_caller(
    tmp_path: object, messages: list[Message], backend_id: str
) -> None:
    async def test(conversations: ConversationStore) -> None:
        with pytest.raises(MisuseError):
            await conversations.remember(messages, SCOPE, backend_id)

    on(f"sqlite:///{tmp_path}/store.db", test)
