"""The primitives of Source, at every cut: what they consume, what they emit, when they wait."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from callwright.errors import BackendError, MisuseError
from callwright.text.source import MarkerSet, ParseStep, Source, TextBuffer, compile_markers


def drive(make: Callable[[Source], ParseStep[Any]], chunks: Iterable[str], *, close: bool = True) -> tuple[Any, Source]:
    """Run a reader over chunks; returns what it returned (`...` while it still waits) and the source."""
    source = Source()
    reader = make(source)
    try:
        next(reader)
        for chunk in chunks:
            source.feed(chunk)
            next(reader)
        if close:
            source.close()
            next(reader)
    except StopIteration as stop:
        return stop.value, source
    return ..., source


def rest(source: Source) -> str:
    return source.text[source.position :]


# ── Marks ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("markers", [(), ("",), ("<a>", "")])
def test_markers_must_be_given_and_not_be_empty(markers: tuple[str, ...]) -> None:
    with pytest.raises(MisuseError, match="no marker may be empty"):
        MarkerSet(markers)


def test_find_takes_the_first_place_and_there_the_longest_marker() -> None:
    found = MarkerSet(["<a>", "<ab>", "<ab>>"])
    assert found.find_first("x <ab>> <a>", 0, final=False) == (2, 7)
    assert found.find_first("x <ab>> <a>", 3, final=False) == (8, 11)
    assert found.markers == ("<ab>>", "<ab>", "<a>")


def test_find_waits_at_what_may_become_a_marker() -> None:
    found = MarkerSet(["<tool>"])
    assert found.find_first("ab<to", 0, final=False) == (2, 2)
    assert found.find_first("ab<to", 0, final=True) == (5, 5)
    assert found.find_first("ab<tx", 0, final=False) == (5, 5)
    assert found.find_first("<<tool>", 0, final=False) == (1, 7)
    assert found.find_first("", 0, final=False) == (0, 0)


def test_find_waits_for_the_longer_of_two_markers() -> None:
    found = MarkerSet(["<a", "<ab"])
    assert found.find_first("-<a", 0, final=False) == (1, 1)
    assert found.find_first("-<a", 0, final=True) == (1, 3)
    assert found.find_first("-<ac", 0, final=False) == (1, 3)


def test_at_and_undecided() -> None:
    found = MarkerSet(["ab", "abc"])
    assert found.match_at("xabc", 1) == 4
    assert found.match_at("xabd", 1) == 3
    assert found.match_at("xabc", 0) == -1
    assert found.is_prefix_at("xa", 1)
    assert found.is_prefix_at("x", 1)
    assert found.is_prefix_at("xab", 1)
    assert not found.is_prefix_at("xabc", 1)
    assert not found.is_prefix_at("xb", 1)


def test_markers_with_regex_characters_are_literal() -> None:
    found = MarkerSet(["[x]", "^y", "]"])
    assert found.find_first("x^y", 0, final=True) == (1, 3)
    assert found.find_first("a[x]", 0, final=True) == (1, 4)
    assert compile_markers("[x]") is compile_markers("[x]")


# ── copying and taking ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_copy_until_emits_what_comes_before_and_consumes_the_marker(size: int) -> None:
    text = "one < two <end> three"
    out: list[str] = []
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    marker, source = drive(lambda s: s.copy_until(compile_markers("<end>"), out.append), pieces)
    assert marker == "<end>"
    assert "".join(out) == "one < two "
    assert " three".startswith(rest(source))


def test_copy_until_holds_back_only_what_may_be_a_marker() -> None:
    out: list[str] = []
    state, source = drive(lambda s: s.copy_until(compile_markers("<end>"), out.append), ["ab<e"], close=False)
    assert state is ...
    assert out == ["ab"]
    assert rest(source) == "<e"


def test_copy_until_gives_up_at_the_end_and_loses_nothing() -> None:
    out: list[str] = []
    marker, source = drive(lambda s: s.copy_until(compile_markers("<end>"), out.append), ["ab<e"])
    assert marker is None
    assert "".join(out) == "ab<e"
    assert rest(source) == ""


def test_take_until_returns_text_and_marker() -> None:
    assert drive(lambda s: s.take_to(compile_markers(";", "|")), ["a", "b|c"])[0] == ("ab", "|")
    assert drive(lambda s: s.take_to(compile_markers(";")), ["ab"])[0] == ("ab", None)


def test_accept_consumes_a_marker_or_nothing() -> None:
    assert drive(lambda s: s.accept(compile_markers("<a>", "<ab>")), ["<", "ab>x"])[0] == "<ab>"
    value, source = drive(lambda s: s.accept(compile_markers("<a>")), ["<", "bx"])
    assert (value, rest(source)) == ("", "<bx")
    value, source = drive(lambda s: s.accept(compile_markers("<a>")), ["<"])
    assert (value, rest(source)) == ("", "<")
    assert drive(lambda s: s.accept(compile_markers("a", "ab")), ["a"])[0] == "a"


def test_looking_at_consumes_nothing_and_passes_white_space() -> None:
    value, source = drive(lambda s: s.peek_marker(compile_markers("<a>")), [" \n", " <", "a>x"])
    assert (value, rest(source)) == ("<a>", " \n <a>x")
    value, source = drive(lambda s: s.peek_marker(compile_markers("<a>")), [" ", "x"])
    assert (value, rest(source)) == ("", " x")
    assert drive(lambda s: s.peek_marker(compile_markers("<a>")), ["  "])[0] == ""


@pytest.mark.parametrize(
    ("pieces", "inside"),
    [
        ([" \n<", "a"], True),
        (["<a", ">"], False),
        ([" ", "<a>", "<"], True),
        (["<ax"], False),
        ([" "], False),
        ([], False),
    ],
)
def test_ends_inside_says_whether_a_marker_was_cut(pieces: list[str], inside: bool) -> None:
    value, source = drive(lambda s: s.is_truncated_inside(compile_markers("<a>", "<a><b>")), pieces)
    assert value is inside
    assert source.take_rest() == "".join(pieces)
    assert source.take_rest() == ""


def test_skip_space_and_peek() -> None:
    value, source = drive(lambda s: s.skip_space(), [" ", "\n\t", "x "])
    assert (value, rest(source)) == ("x", "x ")
    assert drive(lambda s: s.skip_space(), ["  "])[0] == ""
    value, source = drive(lambda s: s.peek(), ["", "xy"])
    assert (value, rest(source)) == ("x", "xy")
    assert drive(lambda s: s.peek(), [""])[0] == ""


@pytest.mark.parametrize(("most", "left"), [(0, "\n\n\nx"), (1, "\n\nx"), (2, "\nx"), (5, "x")])
def test_skip_newlines_takes_at_most_so_many(most: int, left: str) -> None:
    source = Source("\n\n\nx")
    assert list(source.skip_newlines(most)) == []
    assert rest(source) == left


def test_skip_newlines_stops_at_the_end() -> None:
    value, source = drive(lambda s: s.skip_newlines(3), ["\n"])
    assert (value, rest(source)) == (None, "")


def test_take_while_waits_for_the_character_that_ends_it() -> None:
    word = re.compile(r"[a-z]*")
    value, source = drive(lambda s: s.take_while(word, 10), ["ab", "c", "d>x"])
    assert (value, rest(source)) == ("abcd", ">x")
    assert drive(lambda s: s.take_while(word, 10), ["ab"])[0] == "ab"
    assert drive(lambda s: s.take_while(word, 10), ["ab"], close=False)[0] is ...
    value, source = drive(lambda s: s.take_while(word, 2), ["abc"])
    assert (value, rest(source)) == ("ab", "c")
    assert drive(lambda s: s.take_while(re.compile("[a-z]+"), 9), ["1"])[0] == ""


# ── keeping, closing, limits ──────────────────────────────────────────────────────────────────────


def test_kept_is_all_that_was_consumed_since_across_chunks() -> None:
    source = Source("one two")
    source.position = 4
    source.start_capture()
    source.position = 7
    source.feed("three four")
    source.position = 5
    source.feed("!")
    source.position += 2
    assert source.end_capture() == "twothree f"
    assert source.end_capture() == ""


def test_keeping_can_go_on_after_what_was_kept() -> None:
    source = Source("one two")
    source.start_capture()
    source.position = 3
    source.start_capture(source.end_capture())
    source.position = 7
    assert source.end_capture() == "one two"


def test_settle_forgets_what_was_kept() -> None:
    source = Source("abc")
    source.start_capture()
    source.position = 2
    source.drop_capture()
    source.feed("d")
    assert source.end_capture() == ""


def test_feed_forgets_what_was_consumed() -> None:
    source = Source("abc")
    source.position = 2
    source.feed("de")
    assert (source.text, source.position) == ("cde", 0)
    source.position = 3
    source.feed("f")
    assert (source.text, source.position) == ("f", 0)


def test_of_is_closed() -> None:
    assert Source.from_text("x").closed
    assert not Source("x").closed


def test_a_limit_that_is_reached_is_an_error_never_a_cut() -> None:
    source = Source("ab", limit=4)
    source.feed("cd")
    with pytest.raises(BackendError, match="more than 4 characters"):
        source.feed("e")
    held = TextBuffer(Source(limit=3))
    held.add("abc")
    with pytest.raises(BackendError, match="more than 3 characters"):
        held.add("d")
    assert held.get_text() == "abc"


def test_a_long_chunk_that_nothing_holds_is_no_overflow() -> None:
    source = Source(limit=2)
    source.feed("abcdef")
    assert source.text == "abcdef"


# ── special tokens ────────────────────────────────────────────────────────────────────────────────


def test_known_tokens_count_only_where_they_were_announced() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<t>"}))
    out: list[str] = []
    reader = source.copy_until(compile_markers("<t>", "<u>"), out.append)
    next(reader)
    source.feed("a<t>b")
    next(reader)
    source.feed("<t", tokens=[0])
    next(reader)
    source.feed(">c")
    with pytest.raises(StopIteration) as stop:
        next(reader)
    assert stop.value.value == "<t>"
    assert "".join(out) == "a<t>b"
    source.feed("<u>")
    with pytest.raises(StopIteration) as stop:
        next(source.copy_until(compile_markers("<u>"), out.append))
    assert stop.value.value == "<u>"


def test_is_literal_speaks_of_known_tokens_only() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<t>"}))
    source.feed("<t><t>", tokens=[3])
    assert source.is_literal("<t>", 0)
    assert not source.is_literal("<t>", 3)
    assert not source.is_literal("<u>", 0)


@pytest.mark.parametrize("chunks", [[" \n<a>b"], [" ", "\n<", "a>", "b"]])
def test_accept_next_goes_over_white_space_to_a_marker(chunks: list[str]) -> None:
    found, source = drive(lambda s: s.accept_next(compile_markers("<a>")), chunks)
    assert (found, "b".startswith(rest(source))) == ("<a>", True)


@pytest.mark.parametrize("text", ["", " ", " b<a>", " <b>", "\n<"])
def test_where_no_marker_stands_next_nothing_is_consumed(text: str) -> None:
    for ask in (Source.accept_next, Source.peek_marker):
        found, source = drive(lambda s, ask=ask: ask(s, compile_markers("<a>")), [text])
        assert (found, source.position) == ("", 0)


@pytest.mark.parametrize(
    ("text", "breaks"), [("x", True), ("x ", True), ("x \n<", True), ("x <a>", False), ("xb", False)]
)
def test_a_text_breaks_off_after_space_or_inside_a_marker(text: str, breaks: bool) -> None:
    source = Source(text)
    source.position = 1
    assert not source.is_truncated_at(compile_markers("<a>"))
    source.close()
    assert source.is_truncated_at(compile_markers("<a>")) is breaks


def test_after_going_back_special_tokens_are_where_they_were() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<a>"}))
    source.feed("xy<a>", [2])
    source.position = 1
    source.start_hold()
    source.position = 3
    source.feed("<a>z<a>", [4])
    source.position = 2
    source.rewind()
    assert source.text == "y<a><a>z<a>"
    assert [source.is_literal("<a>", at) for at in (1, 4, 8)] == [False, True, False]
