"""Strings and values in other quotes than JSON's: what they decode to and where they end, at every cut."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.text.lookahead import Lookahead
from callwright.text.python_stream import PYTHON_NOTATION, CallHead, build_argument_end_rule, peek_call, take_keyword
from callwright.text.source import Source, compile_markers
from callwright.text.string_notation import Quote
from tests.unit.text.test_source import drive, rest

ENDS = build_argument_end_rule(",", "]")
TOKEN = Quote("<q>", '"', escapes=False)


def cuts(text: str) -> list[list[str]]:
    return [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 5, max(len(text), 1))]


def copied(quote: Quote, text: str) -> tuple[bool, str, str, tuple[str, ...]]:
    """Whether a string was whole, what it was, what is left, and the repairs; the same at every cut."""
    results = set()
    for chunks in cuts(text):
        out: list[str] = []
        kinds: dict[str, str] = {}
        whole, source = drive(
            lambda s, out=out, kinds=kinds: quote.copy_string(s, out.append, kinds.setdefault, ENDS.is_string_end),
            [*chunks, ""],
        )
        results.add((whole, "".join(out), rest(source) if chunks == [text] else None, tuple(kinds)))
    whole, value, left, kinds_seen = max(results, key=lambda result: result[2] is not None)
    assert {result[:2] + result[3:] for result in results} == {(whole, value, kinds_seen)}
    return whole, value, left or "", kinds_seen


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"a\n\t\\\'\"\/\a\v\b\f\r", "a\n\t\\'\"/\a\v\b\f\r"),
        (r"\x41\u00e9\U0001F600\101\0", "Aé😀A\0"),
        (r"\ud83d\ude00", "😀"),
        ("a\\\nb", "ab"),
    ],
)
def test_escapes_are_decoded(text: str, value: str) -> None:
    assert copied(Quote('"'), f'{text}")]') == (True, value, ")]", ())


@pytest.mark.parametrize(
    "text", [r"\d", r"\x4", r"\u12", r"\ud83d", r"\ud83d\n"[:6], r"\N{DASH}", r"\U00110000", r"\U0000d800"]
)
def test_what_is_no_escape_is_kept(text: str) -> None:
    assert copied(Quote('"'), f'{text}")]') == (True, text, ")]", ("escaped_backslash",))


def test_a_backslash_at_the_end_of_the_text_is_kept() -> None:
    assert copied(Quote('"'), "a\\") == (False, "a\\", "", ("escaped_backslash",))


def test_a_raw_string_has_no_escapes() -> None:
    assert copied(Quote("'", escapes=False), r"\d+\n')]") == (True, r"\d+\n", ")]", ())


@pytest.mark.parametrize(
    ("text", "value", "left"),
    [
        ('a")]', "a", ")]"),
        ('a" ) , x', "a", " ) , x"),
        ('a")', "a", ")"),
        ('a"', "a", ""),
        ('a", b=1', "a", ", b=1"),
        ('a", b: 1', "a", ", b: 1"),
        ('a", "b"', "a", ', "b"'),
        ('a", 2)', "a", ", 2)"),
        ('a", True)', "a", ", True)"),
        ('a", [1])', "a", ", [1])"),
        ('a", **x)', "a", ", **x)"),
        ('a", )', "a", ", )"),
        ('a", ', "a", ", "),
        ('a", b', "a", ", b"),
    ],
)
def test_a_quote_closes_where_a_call_can_go_on(text: str, value: str, left: str) -> None:
    assert copied(Quote('"'), text) == (True, value, left, ())


@pytest.mark.parametrize("inside", ['"b', '": 1', '", b', '", 2 b', '", <b>', '") b', '")\n', '"]', '"}', '",b c'])
def test_any_other_quote_is_data(inside: str) -> None:
    assert copied(Quote('"'), f'a{inside}")]')[:3] == (True, f"a{inside}", ")]")


def test_quotes_before_the_end_of_a_triple_string_belong_to_it() -> None:
    assert copied(Quote('"""'), 'a "b"\n"""")]') == (True, 'a "b"\n"', ")]", ("escaped_quote",))


def test_a_token_inside_a_string_means_what_it_stands_for() -> None:
    assert copied(TOKEN, "a <q>b<q>, c<q>)]") == (True, 'a "b", c', ")]", ("escaped_quote",))


def test_a_mark_that_is_known_to_be_no_token_is_text() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<q>"}))
    source.feed("a <q>)], b<q>)]", [10])
    source.close()
    out: list[str] = []
    with pytest.raises(StopIteration) as done:
        next(TOKEN.copy_string(source, out.append, lambda kind, detail: None, ENDS.is_string_end))
    assert (done.value.value, "".join(out), rest(source)) == (True, "a <q>)], b", ")]")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-2)", "-2"),
        ("('a', \"it's\"),", '("a", "it\'s")'),
        ("{'k': 'v', 'n': [None]} )", '{"k": "v", "n": [None]}'),
        ("[\"say \"hi\" ok\", '''x''', \"\"])", '["say \\"hi\\" ok", "x", ""]'),
        ("f(1, 2), 3)", "f(1, 2)"),
        (")", ""),
        ("[1, 2", None),
        ("['a", None),
    ],
)
def test_a_value_is_taken_whole_with_its_strings_in_json(text: str, value: str | None) -> None:
    for chunks in cuts(text):
        assert drive(lambda s: PYTHON_NOTATION.take_value(s, lambda kind, detail: None), chunks)[0] == value


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("ping()", CallHead("ping", "")),
        ("a.b-c(x", CallHead("a.b-c", "")),
        ("print(ping())", CallHead("ping", "print(")),
        ("print(x)", CallHead("print", "")),
        ("print(1)", CallHead("print", "")),
        ("ping ()", None),
        ("2()", None),
        ("ping", None),
        ("", None),
        ("x" * 300 + "(", None),
    ],
)
def test_the_head_of_a_call_is_seen_before_it_is_consumed(text: str, head: CallHead | None) -> None:
    for chunks in cuts(text):
        found, source = drive(peek_call, chunks)
        assert (found, source.position) == (head, 0)
    if head:
        assert text[: head.length] == f"{head.wrapper}{head.name}("


@pytest.mark.parametrize(
    ("text", "taken", "kinds"),
    [
        ("class = 1", ("class", ""), []),
        ("city: 'x'", ("city", ""), ["colon_for_equals"]),
        ("-2 )", ("", "-2 "), []),
        ("'x'", ("", ""), []),
        ("=1", ("", ""), []),
    ],
)
def test_a_keyword_is_a_word_before_an_equals_sign(text: str, taken: Any, kinds: list[str]) -> None:
    for chunks in cuts(text):
        noted: dict[str, str] = {}
        assert drive(lambda s, noted=noted: take_keyword(s, noted.setdefault), chunks)[0] == taken
        assert list(noted) == kinds


def test_looking_ahead_consumes_nothing() -> None:
    source = Source.from_text("  word<m> x")
    ahead = Lookahead(source)

    def look() -> Any:
        found = [
            (yield from ahead.skip_space()),
            (yield from ahead.take_word()),
            (yield from ahead.accept(compile_markers("<m>"))),
        ]
        found += [(yield from ahead.accept(compile_markers("<m>"))), (yield from ahead.peek())]
        ahead.offset += 2
        return [*found, (yield from ahead.peek()), (yield from ahead.take_word())]

    with pytest.raises(StopIteration) as done:
        next(look())
    assert done.value.value == ["w", "word", "<m>", "", " ", "", ""]
    assert source.position == 0


def test_a_raw_newline_is_named_where_the_notation_has_none() -> None:
    assert copied(Quote("'"), "a\nb')]") == (True, "a\nb", ")]", ("escaped_control_character",))
    assert copied(Quote("'''"), "a\nb''')]") == (True, "a\nb", ")]", ())


def after_x(reader: Any) -> Any:
    """The reader, started behind one character."""

    def read(source: Source) -> Any:
        yield from source.peek()
        source.position += 1
        return (yield from reader(source))

    return read


def test_a_call_is_seen_from_anywhere_before_it() -> None:
    head, source = drive(after_x(lambda s: peek_call(s, 2)), ["x, pi", "ng(1)"])
    assert (head, rest(source)) == (CallHead("ping", ""), ", ping(1)")


def test_a_keyword_is_taken_from_the_middle_of_a_text() -> None:
    notes: dict[str, str] = {}
    found, source = drive(after_x(lambda s: take_keyword(s, notes.setdefault)), ["xcity : 'Oslo'"])
    assert (found, rest(source)) == (("city", ""), "'Oslo'")
    assert notes == {"colon_for_equals": "':' was written instead of '=' after the keyword 'city'"}
