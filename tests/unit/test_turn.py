"""Turn, the only writer of events: gaps, ids, policies, endings."""

from __future__ import annotations

from typing import Any

import pytest

from callwright import check_events, collect
from callwright.errors import MisuseError
from callwright.events import CallDelta, CallEnd, CallStart, Finish, Malformed, ReasoningDelta, TextDelta, UsageSeen
from callwright.ids import make_call_id, make_sequential_ids
from callwright.model import Repair, ToolSpec, Usage
from callwright.schema import Toolbox
from callwright.turn import Turn


def turn(*names: str, **options: Any) -> Turn:
    return Turn(Toolbox(ToolSpec(name) for name in names), make_sequential_ids(), **options)


def test_deltas_of_one_kind_are_joined_within_a_drain() -> None:
    it = turn()
    it.add_text("a")
    it.add_text("b")
    it.add_reasoning("c")
    it.add_reasoning("d")
    assert it.drain_events() == [TextDelta("ab"), ReasoningDelta("cd")]
    it.add_reasoning("e")
    assert it.drain_events() == [ReasoningDelta("e")]
    assert it.drain_events() == []


def test_white_space_alone_next_to_a_call_is_framing() -> None:
    it = turn()
    it.add_text("\n")
    it.add_text(" ")
    call = it.start_call("f")
    call.write("{}")
    call.end()
    it.add_text("\n")
    it.start_call("g").end_truncated()
    it.add_text("\n ")
    it.finish()
    said = collect(it.drain_events())
    assert said.text == ""


def test_white_space_before_text_is_text() -> None:
    it = turn()
    it.add_text("\n")
    it.add_text(" a ")
    it.add_text("\n")
    assert it.drain_events() == [TextDelta("\n a \n")]


def test_white_space_after_reasoning_waits_for_text() -> None:
    it = turn()
    it.add_text(" ")
    it.add_reasoning("r")
    it.add_text("\n")
    assert it.drain_events() == [ReasoningDelta("r")]
    it.add_text("x")
    it.finish()
    assert it.drain_events() == [TextDelta("\nx"), Finish("stop")]


def test_a_turn_of_white_space_only_says_it() -> None:
    it = turn()
    it.add_text(" \n")
    it.finish()
    assert it.drain_events() == [TextDelta(" \n"), Finish("stop")]


def test_a_turn_of_reasoning_and_white_space_does_not() -> None:
    it = turn()
    it.add_reasoning("r")
    it.add_text("\n")
    it.finish()
    assert it.drain_events() == [ReasoningDelta("r"), Finish("stop")]


def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    it = turn()
    it.reserve_ids(["functions.f:0", "call_1"])
    for given, expected in (("functions.f:0", "call_2"), ("functions.f:1", "functions.f:1")):
        call = it.start_call("f", given)
        assert call.id == expected
        call.write("{}")
        call.end()


def test_ids_are_kept_or_made_and_never_twice() -> None:
    it = turn()
    for given in ("mine", "", "mine", "call_3"):
        call = it.start_call("f", given)
        call.write("{}")
        call.end()
    it.finish()
    events = it.drain_events()
    check_events(events)
    assert [event.id for event in events if isinstance(event, CallStart)] == ["mine", "call_1", "call_2", "call_3"]


def test_one_call_at_a_time() -> None:
    it = turn()
    it.start_call("f")
    with pytest.raises(MisuseError, match="'f' is still open"):
        it.start_call("g")


def test_nothing_after_finish() -> None:
    it = turn()
    it.finish()
    with pytest.raises(MisuseError, match="finished"):
        it.finish()


def test_which_names_count() -> None:
    assert turn().can_call("anything")
    assert not turn().can_call("")
    assert turn("f").can_call("f")
    assert not turn("f").can_call("g")
    assert turn("f", unknown_tool="pass").can_call("g")


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
        call = it.start_call("f")
        call.write("{" if cut else "{}")
        if not cut:
            call.end()
    it.finish(upstream)
    events = it.drain_events()
    check_events(events)
    assert events[-1] == Finish(reason)  # type: ignore[arg-type]


