"""Turn, the only writer of events: gaps, ids, policies, endings."""

from __future__ import annotations

from typing import Any

import pytest

from callwright import check, collect
from callwright.errors import MisuseError
from callwright.events import CallDelta, CallEnd, CallStart, Finish, Malformed, ReasoningDelta, TextDelta, UsageSeen
from callwright.ids import counted_ids, random_id
from callwright.model import Repair, ToolSpec, Usage
from callwright.schema import Toolbox
from callwright.turn import Turn


def turn(*names: str, **options: Any) -> Turn:
    return Turn(Toolbox(ToolSpec(name) for name in names), counted_ids(), **options)


def test_deltas_of_one_kind_are_joined_within_a_drain() -> None:
    it = turn()
    it.text("a")
    it.text("b")
    it.reasoning("c")
    it.reasoning("d")
    assert it.drain() == [TextDelta("ab"), ReasoningDelta("cd")]
    it.reasoning("e")
    assert it.drain() == [ReasoningDelta("e")]
    assert it.drain() == []


def test_white_space_alone_next_to_a_call_is_framing() -> None:
    it = turn()
    it.text("\n")
    it.text(" ")
    call = it.call("f")
    call.write("{}")
    call.end()
    it.text("\n")
    it.call("g").cut()
    it.text("\n ")
    it.finish()
    said = collect(it.drain())
    assert said.text == ""


def test_white_space_before_text_is_text() -> None:
    it = turn()
    it.text("\n")
    it.text(" a ")
    it.text("\n")
    assert it.drain() == [TextDelta("\n a \n")]


def test_white_space_after_reasoning_waits_for_text() -> None:
    it = turn()
    it.text(" ")
    it.reasoning("r")
    it.text("\n")
    assert it.drain() == [ReasoningDelta("r")]
    it.text("x")
    it.finish()
    assert it.drain() == [TextDelta("\nx"), Finish("stop")]


def test_a_turn_of_white_space_only_says_it() -> None:
    it = turn()
    it.text(" \n")
    it.finish()
    assert it.drain() == [TextDelta(" \n"), Finish("stop")]


def test_a_turn_of_reasoning_and_white_space_does_not() -> None:
    it = turn()
    it.reasoning("r")
    it.text("\n")
    it.finish()
    assert it.drain() == [ReasoningDelta("r"), Finish("stop")]


def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    it = turn()
    it.reserve(["functions.f:0", "call_1"])
    for given, expected in (("functions.f:0", "call_2"), ("functions.f:1", "functions.f:1")):
        call = it.call("f", given)
        assert call.id == expected
        call.write("{}")
        call.end()


def test_ids_are_kept_or_made_and_never_twice() -> None:
    it = turn()
    for given in ("mine", "", "mine", "call_3"):
        call = it.call("f", given)
        call.write("{}")
        call.end()
    it.finish()
    events = it.drain()
    check(events)
    assert [event.id for event in events if isinstance(event, CallStart)] == ["mine", "call_1", "call_2", "call_3"]


def test_one_call_at_a_time() -> None:
    it = turn()
    it.call("f")
    with pytest.raises(MisuseError, match="'f' is still open"):
        it.call("g")


def test_nothing_after_finish() -> None:
    it = turn()
    it.finish()
    with pytest.raises(MisuseError, match="finished"):
        it.finish()


def test_which_names_count() -> None:
    assert turn().accepts("anything")
    assert not turn().accepts("")
    assert turn("f").accepts("f")
    assert not turn("f").accepts("g")
    assert turn("f", unknown_tool="pass").accepts("g")


@pytest.mark.parametrize(
    ("upstream", "calls", "cut", "reason"),
    [
        (None, 0, False, "stop"),
        ("stop", 0, False, "stop"),
        ("length", 0, False, "length"),
        ("tool_calls", 0, False, "stop"),
        (None, 1, False, "tool_calls"),
        ("stop", 1, False, "tool_calls"),
        ("length", 1, False, "tool_calls"),
        ("content_filter", 1, False, "content_filter"),
        ("error", 1, False, "error"),
        ("stop", 1, True, "length"),
    ],
)
def test_how_a_turn_ends(upstream: Any, calls: int, cut: bool, reason: str) -> None:
    it = turn()
    if calls:
        call = it.call("f")
        call.write("{" if cut else "{}")
        if not cut:
            call.end()
    it.finish(upstream)
    events = it.drain()
    check(events)
    assert events[-1] == Finish(reason)  # type: ignore[arg-type]


