"""JSON as it streams: verbatim when right, mended by name when not, the same at every cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.text.json_stream import copy_json, copy_string, escape_json, take_json, take_key, take_string
from callwright.text.source import Source
from tests.unit.text.test_source import drive, rest


def cuts(text: str) -> list[list[str]]:
    return [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 5, max(len(text), 1))]


def read(reader: Any, text: str) -> tuple[Any, str, str, list[str]]:
    """Result, emitted text, what is left, repairs: the same at every cut."""
    results = []
    for chunks in cuts(text):
        out: list[str] = []
        notes: list[str] = []
        value, source = drive(
            lambda s, out=out, notes=notes: reader(s, out.append, lambda k, d: notes.append(k)), chunks
        )
        fed = "".join(chunks)
        seen = fed[: len(fed) - len(rest(source))] if fed.endswith(rest(source)) else fed
        results.append((value, "".join(out), seen, notes))
    values = {(repr(value), out, tuple(notes)) for value, out, _, notes in results}
    assert len(values) == 1, values
    return results[-1]


@pytest.mark.parametrize(
    ("text", "copied", "repairs"),
    [
        ('abc", 1', "abc", []),
        ('"}', "", []),
        ('a\\"b\\\\"]', 'a\\"b\\\\', []),
        ('tab\there"}', "tab\\there", ["escaped_control_character"]),
        ('two\nlines\n",', "two\\nlines\\n", ["escaped_control_character", "escaped_control_character"]),
        ('C:\\dir"}', "C:\\\\dir", ["escaped_backslash"]),
        ('\\u00e9\\u00E9"}', "\\u00e9\\u00E9", []),
        ('\\u12"}', "\\\\u12", ["escaped_backslash"]),
        ('\\uXYZW"}', "\\\\uXYZW", ["escaped_backslash"]),
        ('say "hi" now"}', 'say \\"hi\\" now', ["escaped_quote", "escaped_quote"]),
        ('say "hi""}', 'say \\"hi\\"', ["escaped_quote", "escaped_quote"]),
        ('a"\n  , "b": 1', "a", []),
        ('a"   "b": 1', "a", []),
        ('a" b"}', 'a\\" b', ["escaped_quote"]),
        ('a": 1', "a", []),
        ('a"  ', "a", []),
        ('a"', "a", []),
        ('\\/\\b\\f\\n\\r\\t"}', "\\/\\b\\f\\n\\r\\t", []),
    ],
)
def test_a_string_is_copied(text: str, copied: str, repairs: list[str]) -> None:
    whole, out, _, notes = read(copy_string, text)
    assert whole is True
    assert (out, notes) == (copied, repairs)
    json.loads(f'"{out}"')


@pytest.mark.parametrize(("text", "copied"), [("abc", "abc"), ("a\\", "a\\\\"), ("a\\u00", "a\\\\u00"), ("", "")])
def test_a_string_that_does_not_end_says_so(text: str, copied: str) -> None:
    whole, out, _, _ = read(copy_string, text)
    assert (whole, out) == (False, copied)


def test_details_of_string_repairs() -> None:
    notes: list[tuple[str, str]] = []
    out: list[str] = []
    drive(lambda s: copy_string(s, out.append, lambda k, d: notes.append((k, d))), ['a\tb\\q"x"}'])
    assert notes == [
        ("escaped_control_character", "a string contained a raw '\\t'"),
        ("escaped_backslash", "JSON has no escape '\\\\q'"),
        ("escaped_quote", "a quote inside a string was not escaped"),
    ]


@pytest.mark.parametrize(
    ("text", "value", "left"),
    [
        ('{"a": [1, "}", {}]}, x', '{"a": [1, "}", {}]}', ", x"),
        ("[1, [2], 3] tail", "[1, [2], 3]", " tail"),
        ("12, 3", "12", ", 3"),
        ("true}", "true", "}"),
        ("-1.5e3 ]", "-1.5e3 ", "]"),
        ('"str", 1', '"str"', ", 1"),
        ("'it\\'s', 1", "'it\\'s'", ", 1"),
        ("{'a': '}'}x", "{'a': '}'}", "x"),
        ("{}", "{}", ""),
    ],
)
def test_a_value_is_copied_whole(text: str, value: str, left: str) -> None:
    whole, out, _, _ = read(copy_json, text)
    assert (whole, out) == (True, value)
    assert text.endswith(left)
    assert value == text.removesuffix(left) or not left


@pytest.mark.parametrize("text", ["", "{", '{"a": 1', '["x', "['x", "['x\\", "12"])
def test_a_value_that_does_not_end_says_so(text: str) -> None:
    whole, out, _, _ = read(copy_json, text)
    assert (whole, out) == (False, text)


def test_copying_can_begin_inside_brackets() -> None:
    out: list[str] = []
    whole, source = drive(lambda s: copy_json(s, out.append, print, depth=2), ['1, "]"], 2} tail'])
    assert (whole, "".join(out), rest(source)) == (True, '1, "]"], 2}', " tail")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda kids: st.lists(kids) | st.dictionaries(st.text(), kids),
    )
)
def test_valid_json_is_never_changed(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for chunks in cuts(text + ","):
        notes: list[str] = []
        taken, _ = drive(lambda s, notes=notes: take_json(s, lambda k, d: notes.append(k)), chunks)
        assert (taken, notes) == (text, [])


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        ('"a"b', '"a"', "b"),
        ('""', '""', ""),
        (r'"a\"b\\"<end>', r'"a\"b\\"', "<end>"),
        (r'"\\\""', r'"\\\""', ""),
        ('"{\n}" x', '"{\n}"', " x"),
        ('"a', None, ""),
        (r'"a\"', None, ""),
    ],
)
def test_a_string_outside_json_ends_at_the_first_quote_that_is_not_escaped(
    text: str, taken: str | None, left: str
) -> None:
    assert all(drive(take_string, chunks)[0] == taken for chunks in cuts(text))
    assert rest(drive(take_string, [text])[1]) == left


def test_take_value_trims_and_refuses_nothing_and_the_unfinished() -> None:
    assert drive(lambda s: take_json(s, print), ["1 ,"])[0] == "1"
    assert drive(lambda s: take_json(s, print), [" ,"])[0] is None
    assert drive(lambda s: take_json(s, print), ["[1"])[0] is None


@pytest.mark.parametrize(
    ("text", "key", "left", "repairs"),
    [
        ('"a" : 1', "a", "1", []),
        ('"\\u0061\\n":1', "a\n", "1", []),
        ('"":1', "", "1", []),
        ("'a b': 1", "a b", "1", ["quoted_key"]),
        ("a-b.c$: 1", "a-b.c$", "1", ["quoted_key"]),
        (": 1", None, ": 1", []),
        ("", None, "", []),
        ("]", None, "]", []),
        ('"a" 1', None, "1", []),
        ('"a', None, "", []),
        ("'a", None, "", []),
        ("'': 1", None, ": 1", []),
    ],
)
def test_a_key_is_taken_with_its_colon(text: str, key: str | None, left: str, repairs: list[str]) -> None:
    for chunks in cuts(text):
        notes: list[str] = []
        taken, source = drive(lambda s, notes=notes: take_key(s, lambda k, d: notes.append(k)), chunks)
        assert (taken, notes) == (key, repairs)
        assert left.startswith(rest(source))
    assert rest(source) == left


def test_escape_is_the_inside_of_a_json_string() -> None:
    assert escape_json('a"b\\\n☃') == 'a\\"b\\\\\\n☃'


def test_a_source_that_is_whole_never_waits() -> None:
    assert list(take_json(Source.from_text("[1]"), print)) == []


@pytest.mark.parametrize("text", ['x"k": 1', "x'k': 1", "xk: 1"])
def test_a_key_is_taken_from_the_middle_of_a_text(text: str) -> None:
    source = Source.from_text(text)
    source.position = 1
    notes: dict[str, str] = {}
    with pytest.raises(StopIteration) as over:
        next(take_key(source, notes.setdefault))
    assert (over.value.value, rest(source)) == ("k", "1")
    assert notes in ({}, {"quoted_key": "the key 'k' was not in double quotes"})


def test_a_string_is_taken_from_the_middle_of_a_text() -> None:
    source = Source.from_text(r'x"a\\" "b')
    source.position = 1
    with pytest.raises(StopIteration) as over:
        next(take_string(source))
    assert (over.value.value, rest(source)) == (r'"a\\"', ' "b')
