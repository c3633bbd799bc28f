"""Calls that do not fit their tool stay back, whole; all others go on as they came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import check_events
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, Malformed, TextDelta, UsageSeen
from callwright.guard.schema_check import SchemaCheckedCalls
from callwright.model import ToolSpec, Usage

NUMBER = ToolSpec("count", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


def call(arguments: str, name: str = "count", *, complete: bool = True) -> list[Event]:
    return [CallStart(0, "call_1", name), CallDelta(0, arguments), CallEnd(0, complete)]


def test_a_call_that_fits_goes_on_at_its_end_and_words_at_once() -> None:
    stage = SchemaCheckedCalls([NUMBER])
    start, delta, end = call('{"n": 1}')
    assert stage.feed([TextDelta("So."), start]) == [TextDelta("So.")]
    assert stage.feed([UsageSeen(Usage()), delta]) == [UsageSeen(Usage())]
    assert stage.feed([end]) == [start, delta, end]


def test_a_call_that_does_not_fit_becomes_malformed_and_the_next_is_judged_by_itself() -> None:
    stage = SchemaCheckedCalls([NUMBER])
    (refused,) = stage.feed(call('{"n": "one"}'))
    assert refused == Malformed(
        'count {"n": "one"}', 'the arguments of count do not fit: n: "one" is not of type "integer"'
    )
    assert stage.rejected_tool == "count"
    assert stage.feed(call('{"n": 1}')) == call('{"n": 1}')


def test_an_unknown_tool_is_named_beside_the_known_ones() -> None:
    stage = SchemaCheckedCalls([NUMBER])
    (refused,) = stage.feed(call("{}", "cuont"))
    assert isinstance(refused, Malformed)
    assert refused.reason == "there is no tool 'cuont'; the tools are: count"
    assert stage.rejected_tool == ""


def test_a_call_that_was_cut_is_for_others_to_judge() -> None:
    cut = call('{"n": ', complete=False)
    assert SchemaCheckedCalls([NUMBER]).feed(cut) == cut


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "dict"}, {"$ref": "http://127.0.0.1:9/schema.json"}, {"properties": 3}, {"pattern": "("}],
)
def test_a_schema_that_is_wrong_itself_refuses_nothing(schema: dict[str, Any]) -> None:
    whole = call('{"a": 1}', "odd")
    assert SchemaCheckedCalls([ToolSpec("odd", parameters=schema)]).feed(whole) == whole


@given(st.dictionaries(st.sampled_from("nm"), st.none() | st.integers() | st.text(max_size=3)), st.text(max_size=5))
def test_every_stream_stays_legal(arguments: dict[str, Any], text: str) -> None:
    events = SchemaCheckedCalls([NUMBER]).feed(call(json.dumps(arguments)))
    check_events([*events, Finish("stop")])
    assert isinstance(events[0], CallStart) == isinstance(arguments.get("n"), int)
