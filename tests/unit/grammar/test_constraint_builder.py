"""Answers held to a grammar or to a schema are read back as the calls and words that they are."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import check_events, collect
from callwright.dialects import REGISTRY, Dialect
from callwright.dialects.answer import ANSWER
from callwright.events import Event, TextDelta, merge_deltas
from callwright.grammar.constraint_builder import build_constraint, get_constraint_dialect
from callwright.model import ToolCall, ToolSpec
from callwright.parser import Parser
from callwright.turn import Collected
from tests.support.gbnf import Grammar

WEATHER = ToolSpec(
    "get_weather",
    "Weather in a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "unit": {"enum": ["C", "F"]},
            "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "definitions": {"type": "boolean"},
        },
        "required": ["city"],
        "$defs": {"Place": {"type": "object", "properties": {"in": {"$ref": "#/$defs/Place"}, "at": {"$ref": "#"}}}},
    },
)
PING = ToolSpec("ping")
TEXT = {"type": "string"}
WRITE = ToolSpec(
    "write_file",
    parameters={"type": "object", "properties": {"path": TEXT, "text": TEXT}, "required": ["path", "text"]},
)
TOOLS = (WEATHER, PING, WRITE)
JSON_DIALECTS = [dialect for dialect in REGISTRY.values() if get_constraint_dialect(dialect) is dialect]
ALPHABET = 'ab <tol_c>/{}[]"\\\n:,é'

dialects = pytest.mark.parametrize("dialect", JSON_DIALECTS, ids=lambda dialect: dialect.name)


def read(dialect: Dialect, text: str, cuts: list[int] | None = None) -> tuple[list[Event], Collected]:
    parser = Parser(dialect, TOOLS)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts or [])})
    events = [event for a, b in pairwise(places) for event in parser.feed(text[a:b])]
    events += parser.close()
    check_events(events)
    return events, collect(events)


def assert_fits(call: ToolCall) -> None:
    schema = next(tool.parameters for tool in TOOLS if tool.name == call.name)
    jsonschema_rs.validator_for(schema or {"type": "object"}).validate(json.loads(call.arguments))
    assert call.complete


def test_the_families_that_write_json_keep_their_own_form() -> None:
    names = {dialect.name for dialect in JSON_DIALECTS}
    assert {"hermes", "llama3_json", "granite3", "jamba", "fenced"} <= names
    assert get_constraint_dialect(REGISTRY["invoke"]).name == "hermes"


@dialects
@settings(max_examples=15, deadline=None)
@given(random=st.randoms(use_true_random=False), named=st.sampled_from(["required", "get_weather"]))
def test_an_answer_that_must_be_calls_is_read_as_calls_that_fit(dialect: Dialect, random: Random, named: str) -> None:
    made = Grammar.of(build_constraint(TOOLS, dialect, named).grammar).make(random, ALPHABET)
    _, turn = read(dialect, made)
    assert turn.tool_calls, made
    assert (turn.text, turn.malformed, turn.repairs) == ("", (), ()), made
    for call in turn.tool_calls:
        assert_fits(call)
        assert named in ("required", call.name)


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_free_answer_is_words_then_calls_that_fit(random: Random) -> None:
    dialect = REGISTRY["hermes"]
    made = Grammar.of(build_constraint(TOOLS, dialect).grammar).make(random, "ab<tol_c> >", depth=400)
    _, turn = read(dialect, made)
    assert made
    for call in turn.tool_calls:
        assert_fits(call)
    assert bool(turn.tool_calls) == ("<tool_call>" in made), made


@dialects
def test_what_the_dialect_renders_is_taken(dialect: Dialect) -> None:
    calls = (
        ToolCall("1", "get_weather", '{"city": "Oslo\\n", "days": 3, "unit": "F", "places": [{"in": {}}]}'),
        ToolCall("2", "ping", "{}"),
    )
    free = Grammar.of(build_constraint(TOOLS, dialect).grammar)
    held = Grammar.of(build_constraint(TOOLS, dialect, "required", parallel=False).grammar)
    assert free.accepts(dialect.render_call(*calls))
    assert held.accepts(dialect.render_call(calls[0]))
    assert not held.accepts(dialect.render_call(*calls))
    assert not held.accepts("In words.")
    assert free.accepts("In words, with a < and more.")
    assert not free.accepts("")


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("", "get_weather", "{}"),
        ToolCall("", "get_weather", '{"city": 1}'),
        ToolCall("", "get_weather", '{"city": "x", "days": 8}'),
        ToolCall("", "get_weather", '{"city": "x", "town": "y"}'),
        ToolCall("", "get_weathers", '{"city": "x"}'),
        ToolCall("", "ping", '{"a": 1}'),
    ],
)
@dialects
def test_a_call_that_does_not_fit_is_not_taken(dialect: Dialect, call: ToolCall) -> None:
    for choice in ("auto", "required"):
        grammar = Grammar.of(build_constraint(TOOLS, dialect, choice).grammar)
        assert not grammar.accepts(dialect.render_call(call))


def test_half_an_opener_is_words() -> None:
    grammar = Grammar.of(build_constraint(TOOLS, REGISTRY["hermes"]).grammar)
    for text in ("<", "a <tool_call", "<tool_<tool_cal", "<<<tool_calls>", "</tool_call>"):
        assert grammar.accepts(text), text
    for text in ("<tool_call>", "<<tool_call> no", "a<tool_call>\n{}\n</tool_call>"):
        assert not grammar.accepts(text), text


# ── the whole answer as one object ───────────────────────────────────────────────────────────────


def fits(schema: dict[str, Any], value: Any) -> bool:
    return bool(jsonschema_rs.validator_for(schema).is_valid(value))


def test_a_schema_holds_calls_and_words_with_references_that_lead_somewhere() -> None:
    schema = build_constraint(TOOLS, REGISTRY["hermes"]).schema
    assert schema is not None
    place = {"in": {"in": {}}, "at": {"city": "x"}}
    good = {"name": "get_weather", "arguments": {"city": "Oslo", "places": [place], "definitions": True}}
    assert fits(schema, good)
    assert fits(schema, {"answer": "In words."})
    assert not fits(schema, {"name": "get_weather", "arguments": {"city": "Oslo", "places": [{"at": {}}]}})
    assert not fits(schema, {"name": "get_weather", "arguments": {"city": "Oslo", "definitions": 1}})
    assert not fits(schema, {"name": "nobody", "arguments": {}})


def test_where_a_call_is_required_there_are_no_words() -> None:
    schema = build_constraint(TOOLS, REGISTRY["hermes"], "ping").schema
    assert schema is not None
    assert fits(schema, {"name": "ping", "arguments": {}})
    assert not fits(schema, {"answer": "In words."})
    assert not fits(schema, {"name": "get_weather", "arguments": {"city": "Oslo"}})


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.integers(0, 200), max_size=8), st.booleans())
def test_words_in_an_object_are_words(text: str, cuts: list[int], ascii_only: bool) -> None:
    _, whole = read(ANSWER, json.dumps({"answer": text}, ensure_ascii=ascii_only), cuts)
    assert (whole.text, whole.tool_calls, whole.malformed) == (text, (), ())


def test_words_in_an_object_stream() -> None:
    parser = Parser(ANSWER, TOOLS)
    assert merge_deltas(parser.feed('{ "answer": "Go')) == [TextDelta("Go")]
    assert merge_deltas(parser.feed("od\\n")) == [TextDelta("od\n")]
    assert merge_deltas(parser.feed("\\ud83d")) == []
    assert merge_deltas(parser.feed('\\ude00"}')) == [TextDelta("😀")]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"answer": "hi \\ud83d"}', "hi \ufffd"),
        ('{"answer": "\\ud83d', "\ufffd"),
        ('{"answer": "\\ude00x"}', "\ufffdx"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_half_of_a_character_is_shown_as_one_that_is_missing(written: str, said: str, size: int) -> None:
    _, whole = read(ANSWER, written, range(size, len(written), size))
    assert whole.text == said


@given(st.lists(st.integers(0, 200), max_size=8))
def test_a_call_in_an_object_is_a_call(cuts: list[int]) -> None:
    _, turn = read(ANSWER, '{"name": "get_weather", "arguments": {"city": "Oslo"}}', cuts)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("get_weather", '{"city": "Oslo"}')]
    assert turn.text == ""


@pytest.mark.parametrize(
    "text",
    [
        "Just words.",
        '{"temperature": 3}',
        "",
        '{"answers": 1}',
        '{"answer": 3}',
        '```json\n{"a": 1}\n```',
        "{",
        '{"ans',
    ],
)
@given(cuts=st.lists(st.integers(0, 40), max_size=5))
def test_a_server_that_does_not_keep_to_the_schema_is_read_all_the_same(text: str, cuts: list[int]) -> None:
    events, turn = read(ANSWER, text, cuts)
    assert turn.text == text
    assert merge_deltas(events) == merge_deltas(read(ANSWER, text)[0])


def test_words_that_are_cut_off_are_kept() -> None:
    assert read(ANSWER, '{"answer": "Half a sen')[1].text == "Half a sen"


def test_the_lesson_shows_both_forms() -> None:
    lesson = ANSWER.render_tools(TOOLS)
    assert '{"answer": "..."}' in lesson
    assert '"arguments": {"PARAMETER": "value"}' in lesson
