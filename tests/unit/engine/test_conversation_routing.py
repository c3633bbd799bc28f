"""What a conversation is told, and what is remembered of it; tests/integration/test_conversations.py has the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from callwright.backends.base import EventStream
from callwright.backends.conversation.contract import (
    CONVERSATION_LOST,
    ServiceConversation,
    StatefulBackend,
    flatten_request,
)
from callwright.engine import Engine, TurnReport
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Message, Request, Text
from callwright.store.identity import ConversationScope, MatchedConversation, hash_prefixes
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake


class Kept(Fake, StatefulBackend):
    """A service: its answers in order, each words or a failure."""

    def __init__(self, *answers: str | BackendError, name: str = "one") -> None:
        super().__init__([], name=name, wire="conversation")
        self.told: list[tuple[str, str]] = []
        self._said = list(answers)

    async def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        self.told.append((conversation.id, flatten_request(request).prompt))
        said = self._said.pop(0)
        if isinstance(said, BackendError):
            conversation.has_received = said.kind == "unavailable" and not said.code
            raise said
        conversation.has_received = True
        conversation.id = conversation.id or f"c{len(self.told)}"
        yield [TextDelta(said)]
        yield [Finish("stop")]


class Memory:
    """What is remembered, by head."""

    def __init__(self) -> None:
        self.heads: dict[str, tuple[str, int]] = {}

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        for head in reversed(hash_prefixes(messages[:-1], scope)):
            if head in self.heads:
                return MatchedConversation(*self.heads.pop(head))
        return None

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        self.heads[hash_prefixes(messages, scope)[-1]] = (backend_id, len(messages))


def history(*texts: str) -> tuple[Message, ...]:
    """The user and the model in turns."""
    return tuple(Message("assistant" if at % 2 else "user", (Text(text),)) for at, text in enumerate(texts))


def turn(memory: Memory, messages: tuple[Message, ...], *backends: Kept, most: int | None = None, **model: Any) -> str:
    """What the client gets; it leaves after so many batches."""
    named = {backend.settings.name: backend for backend in backends}
    engine = Engine([ModelSettings(name="m", backend=tuple(named), **model)], named, ToolRules())
    engine.conversations = memory

    async def main() -> list[Event]:
        route = engine.get_route("m")
        asked = engine.run_turn(ClientRequest(request=Request("m", messages)), route, route.rules, TurnReport())
        events: list[Event] = []
        async with aclosing(asked) as batches:
            async for number, batch in _numbered(batches):
                events += batch
                if number == most:
                    break
        return events

    return "".join(event.text for event in asyncio.run(main()) if isinstance(event, TextDelta))


async def _numbered(batches: EventStream) -> Any:
    number = 0
    async for batch in batches:
        number += 1
        yield number, batch


def remembered(memory: Memory) -> list[tuple[str, int]]:
    return list(memory.heads.values())


def test_an_answer_heard_to_its_end_is_remembered_with_what_was_asked() -> None:
    memory, service = Memory(), Kept("a", "b")
    assert turn(memory, history("A"), service) == "a"
    assert remembered(memory) == [("c1", 2)]
    assert turn(memory, history("A", "a", "B"), service) == "b"
    assert service.told == [("", "A"), ("c1", "B")]
    assert remembered(memory) == [("c1", 4)]


def test_an_answer_that_the_client_did_not_hear_out_is_forgotten() -> None:
    memory, service = Memory(), Kept("a", "b")
    turn(memory, history("A"), service)
    turn(memory, history("A", "a", "B"), service, most=1)
    assert remembered(memory) == []


@pytest.mark.parametrize(
    ("failure", "kept"),
    [
        (BackendError("slow down", kind="rate_limit"), [("c1", 2)]),
        (BackendError("broke off", kind="unavailable"), []),
    ],
)
def test_a_conversation_is_given_back_only_if_it_heard_nothing(failure: BackendError, kept: list[Any]) -> None:
    memory, service = Memory(), Kept("a", failure)
    turn(memory, history("A"), service)
    with pytest.raises(BackendError):
        turn(memory, history("A", "a", "B"), service)
    assert remembered(memory) == kept


def test_one_that_is_lost_is_told_everything_anew_once() -> None:
    memory, service = Memory(), Kept("a", BackendError("gone", kind="refused", code=CONVERSATION_LOST), "b")
    turn(memory, history("A"), service)
    assert turn(memory, history("A", "a", "B"), service) == "b"
    (_, (first, said), (second, told)) = service.told
    assert (first, said, second) == ("c1", "B", "")
    assert told.endswith("=== Assistant ===\na\n\n=== Now ===\nB")
    assert remembered(memory) == [("c3", 4)]


def test_a_new_conversation_that_claims_to_be_lost_is_a_failure() -> None:
    with pytest.raises(BackendError, match="gone"):
        turn(Memory(), history("A"), Kept(BackendError("gone", kind="refused", code=CONVERSATION_LOST)))


def test_answers_that_came_from_elsewhere_are_told() -> None:
    memory, service = Memory(), Kept("a", "c")
    turn(memory, history("A"), service)
    turn(memory, history("A", "a", "B", "not mine", "C"), service)
    assert service.told[1] == (
        "c1",
        "What was said so far:\n\n=== User ===\nB\n\n=== Assistant ===\nnot mine\n\n=== Now ===\nC",
    )
    assert remembered(memory) == [("c1", 6)]


def test_the_next_backend_has_a_conversation_of_its_own_and_the_first_keeps_what_it_had() -> None:
    memory, down = Memory(), BackendError("resting", kind="rate_limit", retryable=True)
    one, two = Kept("a", down), Kept("b", name="two")
    turn(memory, history("A"), one, two)
    assert turn(memory, history("A", "a", "B"), one, two) == "b"
    assert two.told[0][0] == ""
    assert sorted(remembered(memory)) == [("c1", 2), ("c1", 4)]


def test_lines_that_change_do_not_make_another_history() -> None:
    memory, service = Memory(), Kept("a", "b")
    for number, rest in enumerate((history("A"), history("A", "a", "B"))):
        system = Message("system", (Text(f"Be brief.\nToday is day {number}."),))
        turn(memory, (system, *rest), service, prompt={"volatile": ["Today is"]})
    assert [conversation for conversation, _ in service.told] == ["", "c1"]
    assert service.told[1][1] == "B\n\nToday is day 1."
