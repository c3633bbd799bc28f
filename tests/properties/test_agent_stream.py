"""A-4 over random answers, cut anywhere, at any pace."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.loop.answer_stream import (
    COMPLETION_SIGNAL,
    FLUSH_INTERVAL_S,
    AnswerStream,
    has_completion_signal,
    strip_completion_signal,
)
from callwright.agent.session_events import CallProgress, TextAppended, ThinkingAppended, ThinkingEnded
from callwright.events import CallDelta, CallEnd, CallStart, Finish, ReasoningDelta, TextDelta

PIECES = st.sampled_from(
    [
        COMPLETION_SIGNAL,
        COMPLETION_SIGNAL.lower(),
        "[Task_Complete]",
        *(COMPLETION_SIGNAL[:n] for n in range(1, 15)),
        "COMPLETE]",
        "[",
        "]",
        "**",
        " ",
    ]
)
WORDS = st.lists(PIECES | st.text(max_size=12), max_size=12).map("".join)
PACES = st.lists(st.sampled_from([0.0, 0.001, 0.01, FLUSH_INTERVAL_S, 0.05, 1.0]), min_size=1, max_size=20)


@st.composite
def cut(draw, text):
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=20)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True) if a < b]


@st.composite
def answers(draw):
    """Reasoning, text and calls in any order, as events of any size."""
    events = []
    for index, kind in enumerate(draw(st.lists(st.sampled_from(["think", "text", "call"]), max_size=6))):
        pieces = draw(cut(draw(WORDS)))
        if kind == "call":
            events.append(CallStart(index, f"call_{index}", "write_file"))
            events += [CallDelta(index, piece) for piece in pieces]
            events.append(CallEnd(index))
        else:
            events += [(ReasoningDelta if kind == "think" else TextDelta)(piece) for piece in pieces]
    return events


def play(events, paces):
    """Every showing with its time; the last one is the end's."""
    stream, now, shown = AnswerStream(), 0.0, []
    for number, event in enumerate([*events, Finish("stop")]):
        now += paces[number % len(paces)]
        shown.append((now, event, stream.feed(event, now)))
    shown.append((now, None, stream.close(now)))
    return shown


def joined(shown, kind):
    return "".join(event.text for _, _, batch in shown for event in batch if isinstance(event, kind))


def runs(events, kind):
    """The text of neighbouring events of a kind, joined."""
    out, last = [], None
    for event in events:
        if isinstance(event, kind):
            out.append(event.text) if last is not kind else out.append(out.pop() + event.text)
            last = kind
        else:
            last = None
    return out


@given(answers(), PACES)
def test_showings_are_32_ms_apart(events, paces):
    times = [at for at, event, batch in play(events, paces) if batch and event is not None]
    assert all(later - earlier >= FLUSH_INTERVAL_S for earlier, later in itertools.pairwise(times))


@given(answers(), PACES)
def test_the_signal_is_never_seen(events, paces):
    shown = play(events, paces)
    for kind in (TextAppended, ThinkingAppended):
        # Two stretches of text that a call parts are two: what stands at their seam was never a signal.
        for _, _, batch in shown:
            assert all(not has_completion_signal(event.text) for event in batch if isinstance(event, kind))
    if not any(isinstance(event, CallStart | ReasoningDelta) for event in events):
        assert not has_completion_signal(joined(shown, TextAppended))


@given(PACES, st.integers(0, len(COMPLETION_SIGNAL)))
def test_no_beginning_of_the_signal_is_seen_at_the_end(paces, length):
    head, tail = "What I did is all in the file. ", COMPLETION_SIGNAL[:length]
    shown = joined(play([TextDelta(head), *map(TextDelta, tail)], paces), TextAppended)
    assert shown.strip() == head.strip()


@given(WORDS.flatmap(cut), PACES)
def test_any_cutting_and_any_pace_show_the_same_text(pieces, paces):
    text = "".join(pieces)
    shown = joined(play([TextDelta(piece) for piece in pieces], paces), TextAppended)
    whole = strip_completion_signal(text)
    assert whole.startswith(shown)
    assert not whole[len(shown) :].strip()


@given(answers(), PACES)
def test_nothing_but_signals_is_lost(events, paces):
    shown = joined(play(events, paces), TextAppended)
    said = "".join(strip_completion_signal(run) for run in runs(events, TextDelta))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", said)


@given(answers(), PACES)
def test_the_first_text_has_eight_word_characters_or_is_all_there_is(events, paces):
    for at, event, batch in play(events, paces):
        first = next((each.text for each in batch if isinstance(each, TextAppended)), None)
        if first is not None:
            whole = isinstance(event, CallStart | CallDelta | CallEnd | Finish | ReasoningDelta) or event is None
            waited = any(isinstance(e, CallStart) for e in events)
            assert len(re.findall(r"\w", first)) >= 8 or len(first) >= 200 or whole or waited, (at, event)
            break


@given(answers(), PACES)
def test_while_a_call_is_written_its_own_text_is_all_that_moves(events, paces):
    """Text that waited for its 32 ms may still come, once; then nothing but how far the call is."""
    inside, seen = False, False
    for _, event, batch in play(events, paces):
        if isinstance(event, CallStart):
            inside, seen = True, False
        if inside:
            texts = [each for each in batch if isinstance(each, TextAppended)]
            assert not (texts and seen)
            seen = seen or bool(batch)
        if isinstance(event, CallEnd):
            inside = False


@given(answers(), PACES)
def test_thinking_is_closed_once_for_each_stretch(events, paces):
    shown = play(events, paces)
    ended = [event for _, _, batch in shown for event in batch if isinstance(event, ThinkingEnded)]
    assert len(ended) == len(runs(events, ReasoningDelta))
    assert all(event.seconds >= 0 for event in ended)


def test_text_that_waits_is_due():
    stream = AnswerStream()
    assert stream.feed(TextDelta("Hello, everybody"), 1.0) == [TextAppended("Hello, everybody")]
    assert stream.feed(TextDelta(" out there"), 1.01) == []
    assert stream.next_flush_at == 1.0 + FLUSH_INTERVAL_S
    assert stream.tick(1.0 + FLUSH_INTERVAL_S) == [TextAppended(" out there")]
    assert stream.next_flush_at is None


def test_a_file_that_is_written_as_an_answer_is_told_by_its_size():
    stream = AnswerStream(content="app.py")
    assert stream.feed(TextDelta("print(1)\n"), 1.0) == [CallProgress(name="app.py", characters=9)]
    assert stream.close(2.0) == []
