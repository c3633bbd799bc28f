"""Native arguments: exactly what the backend wrote, as long as nothing is repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import check_events, collect
from callwright.events import CallDelta, Event
from callwright.guard.native_calls import NativeCallWriter
from callwright.ids import make_sequential_ids
from callwright.schema import Toolbox
from callwright.turn import Collected, TruncationMode, Turn
from tests.support.harness import TOOLS

SPACES = st.sampled_from(["", " ", "\n", "  ", "\t", "\r\n  "])


def read(text: str, size: int = 3, name: str = "free", truncated: TruncationMode = "partial") -> Collected:
    turn = Turn(Toolbox(TOOLS), make_sequential_ids(), truncated=truncated, unknown_tool="pass")
    calls = NativeCallWriter(turn)
    calls.start_call(0, name, "a")
    for at in range(0, len(text), size):
        calls.feed(0, text[at : at + size])
    calls.end_calls()
    turn.finish()
    events = turn.drain_events()
    check_events(events)
    return collect(events)


@st.composite
def spaced_json(draw: st.DrawFn, depth: int = 0) -> str:
    """JSON with any white space between its tokens, and any escapes in its strings."""

    def space() -> str:
        return draw(SPACES)

    def string() -> str:
        return json.dumps(draw(st.text(max_size=5)), ensure_ascii=draw(st.booleans()))

    kind = "{" if depth == 0 else draw(st.sampled_from('{["1') if depth < 3 else st.sampled_from('"1'))
    if kind == "1":
        return draw(st.sampled_from(["0", "-1.50", "1e5", "true", "null", "12345678901234567890"]))
    if kind == '"':
        return string()
    count = draw(st.integers(0, 3))
    values = [draw(spaced_json(depth + 1)) for _ in range(count)]
    if kind == "[":
        return f"[{space()}{(space() + ',' + space()).join(values)}{space()}]"
    keys = [string() for _ in values]
    members = [f"{key}{space()}:{space()}{value}" for key, value in zip(keys, values, strict=True)]
    return f"{{{space()}{(space() + ',' + space()).join(members)}{space()}}}"


@given(spaced_json(), st.sampled_from([1, 2, 7, 1000]), st.sampled_from(["free", "ping"]), SPACES)
def test_what_needs_no_repair_is_passed_on_byte_for_byte(text: str, size: int, name: str, around: str) -> None:
    result = read(f"{around}{text}{around}", size, name)
    assert not result.repairs
    assert [call.arguments for call in result.tool_calls] == [text]
    assert result.finish_reason == "tool_calls"


@pytest.mark.parametrize("mode", ["partial", "drop", "repair"])
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1}',
        '{"city":"Oslo","days":2}',
        '{"city" : "Os\\u006co" , "days":2 }',
        '{"c\\u0069ty":"Oslo","days":2}',
        '{"city_name":"x","city":"Oslo","day":1}',
        '{"days":2,"citys":["x"],"city":"Oslo"}',
        '{"city":"a\\"b\\\\","days":2}',
        "{}",
        "{ }",
        '{"city":"Oslo","city":"Rome"}',
    ],
)
def test_declared_parameters_too(text: str, mode: TruncationMode) -> None:
    """Also where a key has escapes, or resembles a parameter that comes later."""
    for size in (1, 4, 100):
        result = read(text, size, "get_weather", mode)
        assert not result.repairs
        assert result.tool_calls[0].arguments == text


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ('{"city":"Oslo","days":"2"}', '{"city":"Oslo", "days": 2}', "coerced_type"),
        ('{"city":"Oslo","days":2,}', '{"city":"Oslo","days":2}', "trailing_comma"),
        ('{"city":"a\nb","days":2}', '{"city":"a\\nb", "days": 2}', "escaped_control_character"),
        ('{"city":"Oslo",,"days":2}', '{"city":"Oslo", "days": 2}', "extra_comma"),
        ('{,"c\\u0069ty":"Oslo"}', '{"city": "Oslo"}', "extra_comma"),
        ('{"c\\u0069ty":"Oslo",,"days":2}', '{"city": "Oslo", "days": 2}', "extra_comma"),
        ("{'city':'Oslo'}", '{"city": "Oslo"}', "quoted_key"),
        ('{"city_name":"Oslo","days":2}', '{"days": 2, "city": "Oslo"}', "renamed_parameter"),
    ],
)
def test_a_repair_changes_what_follows_it(text: str, expected: str, kind: str) -> None:
    for size in (1, 5, 100):
        result = read(text, size, "get_weather")
        assert result.tool_calls[0].arguments == expected
        assert kind in [repair.kind for repair in result.repairs]


def test_strings_still_stream() -> None:
    turn = Turn(Toolbox(TOOLS), make_sequential_ids())
    calls = NativeCallWriter(turn)
    calls.start_call(0, "write_file", "a")
    seen: list[Event] = []
    for piece in ('{"path":"x","con', 'tent":"ab', "cd", '"}'):
        calls.feed(0, piece)
        seen.append(turn.drain_events()[-1])
    texts = [event.text for event in seen if isinstance(event, CallDelta)]
    assert texts == ['{"path":"x"', ',"content":"ab', "cd"]


@pytest.mark.parametrize("end", range(1, 26))
def test_a_cut_call_is_a_prefix(end: int) -> None:
    text = '{"city":"Oslo","days" : 2}'
    result = read(text[:end], 2, "get_weather")
    assert not result.tool_calls[0].complete
    assert text.startswith(result.tool_calls[0].arguments)


# ── calls without arguments ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", '""', " null ", '"null"', '"[]"', '"{}"', "{}"])
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("name", ["ping", "unknown"])
def test_no_arguments_are_an_empty_object(text: str, size: int, name: str) -> None:
    result = read(text, size, name)
    assert [(call.arguments, call.complete) for call in result.tool_calls] == [("{}", True)]
    assert result.finish_reason == "tool_calls"
    assert not result.malformed
    assert bool(result.repairs) == (text.strip() not in ("", "{}"))


@pytest.mark.parametrize("text", ["null", "None", "[]", '""'])
def test_a_tool_with_required_parameters_cannot_be_called_without(text: str) -> None:
    result = read(text, 1, "get_weather")
    assert not result.tool_calls[0].complete
    assert [bad.raw for bad in result.malformed] == [text]


@pytest.mark.parametrize("text", ["nullx", "[1]", "Nonesuch", "[{}]", "5", "nu", "["])
def test_other_text_is_set_aside_as_it_was_written(text: str) -> None:
    for size in (1, 100):
        result = read(text, size, "ping")
        assert not result.tool_calls[0].complete
        assert [bad.raw for bad in result.malformed] == [text]


def test_a_call_that_was_cut_before_its_arguments_is_incomplete() -> None:
    turn = Turn(Toolbox(TOOLS), make_sequential_ids())
    calls = NativeCallWriter(turn)
    calls.start_call(0, "ping", "a")
    calls.end_calls(0, is_cut=True)
    turn.finish()
    result: Any = collect(turn.drain_events())
    assert (result.finish_reason, result.tool_calls[0].complete) == ("length", False)
