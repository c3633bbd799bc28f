"""What makes two histories the same conversation, and what does not."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult
from callwright.store.identity import ConversationScope, hash_prefixes
from tests.support.streams import names, values, words

SCOPE = ConversationScope("team", "big", "platform")

ids = st.sampled_from(["call_1", "call_2", "call_3", ""])
arguments = st.dictionaries(words, values, max_size=3).map(json.dumps) | words
parts = st.one_of(
    st.builds(Text, words),
    st.builds(Reasoning, words),
    st.builds(Image, words),
    st.builds(ToolCall, ids, names, arguments),
    st.builds(ToolResult, ids, words, is_error=st.booleans()),
)
roles = st.sampled_from(["system", "user", "assistant", "tool"])
messages = st.builds(Message, roles, st.lists(parts, max_size=4).map(tuple))
histories = st.lists(messages, max_size=6)


def said(role: str, *parts: str) -> Message:
    return Message(role, tuple(map(Text, parts)))


def called(*calls: tuple[str, str, str]) -> Message:
    return Message("assistant", tuple(ToolCall(*call) for call in calls))


def result(call_id: str, content: str) -> Message:
    return Message("tool", (ToolResult(call_id, content),))


def head(*history: Message, scope: ConversationScope = SCOPE) -> str:
    return hash_prefixes(history, scope)[-1]


@given(histories, histories)
def test_the_hash_of_a_prefix_does_not_depend_on_what_follows(first: list[Message], more: list[Message]) -> None:
    assert hash_prefixes(first + more, SCOPE)[: len(first)] == hash_prefixes(first, SCOPE)


@given(histories)
def test_every_prefix_has_a_hash_of_its_own(history: list[Message]) -> None:
    found = hash_prefixes(history, SCOPE)
    assert len(found) == len(history) == len(set(found))


@given(histories.filter(bool), st.data())
def test_a_change_anywhere_changes_every_hash_from_there_on(history: list[Message], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(history) - 1))
    edited = list(history)
    edited[place] = Message(edited[place].role, (*edited[place].parts, Text("edited")))
    before, after = hash_prefixes(history, SCOPE), hash_prefixes(edited, SCOPE)
    assert before[:place] == after[:place]
    assert not set(before[place:]) & set(after[place:])


@given(histories, st.permutations(["call_1", "call_2", "call_3", ""]))
def test_ids_do_not_count(history: list[Message], others: list[str]) -> None:
    renamed = dict(zip(["call_1", "call_2", "call_3", ""], others, strict=True))

    def rename(part: object) -> object:
        match part:
            case ToolCall():
                return msgspec.structs.replace(part, id=renamed[part.id])
            case ToolResult():
                return msgspec.structs.replace(part, call_id=renamed[part.call_id])
            case _:
                return part

    again = [Message(each.role, tuple(map(rename, each.parts))) for each in history]
    assert hash_prefixes(again, SCOPE) == hash_prefixes(history, SCOPE)


SAME = {
    "white space at the ends": (said("user", "Hello"), said("user", "\n Hello \n")),
    "text in several parts": (said("user", "one two"), said("user", "one ", "two")),
    "thoughts": (said("assistant", "Hi"), Message("assistant", (Reasoning("hm", {"id": 1}), Text("Hi")))),
    "text around a call": (
        Message("assistant", (Text("Look: "), ToolCall("1", "f", "{}"), Text("done"))),
        Message("assistant", (Text("Look: done"), ToolCall("9", "f", "{}"))),
    ),
    "the spelling of arguments": (
        called(("1", "f", '{"a": 1, "b": "\\u00e9"}')),
        called(("1", "f", '{"b":"é","a":1}')),
    ),
    "no arguments": (called(("1", "f", "")), called(("1", "f", "{}"))),
    "white space around broken arguments": (called(("1", "f", '{"a":')), called(("1", "f", ' {"a": \n'))),
}

DIFFERENT = {
    "white space inside": (said("user", "a  b"), said("user", "a b")),
    "who says it": (said("user", "a"), said("assistant", "a")),
    "the tool": (called(("1", "f", "{}")), called(("1", "g", "{}"))),
    "a number and its text": (called(("1", "f", '{"a": 1}')), called(("1", "f", '{"a": "1"}'))),
    "broken arguments and their text": (called(("1", "f", "{a")), called(("1", "f", '"{a"'))),
    "the order of calls": (called(("1", "f", "{}"), ("2", "g", "{}")), called(("1", "g", "{}"), ("2", "f", "{}"))),
    "a picture": (Message("user", (Image("data:,a"),)), Message("user", (Image("data:,b"),))),
    "a failed result": (
        Message("tool", (ToolResult("1", "x"),)),
        Message("tool", (ToolResult("1", "x", is_error=True),)),
    ),
    "a call and text that reads like it": (said("assistant", '["call", "f", {}]'), called(("1", "f", "{}"))),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_what_clients_change_on_the_way_does_not_count(pair: tuple[Message, Message]) -> None:
    assert head(pair[0]) == head(pair[1])


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_what_a_model_would_read_differently_counts(pair: tuple[Message, Message]) -> None:
    assert head(pair[0]) != head(pair[1])


def test_a_result_belongs_to_its_call_and_not_to_its_place() -> None:
    calls = called(("1", "read", '{"path": "a"}'), ("2", "read", '{"path": "b"}'))
    straight = head(calls, result("1", "of a"), result("2", "of b"))
    crossed = head(calls, result("2", "of a"), result("1", "of b"))
    assert straight != crossed


def test_an_id_that_is_used_again_means_the_latest_call() -> None:
    """Some servers number the calls of every turn from zero."""
    rounds = [called(("call_0", "f", "{}")), result("call_0", "x")]
    unique = [each for name in "abc" for each in (called((name, "f", "{}")), result(name, "x"))]
    assert hash_prefixes(rounds * 3, SCOPE) == hash_prefixes(unique, SCOPE)


@pytest.mark.parametrize("other", [SCOPE._replace(**{field: "other"}) for field in ConversationScope._fields])
def test_another_scope_has_other_hashes(other: ConversationScope) -> None:
    assert head(said("user", "Hello"), scope=other) != head(said("user", "Hello"))


def test_names_in_a_scope_do_not_run_into_each_other() -> None:
    assert ConversationScope("a", "bc", "d").digest != ConversationScope("ab", "c", "d").digest


@pytest.mark.parametrize(
    "text",
    ["\ud800", "[" * 100_000, *("[" * deep + "]" * deep for deep in range(300, 1100, 50)), "1" * 5000, "NaN", "\0"],
    ids=lambda text: f"{text[:1]!r} {len(text)}",
)
def test_nothing_that_a_client_can_send_is_an_obstacle(text: str) -> None:
    assert head(said("user", text), called(("1", text, text)), result(text, text))
