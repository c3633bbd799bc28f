"""Arguments written member by member: typed by the schema, streamed where they can be, mended by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright import check_events, collect
from callwright.arguments import ArgumentsWriter, read_object
from callwright.events import CallDelta
from callwright.ids import make_sequential_ids
from callwright.model import ToolSpec
from callwright.schema import Schema, Toolbox
from callwright.text.source import Source
from callwright.turn import Turn

PROPERTIES = {
    "filePath": {"type": "string"},
    "count": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "note": {"type": ["string", "null"]},
    "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
}


def opened(required: tuple[str, ...] = ("filePath",), properties: Any = PROPERTIES) -> tuple[Turn, ArgumentsWriter]:
    spec = ToolSpec("f", "", {"type": "object", "properties": properties, "required": list(required)})
    turn = Turn(Toolbox([spec]), make_sequential_ids())
    return turn, ArgumentsWriter(turn.start_call("f"))


def ended(turn: Turn) -> tuple[Any, list[str]]:
    turn.finish()
    events = turn.drain_events()
    check_events(events)
    said = collect(events)
    return json.loads(said.tool_calls[0].arguments), [repair.kind for repair in said.repairs]


def given(*members: tuple[str, str], required: tuple[str, ...] = ("filePath",), properties: Any = PROPERTIES) -> Any:
    turn, arguments = opened(required, properties)
    for key, raw in members:
        parameter = arguments.start_parameter(key)
        for char in raw:
            parameter.write(char)
        parameter.end()
    arguments.close()
    return ended(turn)


# ── members as text ───────────────────────────────────────────────────────────────────────────────


def test_members_take_their_types() -> None:
    assert given(("filePath", 'a "b"\n'), ("count", "3"), ("tags", "['x']"), ("size", "9"), ("extra", "5")) == (
        {"filePath": 'a "b"\n', "count": 3, "tags": ["x"], "size": 9, "extra": 5},
        [],
    )
    assert given() == ({}, [])


@pytest.mark.parametrize(
    ("raw", "value"),
    [("null", None), ("None", None), (" null\n", None), ("nullable", "nullable"), ("No", "No"), ("", "")],
)
def test_a_nullable_string_is_null_only_when_it_says_so(raw: str, value: Any) -> None:
    assert given(("note", raw))[0] == {"note": value}


def test_a_string_streams_and_a_nullable_one_as_soon_as_it_cannot_be_null() -> None:
    turn, arguments = opened()
    parameter = arguments.start_parameter("filePath")
    turn.drain_events()
    parameter.write("a")
    assert turn.drain_events() == [CallDelta(0, "a")]
    parameter.end()
    parameter = arguments.start_parameter("note")
    turn.drain_events()
    parameter.write("nu")
    assert turn.drain_events() == []
    parameter.write("t")
    assert turn.drain_events() == [CallDelta(0, ', "note": "nut')]


def test_text_repairs_name_the_parameter() -> None:
    turn, arguments = opened()
    arguments.write_text("tags", "['x'", Schema({"type": "array"}))
    arguments.close()
    turn.finish()
    assert ("closed_bracket", "tags: ']' was missing at the end") in [
        (repair.kind, repair.detail) for repair in collect(turn.drain_events()).repairs
    ]


def test_the_dialects_own_type_counts_where_the_schema_is_silent() -> None:
    turn, arguments = opened()
    for key in ("zip_code", "count"):
        parameter = arguments.start_parameter(key, Schema({"type": "string"}))
        parameter.write("007" if key == "zip_code" else "7")
        parameter.end()
    arguments.close()
    assert ended(turn)[0] == {"zip_code": "007", "count": 7}


# ── near names ────────────────────────────────────────────────────────────────────────────────────


def test_the_only_missing_parameter_may_come_under_a_near_name() -> None:
    assert given(("path", "007")) == ({"filePath": "007"}, ["renamed_parameter"])
    assert read('{"path": "a", "count": 1}') == ({"count": 1, "filePath": "a"}, ["renamed_parameter"])


def test_a_near_name_stays_when_the_right_one_comes_too() -> None:
    assert given(("path", "x"), ("filePath", "y")) == ({"filePath": "y", "path": "x"}, [])


def test_a_near_name_stays_when_more_than_one_is_missing() -> None:
    assert given(("path", "x"), required=("filePath", "count")) == ({"path": "x"}, [])


def test_a_near_name_stays_when_nothing_required_is_missing() -> None:
    assert given(("path", "5"), required=()) == ({"path": 5}, [])


def test_names_far_from_all_are_passed_on_at_once() -> None:
    turn, arguments = opened()
    arguments.write_text("zzz", "1", Schema({}))
    assert turn.drain_events()[-1] == CallDelta(0, '{"zzz": 1')


def test_misses() -> None:
    _, arguments = opened()
    assert arguments.is_missing("count")
    assert not arguments.is_missing("nope")
    arguments.write_json("count", "1")
    assert not arguments.is_missing("count")


# ── members as JSON ───────────────────────────────────────────────────────────────────────────────


def read(text: str, required: tuple[str, ...] = ("filePath",), properties: Any = PROPERTIES) -> Any:
    results = []
    for size in (1, 2, 3, len(text)):
        turn, arguments = opened(required, properties)
        source = Source()
        reader = read_object(source, arguments)
        whole = None
        try:
            for start in range(0, len(text), size):
                source.feed(text[start : start + size])
                next(reader)
            source.close()
            next(reader)
        except StopIteration as stop:
            whole = stop.value
        if not whole:
            return False
        results.append(ended(turn))
    assert all(result == results[0] for result in results)
    return results[0]


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ("{}", {}, []),
        ('{ "filePath" : "a" , "count":3 }', {"filePath": "a", "count": 3}, []),
        ('{"count": "3"}', {"count": 3}, ["coerced_type"]),
        ('{"tags": "[\\"a\\"]"}', {"tags": ["a"]}, ["coerced_type"]),
        ('{"filePath": 5}', {"filePath": "5"}, ["coerced_type"]),
        ('{"filePath": "a",}', {"filePath": "a"}, ["trailing_comma"]),
        ('{"filePath": "a" "count": 1}', {"filePath": "a", "count": 1}, ["missing_comma"]),
        ("{'filePath': 'a'}", {"filePath": "a"}, ["quoted_key", "single_quotes"]),
        (
            "{filePath: 'it\\'s', count: 1}",
            {"filePath": "it's", "count": 1},
            ["quoted_key", "single_quotes", "python_escape"],
        ),
        ('{"count": None}', {"count": None}, ["python_word"]),
        ('{"count": what?}', {"count": "what?"}, ["quoted_value"]),
        ('{"zzz": {"b": [1, {"c": "d}"}]}}', {"zzz": {"b": [1, {"c": "d}"}]}}, []),
        ('{"zzz": "s"}', {"zzz": "s"}, []),
        ('{"size": "s"}', {"size": "s"}, []),
        ('{"note": null}', {"note": None}, []),
        ('{"filePath": "two\nlines"}', {"filePath": "two\nlines"}, ["escaped_control_character"]),
        ('{"filePath": "say "hi" now"}', {"filePath": 'say "hi" now'}, ["escaped_quote"]),
    ],
)
def test_an_object_is_read(text: str, value: Any, repairs: list[str]) -> None:
    assert read(text) == (value, repairs)


@pytest.mark.parametrize(
    "text", ["{", '{"a', '{"a": ', '{"a": "b', '{"a": [1', '{"a": 1', '{"a" 1}', "{[}", '{"a": ,}']
)
def test_an_object_that_breaks_off_says_so(text: str) -> None:
    assert read(text) is False


def test_without_a_schema_everything_passes() -> None:
    assert read('{"a": "1", "b": [2]}', properties={}) == ({"a": "1", "b": [2]}, [])


@pytest.mark.parametrize(
    ("key", "may"),
    [("filePath", True), ("note", True), ("size", True), ("other", True), ("count", False), ("path", False)],
)
def test_a_string_streams_unless_its_type_or_its_name_is_in_doubt(key: str, may: bool) -> None:
    assert opened()[1].can_stream(key) is may
