"""Which calls of a turn count, how many, and what may come after them (T-9)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import check_events, collect
from callwright.errors import BackendError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.guard import required_call
from callwright.guard.call_limits import CallLimiter, CallLimits
from callwright.guard.calls_as_text import CallsAsText
from callwright.guard.required_call import RequiredCallGate
from callwright.model import ToolCall, Usage


def call(index: int, name: str = "ping", arguments: str = "{}") -> list[Event]:
    return [CallStart(index, f"id{index}", name), CallDelta(index, arguments), CallEnd(index)]


TURN = [
    TextDelta("before"),
    *call(0, "a", '{"x": 1}'),
    *call(1, "b"),
    *call(2, "a", '{"x": 1}'),
    TextDelta("after"),
    *call(3, "c"),
    UsageSeen(Usage(1, 2)),
    Finish("tool_calls"),
]


def run(limits: CallLimits, events: list[Event] = TURN) -> tuple[CallLimiter, list[Event]]:
    """Feed one event at a time, as a driver does; once a rule ends the turn only the ending follows."""
    rules = CallLimiter(limits)
    out: list[Event] = []
    for event in events:
        if not rules.is_done or isinstance(event, Finish):
            out += rules.feed([event])
    check_events(out)
    return rules, out


def told(events: list[Event]) -> list[str]:
    turn = collect(events)
    return [call.name for call in turn.tool_calls]


@pytest.mark.parametrize(
    ("limits", "names", "text", "reason"),
    [
        (CallLimits(), ["a", "b", "a", "c"], "beforeafter", "tool_calls"),
        (CallLimits(max_calls=1), ["a"], "before", "tool_calls"),
        (CallLimits(max_calls=3), ["a", "b", "a"], "before", "tool_calls"),
        (CallLimits(stop_rule="first"), ["a"], "before", "tool_calls"),
        (CallLimits(stop_rule="burst"), ["a", "b", "a"], "before", "tool_calls"),
        (CallLimits(stop_rule="burst", max_calls=2), ["a", "b"], "before", "tool_calls"),
        (CallLimits(drop_tail=True), ["a", "b", "a", "c"], "before", "tool_calls"),
        (CallLimits(drop_repeats=True), ["a", "b", "c"], "beforeafter", "tool_calls"),
        (CallLimits(drop_repeats=True, max_calls=2), ["a", "b"], "before", "tool_calls"),
        (CallLimits(allowed_tools=set()), [], "beforeafter", "stop"),
        (CallLimits(allowed_tools={"c"}), ["c"], "beforeafter", "tool_calls"),
    ],
)
def test_a_turn_is_kept_within_its_limits(limits: CallLimits, names: list[str], text: str, reason: str) -> None:
    _, out = run(limits)
    turn = collect(out)
    assert (told(out), turn.text, turn.finish_reason) == (names, text, reason)


def test_a_rule_that_ends_the_turn_says_so_at_the_end_of_the_call() -> None:
    rules = CallLimiter(CallLimits(max_calls=1))
    rules.feed(call(0)[:2])
    assert not rules.is_done
    rules.feed(call(0)[2:])
    assert rules.is_done
    assert not rules.is_truncated


def test_calls_that_are_left_out_are_told_of() -> None:
    rules = CallLimiter(CallLimits(max_calls=1))
    out = rules.feed([*call(0), *call(1), Finish("tool_calls")])
    assert rules.is_truncated
    assert [repair.kind for repair in collect(out).repairs] == ["dropped_call"]


def test_nothing_follows_a_turn_that_a_rule_has_ended() -> None:
    out = CallLimiter(CallLimits(max_calls=1)).feed([*call(0), TextDelta("tail"), ReasoningDelta("hm"), Finish("stop")])
    assert [type(event) for event in out] == [CallStart, CallDelta, CallEnd, Finish]
    assert [repair.kind for repair in collect(out).repairs] == ["dropped_tail"]


def test_a_call_that_is_not_allowed_is_kept_as_malformed() -> None:
    _, out = run(CallLimits(allowed_tools={"b"}))
    assert [one.raw for one in collect(out).malformed] == ['a {"x": 1}', 'a {"x": 1}', "c {}"]


def test_a_tail_that_is_not_shown_is_told_of() -> None:
    _, out = run(CallLimits(drop_tail=True))
    assert [repair.kind for repair in collect(out).repairs] == ["dropped_tail"]


def test_reasoning_after_a_call_ends_no_burst() -> None:
    _, out = run(CallLimits(stop_rule="burst"), [*call(0), ReasoningDelta("now"), *call(1), Finish("stop")])
    assert told(out) == ["ping", "ping"]


def test_a_turn_that_a_rule_has_ended_keeps_no_seal_of_what_it_dropped() -> None:
    rules = CallLimiter(CallLimits(max_calls=1))
    out = rules.feed([*call(0), ReasoningDelta("hm"), ReasoningSealed({"signature": "s"}), Finish("tool_calls")])
    assert collect(out).thoughts == ()


def test_a_cut_call_stays_incomplete() -> None:
    cut = [CallStart(0, "i", "a"), CallDelta(0, '{"x'), CallEnd(0, complete=False), Finish("length")]
    for repeats in (False, True):
        _, out = run(CallLimits(drop_repeats=repeats), cut)
        assert not collect(out).tool_calls[0].complete
        assert collect(out).finish_reason == "length"


calls = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["{}", '{"x": 1}'])), max_size=8)


@given(
    some=calls,
    most=st.integers(0, 4),
    stop=st.sampled_from(["", "first", "burst"]),
    tail=st.booleans(),
    repeats=st.booleans(),
    allowed=st.none() | st.sets(st.sampled_from("abc")),
)
def test_whatever_the_limits_the_events_stay_legal(
    some: list[tuple[str, str]], most: int, stop: str, tail: bool, repeats: bool, allowed: set[str] | None
) -> None:
    events = [event for at, (name, text) in enumerate(some) for event in (*call(at, name, text), TextDelta("w"))]
    limits = CallLimits(allowed_tools=allowed, max_calls=most, stop_rule=stop, drop_tail=tail, drop_repeats=repeats)
    _, out = run(limits, [*events, Finish("tool_calls" if some else "stop")])
    names = told(out)
    assert not most or len(names) <= most
    assert allowed is None or set(names) <= allowed


# ── calls in the text ────────────────────────────────────────────────────────────────────────────


def xml(one: ToolCall) -> str:
    return f"<{one.name}>{json.loads(one.arguments)}</{one.name}>"


def test_calls_are_written_into_the_text_as_well() -> None:
    out = CallsAsText(xml, " | ").feed(
        [TextDelta("so"), *call(0, "a", '{"x": 1}'), *call(1, "b"), Finish("tool_calls")]
    )
    check_events(out)
    assert collect(out).text == "so\n<a>{'x': 1}</a> | <b>{}</b>", "the delimiter is between calls, not after words"
    assert told(out) == ["a", "b"]
    assert collect(CallsAsText(xml).feed([*call(0, "a"), *call(1, "b")])).text == "<a>{}</a>\n<b>{}</b>"


def test_a_cut_call_is_not_written_into_the_text() -> None:
    out = CallsAsText(xml).feed(
        [CallStart(0, "i", "a"), CallDelta(0, "{"), CallEnd(0, complete=False), Finish("length")]
    )
    assert collect(out).text == ""


# ── a call was demanded ──────────────────────────────────────────────────────────────────────────


def test_words_wait_for_the_call_that_was_demanded() -> None:
    stage = RequiredCallGate()
    assert stage.feed([TextDelta("I will"), ReasoningDelta("hm")]) == [ReasoningDelta("hm")]
    out = stage.feed(call(0))
    assert stage.is_met
    assert out[0] == TextDelta("I will")
    assert stage.feed([TextDelta("tail")]) == [TextDelta("tail")]


def test_words_that_come_to_no_call_stay_back() -> None:
    stage = RequiredCallGate()
    stage.feed([TextDelta("I would rather "), TextDelta("not")])
    assert (stage.is_met, stage.text) == (False, "I would rather not")


def test_endless_words_before_the_call_that_was_demanded_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(required_call, "DEFAULT_LIMIT", 10)
    with pytest.raises(BackendError, match="before the required call"):
        RequiredCallGate().feed([TextDelta("I would "), TextDelta("rather not")])