def test_repairs_are_named_once() -> None:
    it = turn()
    it.note("a", "x")
    it.note("a", "x")
    it.note("a", "y")
    call = it.call("f")
    call.note("b", "first")
    call.note("b", "second")
    for dropped in ("one", "two", "one"):
        call.note("dropped_thing", dropped)
    call.write("{}")
    call.end()
    it.finish()
    events = it.drain()
    assert events[2] == CallEnd(0, True, (Repair("b", "first"), Repair("dropped_thing", "one; two")))
    assert events[3] == Finish("tool_calls", (Repair("a", "x"), Repair("a", "y")))


def test_usage_and_malformed_are_said() -> None:
    it = turn()
    it.usage(Usage(1))
    it.malformed("raw", "why", shown=True)
    assert it.drain() == [UsageSeen(Usage(1)), Malformed("raw", "why", True)]


def test_partial_hands_on_what_came() -> None:
    it = turn()
    call = it.call("f")
    call.write('{"a": "b')
    assert it.drain() == [CallStart(0, "call_1", "f"), CallDelta(0, '{"a": "b')]
    it.finish()
    assert it.drain() == [CallEnd(0, complete=False), Finish("length")]


@pytest.mark.parametrize("policy", ["drop", "repair"])
def test_whole_calls_come_out_under_every_policy(policy: Any) -> None:
    it = turn(truncated=policy)
    call = it.call("f")
    call.write("{")
    assert it.drain() == []
    call.write("}")
    call.end()
    it.finish()
    assert it.drain() == [CallStart(0, "call_1", "f"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]


def test_drop_sets_a_cut_call_aside() -> None:
    it = turn(truncated="drop")
    it.call("f").write('{"a": "b')
    it.finish()
    events = it.drain()
    check(events)
    assert events == [Malformed('f {"a": "b', "cut"), Finish("length")]
    assert it.call_count == 0


@pytest.mark.parametrize(
    ("came", "closed"), [('{"a": "b', '{"a": "b"}'), ("", "{}"), ('{"a": [1, {"b', '{"a": [1, {}]}')]
)
def test_repair_closes_the_json_and_says_so(came: str, closed: str) -> None:
    it = turn(truncated="repair")
    it.call("f").write(came)
    it.finish()
    events = it.drain()
    check(events)
    assert events[1] == CallDelta(0, closed)
    end = events[2]
    assert isinstance(end, CallEnd)
    assert not end.complete
    assert [repair.kind for repair in end.repairs] == ["closed_cut_call"]


def test_a_muted_turn_says_calls_only() -> None:
    it = turn()
    it.mute()
    it.text("known")
    it.reasoning("known")
    call = it.call("f")
    call.write("{")
    it.unmute()
    call.write("}")
    call.end()
    it.text("\n")
    it.finish()
    events = it.drain()
    check(events)
    assert collect(events).tool_calls[0].arguments == "{}"
    assert not [event for event in events if isinstance(event, TextDelta | ReasoningDelta)]


def test_a_turn_is_silent_until_something_new_is_said() -> None:
    it = turn()
    it.mute()
    it.text("known")
    assert it.silent
    it.unmute()
    it.text(" \n")
    assert it.silent
    it.text("x")
    assert not it.silent


@pytest.mark.parametrize("say", [lambda it: it.reasoning("x"), lambda it: it.call("f")])
def test_reasoning_and_calls_break_the_silence(say: Any) -> None:
    it = turn()
    say(it)
    assert not it.silent


def test_unmuting_with_nothing_pending() -> None:
    it = turn()
    it.mute()
    it.unmute()
    it.text("x")
    assert it.drain() == [TextDelta("x")]


def test_random_ids_look_like_openais_and_differ() -> None:
    made = {random_id() for _ in range(100)}
    assert len(made) == 100
    assert all(one.startswith("call_") and len(one) == 29 and one[5:].isalnum() for one in made)
