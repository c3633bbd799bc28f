"""Native calls under the same guard as those read from text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright import check_events, collect
from callwright.events import CallDelta, Event
from callwright.guard.native_calls import NativeCallWriter
from callwright.ids import make_sequential_ids
from callwright.schema import Toolbox
from callwright.turn import Collected, Turn
from tests.support.harness import TOOLS


def guarded() -> tuple[Turn, NativeCallWriter]:
    turn = Turn(Toolbox(TOOLS), make_sequential_ids())
    return turn, NativeCallWriter(turn)


def said(turn: Turn, before: list[Event] | None = None) -> Collected:
    turn.finish()
    events = [*(before or []), *turn.drain_events()]
    check_events(events)
    return collect(events)


def told(result: Collected) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, json.loads(call.arguments)) for call in result.tool_calls]


def test_arguments_are_typed_and_stream() -> None:
    turn, calls = guarded()
    calls.start_call(0, "write_file", "a")
    calls.feed(0, '{"path": "x", "content": "ab')
    before = turn.drain_events()
    assert before[-1] == CallDelta(0, '{"path": "x", "content": "ab')
    calls.feed(0, 'c"}')
    calls.feed(0, "late")
    calls.end_calls()
    assert told(said(turn, before)) == [("a", "write_file", {"path": "x", "content": "abc"})]


def test_almost_right_arguments_are_mended() -> None:
    turn, calls = guarded()
    calls.start_call(0, "get_weather")
    calls.feed(0, '{"city": "Oslo", "days": "2"}')
    result = said(turn)
    assert told(result) == [("call_1", "get_weather", {"city": "Oslo", "days": 2})]
    assert [repair.kind for repair in result.repairs] == ["coerced_type"]


def test_interleaved_calls_are_said_one_after_the_other() -> None:
    turn, calls = guarded()
    calls.start_call(0, "get_weather", "a")
    calls.start_call(1, "ping", "b")
    calls.feed(0, '{"city": ')
    calls.feed(1, "{}")
    calls.feed(0, '"Oslo"}')
    calls.end_calls()
    assert told(said(turn)) == [("a", "get_weather", {"city": "Oslo"}), ("b", "ping", {})]


def test_no_arguments_at_all_are_an_empty_object() -> None:
    turn, calls = guarded()
    calls.start_call(0, "ping", "a")
    calls.start_call(1, "ping", "b")
    calls.end_calls(0)
    calls.feed(1, "  ")
    calls.end_calls(1)
    calls.end_calls()
    assert told(said(turn)) == [("a", "ping", {}), ("b", "ping", {})]


def test_a_cut_call_is_marked() -> None:
    turn, calls = guarded()
    calls.start_call(0, "get_weather")
    calls.feed(0, '{"city": "Os')
    calls.end_calls()
    result = said(turn)
    assert (result.finish_reason, result.tool_calls[0].complete) == ("length", False)
    assert not result.malformed


@pytest.mark.parametrize("inside", ['{"city": "Oslo \\"x\\"", "days": 2}', "{'city': 'Oslo \"x\"', 'days': '2'}"])
@pytest.mark.parametrize("size", [1, 5, 100])
def test_arguments_that_were_written_as_json_twice_are_unwrapped(inside: str, size: int) -> None:
    turn, calls = guarded()
    calls.start_call(0, "get_weather", "a")
    twice = json.dumps(inside)
    for at in range(0, len(twice), size):
        calls.feed(0, twice[at : at + size])
    calls.end_calls()
    result = said(turn)
    assert told(result) == [("a", "get_weather", {"city": 'Oslo "x"', "days": 2})]
    assert "unwrapped_arguments" in [repair.kind for repair in result.repairs]


@pytest.mark.parametrize("sent", ['"Oslo"', '"[1]"', '""', '"{\\"city\\": \\"Os'])
def test_a_string_that_holds_no_object_is_set_aside(sent: str) -> None:
    turn, calls = guarded()
    calls.start_call(0, "get_weather")
    calls.feed(0, sent)
    calls.end_calls()
    result = said(turn)
    assert (result.finish_reason, result.tool_calls[0].complete) == ("length", False)
    assert [bad.raw for bad in result.malformed] == [sent]


def test_what_is_no_object_is_set_aside() -> None:
    turn, calls = guarded()
    calls.start_call(0, "ping")
    calls.feed(0, "non")
    calls.feed(0, "sense")
    calls.end_calls()
    result = said(turn)
    assert not result.tool_calls[0].complete
    assert [bad.raw for bad in result.malformed] == ["nonsense"]
