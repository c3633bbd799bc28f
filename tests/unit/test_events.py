"""The event grammar: what `check` lets pass, what it refuses and how; merging; collecting."""

from __future__ import annotations

import pytest

from callwright import check_events, collect
from callwright.errors import MisuseError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
    merge_deltas,
)
from callwright.model import Reasoning, Repair, ToolCall, Usage

CALL: list[Event] = [CallStart(0, "a", "f"), CallDelta(0, "{"), CallDelta(0, "}"), CallEnd(0)]
END = Finish("stop")


@pytest.mark.parametrize(
    "events",
    [
        [END],
        [TextDelta("x"), ReasoningDelta("y"), UsageSeen(Usage(1, 2)), Malformed("<", "why"), END],
        [ReasoningSealed({"redacted": "x"}), ReasoningDelta("y"), ReasoningSealed({"signature": "z"}), END],
        [*CALL, Finish("tool_calls")],
        [*CALL, CallStart(1, "b", "f"), UsageSeen(Usage()), CallEnd(1, complete=False), Finish("length")],
        [*CALL, Finish("content_filter")],
    ],
)
def test_legal_streams_pass(events: list[Event]) -> None:
    check_events(events)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "no Finish"),
        ([END, TextDelta("x")], "event 1 .TextDelta.: nothing may follow Finish"),
        ([TextDelta("")], "empty"),
        ([ReasoningDelta("")], "empty"),
        ([ReasoningSealed({})], "the seal is empty"),
        ([CallStart(0, "a", "f"), ReasoningSealed({"signature": "x"})], "still open"),
        ([CallStart(0, "a", "f"), CallDelta(0, "")], "empty"),
        ([CallStart(1, "a", "f")], "the index is 1, expected 0"),
        ([CallStart(0, "", "f")], "a unique id"),
        ([CallStart(0, "a", "")], "needs a name"),
        ([*CALL, CallStart(1, "a", "f")], "a unique id"),
        ([CallStart(0, "a", "f"), TextDelta("x")], "still open"),
        ([CallStart(0, "a", "f"), END], "still open"),
        ([CallDelta(0, "x")], "not open"),
        ([CallEnd(0)], "not open"),
        ([CallStart(0, "a", "f"), CallDelta(1, "x")], "not open"),
        ([CallStart(0, "a", "f"), CallEnd(0)], "not a JSON object"),
        ([CallStart(0, "a", "f"), CallDelta(0, "[1]"), CallEnd(0)], "not a JSON object"),
        ([Malformed("x", "")], "the reason is empty"),
        ([Finish("tool_calls")], "there is no complete call"),
        ([CallStart(0, "a", "f"), CallEnd(0, complete=False), Finish("tool_calls")], "there is no complete call"),
    ],
)
def test_illegal_streams_are_refused_with_the_place(events: list[Event], problem: str) -> None:
    with pytest.raises(MisuseError, match=problem):
        check_events(events)


def test_a_stream_that_goes_on_needs_no_finish() -> None:
    check_events([TextDelta("x")], finished=False)


def test_merged_joins_neighbours_of_one_kind() -> None:
    events = [TextDelta("a"), TextDelta("b"), ReasoningDelta("c"), ReasoningDelta("d"), *CALL, TextDelta("e"), END]
    assert merge_deltas(events) == [
        TextDelta("ab"),
        ReasoningDelta("cd"),
        CallStart(0, "a", "f"),
        CallDelta(0, "{}"),
        CallEnd(0),
        TextDelta("e"),
        END,
    ]
    assert merge_deltas([CallDelta(0, "a"), CallDelta(1, "b")]) == [CallDelta(0, "a"), CallDelta(1, "b")]


def test_collect_gives_the_whole_turn() -> None:
    repair, other = Repair("kind", "detail"), Repair("other")
    turn = collect(
        [
            ReasoningDelta("r"),
            TextDelta("t"),
            *CALL[:-1],
            CallEnd(0, repairs=(repair,)),
            TextDelta("u"),
            CallStart(1, "b", "g"),
            CallDelta(1, '{"x'),
            CallEnd(1, complete=False),
            Malformed("raw", "why"),
            UsageSeen(Usage(3, 4)),
            Finish("length", (other,), "hermes", "because"),
        ]
    )
    assert (turn.text, turn.reasoning, turn.finish_reason) == ("tu", "r", "length")
    assert turn.tool_calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"x', complete=False))
    assert turn.repairs == (repair, other)
    assert turn.malformed == (Malformed("raw", "why"),)
    assert (turn.usage, turn.dialect, turn.why) == (Usage(3, 4), "hermes", "because")


def test_collect_gives_reasoning_in_stretches_with_their_seals() -> None:
    sealed, hidden = {"signature": "s"}, {"redacted": "r"}
    turn = collect(
        [
            ReasoningDelta("a"),
            ReasoningDelta("b"),
            ReasoningSealed(sealed),
            ReasoningSealed(hidden),
            ReasoningDelta("c"),
            TextDelta("t"),
            ReasoningDelta("d"),
            *CALL,
            ReasoningDelta("e"),
            Finish("tool_calls"),
        ]
    )
    assert turn.reasoning == "abcde"
    thoughts = (Reasoning("ab", sealed), Reasoning("", hidden), Reasoning("c"), Reasoning("d"), Reasoning("e"))
    assert turn.thoughts == thoughts


def test_collect_takes_a_stream_that_is_not_over() -> None:
    turn = collect([TextDelta("x")])
    assert (turn.text, turn.finish_reason, turn.dialect, turn.why) == ("x", None, "", "")