def test_repairs_are_named_once() -> None:
    it = turn()
    it.add_repair("a", "x")
    it.add_repair("a", "x")
    it.add_repair("a", "y")
    call = it.start_call("f")
    call.add_repair("b", "first")
    call.add_repair("b", "second")
    for dropped in ("one", "two", "one"):
        call.add_repair("dropped_thing", dropped)
    call.write("{}")
    call.end()
    it.finish()
    events = it.drain_events()
    assert events[2] == CallEnd(0, True, (Repair("b", "first"), Repair("dropped_thing", "one; two")))
    assert events[3] == Finish("tool_calls", (Repair("a", "x"), Repair("a", "y")))


def test_usage_and_malformed_are_said() -> None:
    it = turn()
    it.add_usage(Usage(1))
    it.add_malformed("raw", "why", shown=True)
    assert it.drain_events() == [UsageSeen(Usage(1)), Malformed("raw", "why", True)]


def test_partial_hands_on_what_came() -> None:
    it = turn()
    call = it.start_call("f")
    call.write('{"a": "b')
    assert it.drain_events() == [CallStart(0, "call_1", "f"), CallDelta(0, '{"a": "b')]
    it.finish()
    assert it.drain_events() == [CallEnd(0, complete=False), Finish("length")]


@pytest.mark.parametrize("policy", ["drop", "repair"])
def test_whole_calls_come_out_under_every_policy(policy: Any) -> None:
    it = turn(truncated=policy)
    call = it.start_call("f")
    call.write("{")
    assert it.drain_events() == []
    call.write("}")
    call.end()
    it.finish()
    assert it.drain_events() == [CallStart(0, "call_1", "f"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]


def test_drop_sets_a_cut_call_aside() -> None:
    it = turn(truncated="drop")
    it.start_call("f").write('{"a": "b')
    it.finish()
    events = it.drain_events()
    check_events(events)
    assert events == [Malformed('f {"a": "b', "cut"), Finish("length")]
    assert it.call_count == 0


@pytest.mark.parametrize(
    ("came", "closed"), [('{"a": "b', '{"a": "b"}'), ("", "{}"), ('{"a": [1, {"b', '{"a": [1, {}]}')]
)
def test_repair_closes_the_json_and_says_so(came: str, closed: str) -> None:
    it = turn(truncated="repair")
    it.start_call("f").write(came)
    it.finish()
    events = it.drain_events()
    check_events(events)
    assert events[1] == CallDelta(0, closed)
    end = events[2]
    assert isinstance(end, CallEnd)
    assert not end.complete
    assert [repair.kind for repair in end.repairs] == ["closed_cut_call"]


def test_a_muted_turn_says_calls_only() -> None:
    it = turn()
    it.begin_prefill()
    it.add_text("known")
    it.add_reasoning("known")
    call = it.start_call("f")
    call.write("{")
    it.end_prefill()
    call.write("}")
    call.end()
    it.add_text("\n")
    it.finish()
    events = it.drain_events()
    check_events(events)
    assert collect(events).tool_calls[0].arguments == "{}"
    assert not [event for event in events if isinstance(event, TextDelta | ReasoningDelta)]


def test_a_turn_is_silent_until_something_new_is_said() -> None:
    it = turn()
    it.begin_prefill()
    it.add_text("known")
    assert it.is_empty
    it.end_prefill()
    it.add_text(" \n")
    assert it.is_empty
    it.add_text("x")
    assert not it.is_empty


@pytest.mark.parametrize("say", [lambda it: it.add_reasoning("x"), lambda it: it.start_call("f")])
def test_reasoning_and_calls_break_the_silence(say: Any) -> None:
    it = turn()
    say(it)
    assert not it.is_empty


def test_unmuting_with_nothing_pending() -> None:
    it = turn()
    it.begin_prefill()
    it.end_prefill()
    it.add_text("x")
    assert it.drain_events() == [TextDelta("x")]


def test_random_ids_look_like_openais_and_differ() -> None:
    made = {make_call_id() for _ in range(100)}
    assert len(made) == 100
    assert all(one.startswith("call_") and len(one) == 29 and one[5:].isalnum() for one in made)
