"""The first flaw of an answer: what counts as one, what stays back, and that nothing is taken back after a call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callwright import check_events
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, Malformed, TextDelta, UsageSeen
from callwright.guard.unusable_calls import UnusableCallDetector
from callwright.model import Usage

TOOLS = ("ping", "pong")
BROKEN = '<tool_call>{"name": "ping" ???'
SHOWN: list[Event] = [TextDelta(f"So: {BROKEN}"), Malformed(BROKEN, "no JSON", shown=True)]
CALL: list[Event] = [CallStart(0, "a", "ping"), CallDelta(0, "{}"), CallEnd(0)]
STRANGER: list[Event] = [CallStart(0, "a", "pang"), CallDelta(0, "{}"), CallEnd(0)]
END = Finish("stop")


def test_a_call_that_cannot_be_read_is_taken_back_out_of_the_words() -> None:
    stage = UnusableCallDetector(TOOLS)
    assert stage.feed(SHOWN) == [TextDelta("So: "), Malformed(BROKEN, "no JSON")]
    assert (stage.reason, stage.tool) == ("no JSON", "ping")


def test_words_that_came_in_pieces_are_taken_back_too() -> None:
    pieces: list[Event] = [TextDelta(BROKEN[:5]), TextDelta(BROKEN[5:])]
    assert UnusableCallDetector(TOOLS).feed([*pieces, SHOWN[1]]) == [Malformed(BROKEN, "no JSON")]


def test_what_went_out_earlier_cannot_be_taken_back_and_is_no_flaw() -> None:
    stage = UnusableCallDetector(TOOLS, strict=True)
    stage.feed([SHOWN[0]])
    assert stage.feed([SHOWN[1]]) == [SHOWN[1]]
    assert not stage.reason


def test_nothing_follows_a_flaw_but_the_end() -> None:
    stage = UnusableCallDetector(TOOLS)
    counted = UsageSeen(Usage(1, 2))
    after = stage.feed([Malformed(BROKEN, "no JSON"), TextDelta("more"), *CALL, counted, END])
    assert after == [Malformed(BROKEN, "no JSON"), counted, END]


def test_after_a_call_there_are_no_flaws() -> None:
    stage = UnusableCallDetector(TOOLS, strict=True)
    events = [*CALL, *SHOWN, *STRANGER, END]
    assert stage.feed(events) == events
    assert not stage.reason


def test_a_call_of_a_tool_that_was_not_offered_never_begins() -> None:
    stage = UnusableCallDetector(TOOLS)
    assert stage.feed([*STRANGER, END]) == [Malformed("pang", stage.reason), END]
    assert stage.reason == "there is no tool 'pang'; the tools are: ping, pong"
    assert UnusableCallDetector(TOOLS, allow_unknown=True).feed(STRANGER) == STRANGER


def test_people_write_about_markers_and_that_is_no_flaw_unless_everything_is() -> None:
    prose: list[Event] = [TextDelta("<tool_call> is a tag"), Malformed("<tool_call> is a tag", "no JSON", shown=True)]
    lenient, strict = UnusableCallDetector(TOOLS), UnusableCallDetector(TOOLS, strict=True)
    assert lenient.feed(prose) == prose
    assert strict.feed(prose) == [Malformed("<tool_call> is a tag", "no JSON")]
    assert (lenient.reason, strict.reason, strict.tool) == ("", "no JSON", "")


@given(st.lists(st.sampled_from([[TextDelta("hm ")], SHOWN, CALL, STRANGER, [Malformed("?", "odd")]])), st.booleans())
def test_whatever_comes_the_events_stay_legal(parts: list[list[Event]], strict: bool) -> None:
    events: list[Event] = []
    for part in parts:
        index = sum(isinstance(event, CallEnd) for event in events)
        events += [_at(event, index) for event in part]
    events.append(Finish("tool_calls" if any(isinstance(event, CallEnd) for event in events) else "stop"))
    stage = UnusableCallDetector(TOOLS, strict=strict)
    kept = stage.feed(events)
    # How a turn ends is for the stage before to say; an answer with a flaw is not the turn.
    check_events([*kept[:-1], Finish("tool_calls" if any(isinstance(event, CallEnd) for event in kept) else "stop")])
    if not stage.reason:
        assert kept == events


def _at(event: Event, index: int) -> Event:
    match event:
        case CallStart():
            return CallStart(index, f"id{index}", event.name)
        case CallDelta():
            return CallDelta(index, event.text)
        case CallEnd():
            return CallEnd(index)
        case _:
            return event
