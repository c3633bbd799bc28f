"""Call objects and lists of them: neighbours survive, every character ends somewhere, any key order is read."""

from __future__ import annotations

from typing import Any

import pytest

from callwright import Collected, get_dialect
from tests.support.harness import SIZES, read, told

PING = ("ping", {})
OSLO = ("get_weather", {"city": "Oslo"})


def hermes(body: str, size: int = 3) -> Collected:
    return read(get_dialect("hermes"), f"<tool_call>{body}</tool_call>", size)


def kinds(turn: Collected) -> list[str]:
    return [repair.kind for repair in turn.repairs]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ('{"name": "rm", "arguments": {"path": "}]"}}', "unknown tool 'rm'"),
        ('{"city": "Oslo"}', "the JSON names no tool"),
        ('{"name": "ping", "arguments": [1]}', "the arguments are not an object"),
        ('{"type": "function", "function": {"name": "rm", "arguments": {}}}', "unknown tool 'rm'"),
        ('{"name" "ping"}', "the JSON is incomplete"),
    ],
)
@pytest.mark.parametrize(
    "form", ['[{{"name": "ping"}}, {}, {{"name": "ping"}}]', '{{"name": "ping"}}\n{}\n{{"name": "ping"}}']
)
def test_what_is_no_call_leaves_its_neighbours_alone(form: str, other: str, reason: str, size: int) -> None:
    turn = hermes(form.format(other), size)
    assert told(turn) == [PING, PING]
    assert [(one.raw.strip(", "), one.reason) for one in turn.malformed] == [(other, reason)]
    assert turn.text == ""


def test_a_refused_first_of_a_list_is_set_aside_when_calls_follow() -> None:
    turn = hermes('[{"city": "Oslo"}, {"name": "ping"}]')
    assert (told(turn), len(turn.malformed)) == ([PING], 1)


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        '[{"name": "rm"}]',
        '[{"name": "Ann", "age": 3}, {"a": 1}, {"name": "Bob"}]',
        '[{"name": "Ann"}, {"name": "Bo',
        '{"name": "rm"}',
        "[1]",
    ],
)
def test_without_any_call_all_of_it_is_text(body: str) -> None:
    turn = hermes(body)
    assert (turn.text, turn.tool_calls) == (f"<tool_call>{body}</tool_call>", ())


@pytest.mark.parametrize(
    ("body", "call", "repairs"),
    [
        ('{"name": "get_weather", "city": "Oslo"}', OSLO, []),
        ('{"arguments": {"city": "Oslo"}, "name": "get_weather", "type": "function"}', OSLO, []),
        ('{name: "get_weather", "arguments": {"city": "Oslo"}}', OSLO, ["quoted_key"]),
        ('{"name": "get_weather", "arguments": "{\'city\': \'Oslo\'}"}', OSLO, ["single_quotes"]),
        ('{"name": "ping", "arguments": ""}', PING, []),
        ('{"name": "ping", "arguments": null}', PING, []),
        ('{"name": "ping", "arguments": {}, "id": "x"}', PING, ["late_id"]),
        ('[{"name": "ping", "arguments": {}}', PING, ["missing_bracket"]),
        ('{"name": "ping", "arguments": {}', PING, ["missing_brace"]),
    ],
)
def test_any_order_and_spelling(body: str, call: tuple[str, Any], repairs: list[str]) -> None:
    turn = hermes(body)
    assert (told(turn), kinds(turn), turn.text) == ([call], repairs, "")


@pytest.mark.parametrize(
    ("body", "raw"),
    [
        ('{"name": "ping", "arguments": {} naïve}', "naïve"),
        ('{"name": "ping", "arguments": {}, "id": "x', '"id": "x'),
    ],
)
def test_what_stands_behind_the_arguments_is_not_lost(body: str, raw: str) -> None:
    turn = hermes(body)
    assert told(turn) == [PING]
    assert [one.raw for one in turn.malformed] == [raw]


def test_broken_arguments_are_cut_and_set_aside_with_their_key() -> None:
    turn = hermes('{"name": "get_weather", "arguments": {"city": "Oslo", days! 2}}')
    assert [(call.arguments, call.complete) for call in turn.tool_calls] == [('{"city": "Oslo"', False)]
    assert [one.raw for one in turn.malformed] == ["days! 2}}"]
    assert turn.finish_reason == "length"
