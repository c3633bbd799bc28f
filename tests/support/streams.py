"""Turns as every wire must carry them: legal event streams at random, cutting, and what must survive the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from callwright import check_events, collect
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
from callwright.model import Repair, ToolCall, Usage

WORDS = (
    "Hello",
    " world",
    "-",
    "\n",
    "\r\n",
    "  ",
    '"quoted" \\ {"json": [1]}',
    "data: [DONE]\n\n",
    "event: error\ndata: {}\n\n",
    "naïve ☃ 😀 日本",
    "line\u2028separator\x85next",
    "<tool_call>",
    "\x00\x1f",
)
words = st.sampled_from(WORDS) | st.text(min_size=1, max_size=12)
names = st.sampled_from(("get_weather", "ping", "write_file", "mcp__server-1__tool"))
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
usages = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 10_000),
    completion_tokens=st.integers(0, 10_000),
    reasoning_tokens=st.integers(0, 100),
    cached_tokens=st.integers(0, 100),
)


SEALS: tuple[dict[str, Any], ...] = (
    {"signature": 'EqoB"☃"=='},
    {"redacted": "Emw="},
    {"encrypted_content": "gAAA", "id": "rs_1"},
    {"extra_content": {"google": {"thought_signature": "AY89"}}},
)
"""What servers want to see again, one for each of the wires that have such a thing and for Gemini."""


class Said(msgspec.Struct, frozen=True):
    """What a wire must not change of a turn: words in order, calls, the end, the count."""

    outline: list[Event]
    calls: tuple[ToolCall, ...]
    finish: str | None
    usage: Usage | None


def said(events: Iterable[Event]) -> Said:
    """The essence of a turn. Where a call's end stands, repairs and malformed text are our own business."""
    events = list(events)
    turn = collect(events)
    outline = [event for event in events if isinstance(event, TextDelta | ReasoningDelta | CallStart | CallDelta)]
    return Said(merge_deltas(outline), turn.tool_calls, turn.finish_reason, turn.usage)


def sliced(items: Sequence[Any], places: Iterable[int]) -> list[Any]:
    """A text, bytes or events cut at these places (taken modulo the length): runs that join to the whole."""
    ends = sorted({place % (len(items) + 1) for place in places} | {len(items)})
    return [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]


places = st.lists(st.integers(0, 1_000_000), max_size=12)


@st.composite
def calls(draw: st.DrawFn, index: int, *, complete: bool = True) -> list[Event]:
    """One call; cut short, its arguments are a prefix that is no JSON yet."""
    arguments = json.dumps(draw(st.dictionaries(words, values, max_size=4)), ensure_ascii=draw(st.booleans()))
    if not complete:
        arguments = arguments[: draw(st.integers(0, len(arguments) - 1))]
    fragments = [CallDelta(index, piece) for piece in sliced(arguments, draw(places)) if piece]
    repairs = (Repair("quoted_number"),) if draw(st.booleans()) else ()
    return [CallStart(index, f"call_{index}", draw(names)), *fragments, CallEnd(index, complete, repairs)]


@st.composite
def turns(draw: st.DrawFn, *, truncated: bool = True, usage: bool = True, reasoning: bool = True) -> list[Event]:
    """A whole turn that the event grammar allows. `truncated` lets its last call be cut off."""
    kinds = ["text", "text", "call", "malformed"] + ["reasoning"] * reasoning
    events: list[Event] = []
    count, cut = 0, False
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=6)):
        if kind == "call":
            events += draw(calls(count))
            count += 1
        elif kind == "malformed":
            events.append(Malformed("<tool_call>{", "no JSON"))
        else:
            delta = TextDelta if kind == "text" else ReasoningDelta
            events += [delta(text) for text in draw(st.lists(words, min_size=1, max_size=5))]
            if kind == "reasoning" and draw(st.booleans()):
                events.append(ReasoningSealed(draw(st.sampled_from(SEALS))))
    if truncated and draw(st.integers(0, 3)) == 0:
        cut = True
        events += draw(calls(count, complete=False))
    if usage and draw(st.booleans()):
        events.append(UsageSeen(draw(usages)))
    if cut:
        reason = "length"
    elif count:
        reason = draw(st.sampled_from(("tool_calls", "tool_calls", "content_filter")))
    else:
        reason = draw(st.sampled_from(("stop", "stop", "length", "content_filter")))
    events.append(Finish(reason))
    check_events(events)
    return events
