"""Almost-JSON: every fault by its name, right JSON untouched, hopeless text refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.input_limits import MAX_JSON_DEPTH
from callwright.model import Repair
from callwright.text.repair import convert_python_literal, is_json, parse_json, repair_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda kids: st.lists(kids, max_size=4) | st.dictionaries(st.text(max_size=4), kids, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    [
        ("{'a': 'b'}", {"a": "b"}, ["single_quotes"]),
        ("{a: 1}", {"a": 1}, ["quoted_key"]),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}, ["python_word"]),
        ("(1, 2)", [1, 2], ["tuple"]),
        ("[1, 2,]", [1, 2], ["trailing_comma"]),
        ('{"a": 1,}', {"a": 1}, ["trailing_comma"]),
        ("[1 2]", [1, 2], ["missing_comma"]),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, ["missing_comma"]),
        ('{"a": [1, 2', {"a": [1, 2]}, ["closed_bracket"]),
        ('{"a": "cut', {"a": "cut"}, ["closed_string", "closed_bracket"]),
        ('{"a": tr', {"a": True}, ["completed_word", "closed_bracket"]),
        ('{"a": nul', {"a": None}, ["completed_word", "closed_bracket"]),
        ('{"a": 1, "b"', {"a": 1}, ["dropped_key", "closed_bracket"]),
        ('{"a": 1, "b": ', {"a": 1}, ["dropped_key", "closed_bracket"]),
        ('{"a": 1, ', {"a": 1}, ["closed_bracket"]),
        ("{", {}, ["closed_bracket"]),
        ("[,]", [], ["trailing_comma"]),
        ("[infinity]", [None], ["non_finite"]),
        ('{"a": 1} // why', {"a": 1}, ["dropped_comment"]),
        ('{/* x */ "a": 1 # y\n}', {"a": 1}, ["dropped_comment"]),
        ('"a\nb"', "a\nb", ["escaped_control_character"]),
        ('"C:\\dir"', "C:\\dir", ["escaped_backslash"]),
        ("'it\\'s'", "it's", ["single_quotes", "python_escape"]),
        ("'a\\\nb'", "ab", ["single_quotes", "python_escape"]),
        ("'\\x41\\u0042\\U00000043'", "ABC", ["single_quotes", "python_escape"]),
        ("'\\a\\0\\v'", "\a\0\v", ["single_quotes", "python_escape"]),
        ("'\\b\\f\\n\\r\\t\\/\\\\\\\"'", '\b\f\n\r\t/\\"', ["single_quotes"]),
        ("'''a'b'''", "a'b", ["single_quotes"]),
        ('["""a "b" c""",]', ['a "b" c'], ["trailing_comma"]),
        ("'\\ud83d\\ude00'", "😀", ["single_quotes"]),
        ("'\\ud83d'", "\ud83d", ["single_quotes"]),
        ("'\\ud83d\\uzzzz'", "\ud83d\\uzzzz", ["single_quotes", "escaped_backslash"]),
        ("'\\ud83d\\u0041'", "\ud83dA", ["single_quotes"]),
        ("'\\xZZ'", "\\xZZ", ["single_quotes", "escaped_backslash"]),
        ("'\\u12'", "\\u12", ["single_quotes", "escaped_backslash"]),
        ("'\\Uffffffff'", "\U0010ffff", ["single_quotes", "python_escape"]),
        ("'end\\", "end\\", ["single_quotes", "escaped_backslash", "closed_string"]),
        ("[NaN, -Infinity]", [None, None], ["non_finite"]),
        ("[007, +5, .5, 5., 1_000, -08]", [7, 5, 0.5, 5.0, 1000, -8], ["number_form"]),
        ("{'a': {'b': ('c', 1)}}", {"a": {"b": ["c", 1]}}, ["single_quotes", "tuple"]),
    ],
)
def test_each_fault_is_mended_and_named(text: str, value: Any, kinds: list[str]) -> None:
    mended = repair_json(text)
    assert mended is not None
    assert json.loads(mended.text) == value
    assert [repair.kind for repair in mended.repairs] == kinds
    assert all(repair.detail for repair in mended.repairs)


@pytest.mark.parametrize(
    "text",
    ["", "hello", "Oslo, Norway", "{]", "[1}", "{,,}", "1 2", "{} x", "{:1}", "[a", "trux"],
)
def test_hopeless_text_is_refused(text: str) -> None:
    assert repair_json(text) is None


def test_details_say_what_was_wrong() -> None:
    mended = repair_json("{a: True,}")
    assert mended is not None
    assert {repair.kind: repair.detail for repair in mended.repairs} == {
        "quoted_key": "the key 'a' was not in quotes",
        "python_word": "True became true",
        "trailing_comma": "a comma was written before '}'",
    }


def test_all_that_is_dropped_is_named() -> None:
    mended = repair_json('{"a", "b", "a", "c": 1}')
    assert mended is not None
    assert mended.text == '{"c": 1}'
    assert mended.repairs == (Repair("dropped_key", 'the key "a" had no value; the key "b" had no value'),)


@given(VALUES)
def test_right_json_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value)
    mended = repair_json(text)
    assert mended is not None
    assert (mended.text, mended.repairs) == (text, ())


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(1, 60))
def test_cut_json_is_closed_or_refused_never_a_crash(value: Any, at: int) -> None:
    mended = repair_json(json.dumps(value, ensure_ascii=False)[:at])
    assert mended is None or is_json(mended.text)


@given(VALUES)
def test_python_literals_give_their_values(value: Any) -> None:
    literal = convert_python_literal(repr(value))
    assert literal is not None
    assert json.loads(literal) == value


@pytest.mark.parametrize("text", ["{a: 1}", "[1", "007", '"a\nb"', "hello", "", "nan"])
def test_what_is_no_python_literal_is_none(text: str) -> None:
    assert convert_python_literal(text) is None


def test_nesting_has_a_limit() -> None:
    assert repair_json("[" * MAX_JSON_DEPTH) is not None
    assert repair_json("[" * (MAX_JSON_DEPTH + 1)) is None
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000 + "]" * 100_000)
    assert not is_json("[" * 100_000 + "]" * 100_000)


def test_json_is_strict() -> None:
    assert parse_json('{"a": [1, null]}') == {"a": [1, None]}
    with pytest.raises(ValueError, match="NaN is not JSON"):
        parse_json("NaN")
    assert not is_json("[1,]")
    assert is_json("[1]")
