"""What was thought before a call comes back with it: to its caller, in its conversation, and to nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.engine.reasoning_cache import ReasoningCache
from callwright.engine.routing import ModelRoute, RouteTable
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.model import Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.prompt.settings import PromptSettings

WORDS = (Reasoning("Let me think."),)
SIGNED = (Reasoning("Let me think.", {"signature": "Eq=="}), Reasoning("", {"redacted": "Em=="}))


def route(name: str = "deepseek-v4-pro", **history: Any) -> ModelRoute:
    models = [ModelSettings(name=name, backend="one", history=history)]
    return RouteTable(models, ("one",), ToolRules(), PromptSettings()).find_route(name)


def asked(question: str = "go", *rest: Message) -> Request:
    return Request("m", (Message("user", (Text(question),)), *rest))


def called(*parts: Part | str) -> Message:
    """An answer; a string is a call of that id."""
    return Message("assistant", tuple(ToolCall(part, "f", "{}") if isinstance(part, str) else part for part in parts))


def returned(*parts: Part | str, question: str = "go") -> Request:
    """The request after an answer, as the client sends it."""
    return asked(question, called(*parts), Message("tool", (ToolResult("a", "x"),)))


def kept(thoughts: dict[str, tuple[Reasoning, ...]], to: ModelRoute | None = None, **bounds: int) -> ReasoningCache:
    memory = ReasoningCache(**bounds)
    memory.store_reasoning("me", to or route(), asked(), thoughts)
    return memory


def restored(memory: ReasoningCache, request: Request, to: ModelRoute | None = None, caller: str = "me") -> Request:
    whole, notes = memory.restore_reasoning(caller, to or route(), request)
    assert bool(notes) == (whole != request), "what is changed is told"
    assert whole is request or whole != request
    return whole


@pytest.mark.parametrize("thoughts", [WORDS, SIGNED])
def test_what_the_client_disconnected_out_is_put_back_before_the_words(thoughts: tuple[Reasoning, ...]) -> None:
    memory = kept({"a": thoughts})
    assert restored(memory, returned(Text("I look."), "a")) == returned(*thoughts, Text("I look."), "a")


def test_thoughts_between_calls_stand_before_their_own_call() -> None:
    later = (Reasoning("And now?"),)
    memory = kept({"a": WORDS, "b": (), "c": later})
    assert restored(memory, returned("a", "b", "c")) == returned(*WORDS, "a", "b", *later, "c")


def test_every_earlier_round_gets_its_own() -> None:
    memory = kept({"a": WORDS})
    second = asked("go", called("a"), Message("tool", (ToolResult("a", "x"),)))
    memory.store_reasoning("me", route(), second, {"b": SIGNED})
    third = asked("go", *second.messages[1:], called("b"), Message("tool", (ToolResult("b", "y"),)))
    answers = [message.parts for message in restored(memory, third).messages if message.role == "assistant"]
    assert answers == [called(*WORDS, "a").parts, called(*SIGNED, "b").parts]


@pytest.mark.parametrize(
    ("thoughts", "own", "expected"),
    [
        (WORDS, Reasoning("my own"), "as sent"),
        (WORDS, Reasoning("", {"signature": "own"}), "as sent"),
        (SIGNED, Reasoning("my own", {"signature": "own"}), "as sent"),
        (SIGNED, Reasoning("Let me think."), "restored"),
        (WORDS, Reasoning(""), "restored"),
    ],
)
def test_what_the_client_kept_stays_unless_its_seal_is_missing(
    thoughts: tuple[Reasoning, ...], own: Reasoning, expected: str
) -> None:
    request = returned(own, "a")
    whole = restored(kept({"a": thoughts}), request)
    assert whole == (request if expected == "as sent" else returned(*thoughts, "a"))


@pytest.mark.parametrize(
    ("caller", "model", "question", "call"),
    [
        ("another", "deepseek-v4-pro", "go", "a"),
        ("me", "deepseek-v4-flash", "go", "a"),
        ("me", "deepseek-v4-pro", "something else", "a"),
        ("me", "deepseek-v4-pro", "go", "b"),
    ],
)
def test_nobody_gets_the_thoughts_of_another_conversation(caller: str, model: str, question: str, call: str) -> None:
    """Kimi numbers its calls anew in each conversation: an id alone says nothing."""
    request = returned(call, question=question)
    assert restored(kept({"a": SIGNED}), request, route(model), caller) == request


@pytest.mark.parametrize(
    ("name", "policy", "thoughts", "back"),
    [
        ("deepseek-v4-pro", "keep", WORDS, True),
        ("Moonshotai/Kimi-K2.5", "keep", WORDS, True),
        ("some-model", "keep", WORDS, False),
        ("some-model", "keep", SIGNED, True),
        ("some-model", "restore", WORDS, True),
        ("deepseek-v4-pro", "drop", SIGNED, False),
    ],
)
def test_words_come_back_where_they_are_wanted_and_seals_always(
    name: str, policy: str, thoughts: tuple[Reasoning, ...], back: bool
) -> None:
    """Groq and others refuse a field that they do not know, so the words alone go to who is known to demand them."""
    to = route(name, reasoning=policy)
    memory = ReasoningCache()
    memory.store_reasoning("me", to, asked(), {"a": thoughts})
    assert (restored(memory, returned("a"), to) != returned("a")) is back


def test_a_model_that_was_told_to_drop_reasoning_gets_none_of_what_was_kept_before() -> None:
    memory = kept({"a": WORDS})
    assert restored(memory, returned("a"), route(reasoning="drop")) == returned("a")


def test_the_oldest_go_first_and_one_that_was_asked_for_is_not_old() -> None:
    memory = ReasoningCache(max_entries=2)
    for call_id in ("a", "b"):
        memory.store_reasoning("me", route(), asked(), {call_id: WORDS})
    restored(memory, returned("a"))
    memory.store_reasoning("me", route(), asked(), {"c": WORDS})
    assert [restored(memory, returned(each)) != returned(each) for each in "abc"] == [True, False, True]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 30)), max_size=40), st.integers(1, 5))
def test_the_memory_stays_within_its_bounds(kept: list[tuple[str, int]], most: int) -> None:
    memory = ReasoningCache(max_entries=most, max_characters=50)
    for call_id, size in kept:
        memory.store_reasoning("me", route(), asked(), {call_id: (Reasoning("x" * size),)})
    found = [each for each in "abcdef" if restored(memory, returned(each)) != returned(each)]
    assert len(found) <= most
    if kept:
        newest, _ = kept[-1]
        assert newest in found, "the newest is always there"
    sizes = dict(kept)
    assert len(found) == 1 or sum(sizes[each] for each in found) <= 50
