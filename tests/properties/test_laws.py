"""The laws of reading, over every registered dialect. `make laws` runs 200 examples of each."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Dialect, Parser, collect
from callwright.dialects import REGISTRY
from callwright.events import CallDelta, CallEnd, Finish, ReasoningDelta, TextDelta, merge_deltas
from tests.support.faults import EXCEPTIONS, cases, judge, keeps_value, quoted_values, read_case
from tests.support.harness import NASTY, TOOLS, WORD, calls, cut, drive, pieces, plain, read, soup, told, worded

every_dialect = pytest.mark.parametrize("dialect", list(REGISTRY.values()), ids=list(REGISTRY))
PLACES = st.lists(st.integers(0, 5000), max_size=12)


@every_dialect
@given(data=st.data())
def test_cutting_leaves_no_trace(dialect: Dialect, data: st.DataObject) -> None:
    """Law 1: any cutting of the text gives the same merged events."""
    text = data.draw(st.one_of(soup(dialect), calls(dialect).map(lambda some: dialect.render_call(*some))))
    whole = merge_deltas(drive(dialect, [text]))
    assert merge_deltas(drive(dialect, cut(text, data.draw(PLACES)))) == whole
    assert merge_deltas(drive(dialect, pieces(text, 1))) == whole


@every_dialect
@given(data=st.data())
def test_a_rendered_call_comes_back_under_any_cutting(dialect: Dialect, data: st.DataObject) -> None:
    """Law 2: render, cut anywhere, parse: the calls come back."""
    some = data.draw(calls(dialect))
    text = dialect.render_call(*some)
    turn = collect(drive(dialect, cut(text, data.draw(PLACES)), prefill=dialect.call_prefill))
    assert told(turn) == [(call.name, json.loads(call.arguments)) for call in some]
    assert all(call.complete for call in turn.tool_calls)
    assert turn.finish_reason == "tool_calls"
    assert turn.text == ""


@every_dialect
@given(text=plain())
def test_text_without_markup_is_passed_on_as_it_is(dialect: Dialect, text: str) -> None:
    """Law 3: what holds no marker is text, to the last character."""
    markers = (*dialect.markers, *dialect.framing, "<", "`", "[", "{", "\n")
    if not any(marker[0] in text for marker in markers):
        assert read(dialect, text, 3).text == text


@every_dialect
@given(data=st.data())
def test_no_word_is_lost_and_none_is_said_twice(dialect: Dialect, data: st.DataObject) -> None:
    """Law 3: words put anywhere, whole or cut off, are said once and in order, or set aside, or named by a repair."""
    rendered = calls(dialect, most=2).map(lambda some: dialect.render_call(*some))
    text = data.draw(worded(st.one_of(soup(dialect), rendered)))
    text = text[: data.draw(st.one_of(st.none(), st.integers(0, len(text))))]
    events = drive(dialect, [text])
    turn = collect(events)
    called = [f"{call.name} {call.id} {call.arguments}" for call in turn.tool_calls]
    aside = [event.raw for event in turn.malformed if not event.shown]
    said = Counter(WORD.findall(" ".join((turn.text, turn.reasoning, *called, *aside))))
    noted = {*WORD.findall(" ".join(repair.detail for repair in turn.repairs))}
    assert {*WORD.findall(text)} == {*said} | noted
    assert max(said.values(), default=1) == 1
    shown = [event.text for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    assert WORD.findall("".join(shown)) == sorted(WORD.findall("".join(shown)))


@every_dialect
@given(data=st.data())
def test_soup_never_raises_at_any_length(dialect: Dialect, data: st.DataObject) -> None:
    """Laws 4 and 5: marker soup cut off anywhere is a legal stream that ends in Finish."""
    text = data.draw(soup(dialect))
    end = data.draw(st.integers(0, len(text)))
    prefill = data.draw(st.sampled_from(["", dialect.call_prefill, *(think.open for think in dialect.reasoning_tags)]))
    events = drive(dialect, pieces(text[:end], 5), prefill=prefill)
    assert isinstance(events[-1], Finish)


@every_dialect
@given(data=st.data())
def test_a_cut_call_is_never_passed_off_as_whole(dialect: Dialect, data: st.DataObject) -> None:
    """Law 5 again: cut off inside its arguments, a call is marked, whatever the policy."""
    some = data.draw(calls(dialect, most=1))
    text = dialect.render_call(*some)
    end = data.draw(st.integers(0, len(text)))
    whole = told(read(dialect, text, prefill=dialect.call_prefill))
    for policy in ("partial", "drop", "repair"):
        turn = read(dialect, text[:end], truncated=policy, prefill=dialect.call_prefill)
        for call in turn.tool_calls:
            if call.complete:
                assert [(call.name, json.loads(call.arguments))] == whole
            else:
                assert turn.finish_reason == "length"
                assert policy != "drop"
                assert policy != "repair" or isinstance(json.loads(call.arguments), dict)


@every_dialect
def test_a_call_cut_after_its_name_shows_no_markup(dialect: Dialect) -> None:
    """Laws 5 and 6: what has named its tool is a call, cut or whole, or set aside; never text."""
    text = dialect.render_call(dialect.build_sample_call("get_weather", {"city": "Oslo Town", "days": 2}))
    tokens = [marker for marker in dialect.markers if marker.startswith(("<|", "<｜", "]<]"))]
    for end in range(text.index("get_weather") + len("get_weather") + 1, len(text)):
        if any(text[:end].endswith(token[:size]) for token in tokens for size in range(1, len(token))):
            continue  # no token limit cuts a token
        if dialect.text_tags and text[:end].strip() == "<get_weather>":
            continue  # a tag alone may be prose about it
        turn = read(dialect, text[:end], prefill=dialect.call_prefill)
        assert not turn.text.strip("`\n"), text[:end]
        assert turn.finish_reason in ("length", "tool_calls"), text[:end]


@every_dialect
@given(data=st.data())
def test_markers_do_not_leak_into_text(dialect: Dialect, data: st.DataObject) -> None:
    """Law 6: around well-formed calls the text is exactly the text, and no marker shows."""
    some = data.draw(calls(dialect))
    before = data.draw(st.sampled_from(["", "Sure, one moment.", "Let me look.\nThen act.\n"]))
    after = data.draw(st.sampled_from(["", "That is all."]))
    text = dialect.render_text(before) + dialect.render_call(*some)
    text += dialect.render_text(f"\n{after}") if after else ""
    turn = collect(drive(dialect, cut(text, data.draw(PLACES))))
    assert turn.text.split() == [*before.split(), *after.split()]
    assert turn.text.strip().startswith(before.strip())
    assert len(turn.tool_calls) == len(some)
    assert not turn.malformed


@every_dialect
@given(data=st.data())
def test_a_marker_shows_only_where_that_is_reported(dialect: Dialect, data: st.DataObject) -> None:
    """Law 6: what begins a call shows in text only where an event says so, unless people write about such tags."""
    turn = read(dialect, data.draw(soup(dialect)))
    quoted = dialect.quotable and "`" in turn.text
    echoed = getattr(dialect, "bare", ())  # in a message to the reader, Muse's own tags are words
    openers = [opener for opener in dialect.openers if opener not in echoed]
    if not dialect.text_tags and not quoted and any(opener in turn.text for opener in openers):
        literal = any(repair.kind == "literal_marker" for repair in turn.repairs)
        assert literal or any(event.shown for event in turn.malformed)


@every_dialect
def test_text_is_out_as_soon_as_it_is_in(dialect: Dialect) -> None:
    """Law 7: a character that cannot be markup does not wait, not even for the next one."""
    parser = Parser(dialect, TOOLS)
    for char in "Plain words that hold no markup at all, and 3 = 4 - 1 or so":
        assert parser.feed(char) == [TextDelta(char)]


STREAMING = [dialect for dialect in REGISTRY.values() if dialect.streams_strings]


@pytest.mark.parametrize("dialect", STREAMING, ids=[dialect.name for dialect in STREAMING])
def test_string_arguments_are_out_as_soon_as_they_are_in(dialect: Dialect) -> None:
    """Law 7: so is a character of a string argument that cannot end it."""
    path = "some words, (3) of them "
    content = "and other words of the file " * 8
    text = dialect.render_call(dialect.build_sample_call("write_file", {"path": path, "content": content}))
    for value in (path, content):
        parser = Parser(dialect, TOOLS, prefill=dialect.call_prefill)
        start = text.index(value)
        parser.feed(text[: start + 1])
        for char in text[start + 1 : start + len(value) - 1]:
            assert parser.feed(char) == [CallDelta(0, char)]


@every_dialect
@given(data=st.data())
def test_fragments_of_a_finished_call_join_to_its_arguments(dialect: Dialect, data: st.DataObject) -> None:
    """Laws 8 and 9: streamed fragments are the arguments; one chunk or many, the turn is the same."""
    text = dialect.render_call(*data.draw(calls(dialect)))
    streamed = drive(dialect, pieces(text, data.draw(st.sampled_from([1, 2, 4, 9]))), prefill=dialect.call_prefill)
    whole = collect(drive(dialect, [text], prefill=dialect.call_prefill))
    assert collect(streamed) == whole
    for index, call in enumerate(whole.tool_calls):
        joined = "".join(event.text for event in streamed if isinstance(event, CallDelta) and event.index == index)
        assert joined == call.arguments
        assert isinstance(json.loads(joined), dict)
    assert sum(isinstance(event, CallEnd) for event in streamed) == len(whole.tool_calls)


@every_dialect
def test_reasoning_is_kept_apart(dialect: Dialect) -> None:
    """T-12: reasoning goes its own way, also when the prompt opened it."""
    call = dialect.build_sample_call("get_weather", {"city": "Oslo", "days": 2})
    for think in dialect.reasoning_tags:
        text = f"{think.open}\nNeed the weather.\n{think.close}\n\n{dialect.render_call(call)}"
        for size in (1, 4, 1000):
            turn = read(dialect, text, size)
            assert (turn.reasoning, turn.text) == ("Need the weather.", ""), think
            assert told(turn) == [("get_weather", {"city": "Oslo", "days": 2})]
            opened = read(dialect, text.removeprefix(think.open), size, prefill=f"assistant\n{think.open}")
            assert opened == turn


def test_nasty_values_are_nasty() -> None:
    assert len(set(NASTY)) == len(NASTY) >= 20


CONTAINING = [dialect for dialect in REGISTRY.values() if dialect.name != "auto"]
every_member = pytest.mark.parametrize("dialect", CONTAINING, ids=[dialect.name for dialect in CONTAINING])


@every_member
@given(data=st.data())
def test_one_fault_costs_at_most_one_call(dialect: Dialect, data: st.DataObject) -> None:
    """Law 11: a fault in one call leaves every other call and every word as they are, and makes no wrong call."""
    case = data.draw(st.sampled_from(cases(dialect)), label="case")
    turn = collect(drive(dialect, cut(case.text, data.draw(PLACES)), prefill=dialect.call_prefill))
    verdict = judge(case, turn)
    assert verdict.contained or case.id in EXCEPTIONS, (case.id, case.text, verdict)
    assert not verdict.silent, (case.id, case.text)


@every_member
def test_every_fault_is_contained_but_for_a_few(dialect: Dialect) -> None:
    """Law 11, all of the matrix: what is not contained is listed, with its reason."""
    loose = [case.id for case in cases(dialect) if not judge(case, read_case(case)).contained]
    assert loose == [name for name in EXCEPTIONS if name.startswith(f"{dialect.name}: ")]


def test_the_exceptions_are_few() -> None:
    count = sum(len(list(cases(dialect))) for dialect in CONTAINING)
    assert len(EXCEPTIONS) <= count // 50


@every_member
def test_values_that_hold_markup_are_kept(dialect: Dialect) -> None:
    """What a fault may look like, a value may hold on purpose: it is kept, unless it ends with its own closing tag."""
    lost = [name for name, value in quoted_values(dialect) if not keeps_value(dialect, value)]
    assert all("at the end" in name or "half a call" in name for name in lost), lost
    assert len(lost) <= 2, lost


UNREADABLE = ("abc", "two of them", "yes please", "{broken", "12 apples", "[{]")


@every_member
@given(data=st.data())
def test_no_value_is_invented(dialect: Dialect, data: st.DataObject) -> None:
    """Law 12: a value that cannot be read as its type is passed on as it was written."""
    key = data.draw(st.sampled_from(["count", "ratio", "flag", "tags", "options", "maybe"]), label="key")
    written = data.draw(st.sampled_from(UNREADABLE), label="written")
    call = dialect.build_sample_call("typed", {"text": "x", key: "PLACEHOLDER"})
    text = dialect.render_call(call).replace("PLACEHOLDER", written)
    turn = collect(drive(dialect, cut(text, data.draw(PLACES)), prefill=dialect.call_prefill))
    (value,) = (json.loads(one.arguments)[key] for one in turn.tool_calls)
    assert value in (written, [written])
