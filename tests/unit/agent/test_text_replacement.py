"""Exact replacements: what is found, what is kept of the file, and what a model is told when nothing is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.changes.text_replacement import decode_utf8, describe_nearest, replace_text
from callwright.errors import ToolError

CODE = "def f():\n    return 1\n\ndef g():\n    return 2\n"
PLAIN = st.text("ab \n", max_size=12)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        pytest.param(CODE, "return 1", "return 3", CODE.replace("1", "3"), id="a passage"),
        pytest.param("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n", id="CRLF file, LF call"),
        pytest.param("a\nb\n", "a\r\nb\r\n", "x\r\n", "x\n", id="LF file, CRLF call"),
        pytest.param("a\r\nb\n", "b\n", "c\nd\n", "a\r\nc\nd\n", id="mixed ends stay what they are"),
        pytest.param("a\r\nb", "b", "c\nd", "a\r\nc\r\nd", id="the file's ends where the passage has none"),
        pytest.param("a\nb", "b\n", "c\n", "a\nc", id="no line end at the end, though the call has one"),
        pytest.param("a\nb\n", "b", "c", "a\nc\n", id="a line end at the end, though the call has none"),
        pytest.param("\ufeffa\nb\n", "a\n", "c\n", "\ufeffc\nb\n", id="byte order mark"),
        pytest.param("", "", "new\n", "new\n", id="an empty file"),
        pytest.param("a\n", "a\n", "", "", id="all of it"),
        pytest.param("x.y", ".", r"\1", r"x\1y", id="nothing is a pattern"),
        pytest.param("a\rb\n", "a\rb", "c\rd", "c\rd\n", id="a lone carriage return is a letter"),
    ],
)
def test_a_passage_is_replaced_and_the_file_keeps_its_form(text: str, old: str, new: str, expected: str) -> None:
    assert replace_text(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        (CODE, "return", "2 times, from lines 2, 5 on"),
        ("x\n" * 30, "x", "30 times, from lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 20 more on"),
        (CODE, "def f():\n\treturn 1\n", "line 2 begins with 4 spaces, the old text with 1 tab:\n1: def f():"),
        (
            CODE,
            "def f():\n    return 5\n",
            "Lines 1 to 2 are most similar; line 2 is the first that differs:\n1: def f():",
        ),
        (CODE, "    return two", "Line 5 is most similar:\n5:     return 2"),
        ("a \n", "a\t\n", "line 1 ends with 1 space, the old text with 1 tab"),
        ("a b\n", "a  b", "in line 1 between the words"),
        (CODE, "quite different", "No similar lines were found"),
        (CODE, "", "the old text is empty"),
        (CODE, "changed", "the same: nothing would change"),
    ],
)
def test_a_passage_that_cannot_be_replaced_is_answered_with_where_to_look(text: str, old: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        replace_text(text, old, "changed")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"na\xefve", "in another encoding, byte 3"), (b"\xff\xfea\0", "UTF-16"), (b"\x89PNG\0", "binary")],
)
def test_what_is_not_utf_8_is_refused_with_a_reason(data: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=r"x\.txt is not UTF-8") as raised:
        decode_utf8(data, "x.txt")
    assert said in str(raised.value)


@given(PLAIN, PLAIN, PLAIN)
def test_every_place_is_replaced_as_python_would(text: str, old: str, new: str) -> None:
    if not old or old == new or old not in text:
        return
    assert replace_text(text + "end", old, new, every=True) == (text + "end").replace(old, new)


@given(PLAIN, PLAIN, PLAIN)
def test_line_ends_make_no_difference_to_what_is_found(text: str, old: str, new: str) -> None:
    def outcome(crlf: bool) -> str | None:
        try:
            return replace_text(text.replace("\n", "\r\n") if crlf else text, old, new, every=True)
        except ToolError:
            return None

    plain = outcome(crlf=False)
    if plain is None or "\n" not in text:
        return
    assert outcome(crlf=True) == plain.replace("\n", "\r\n")


@given(st.text("ab\t \n", max_size=30), st.text("ab\t \n", max_size=20))
def test_the_nearest_lines_can_always_be_said(text: str, old: str) -> None:
    assert describe_nearest(text, old)


def test_a_long_file_is_searched_in_a_moment() -> None:
    text = "".join(f"{'}' if number % 2 else f'line {number} = value'}\n" for number in range(50_000))
    assert "Line 40001 is most similar" in describe_nearest(text, "line  40000 = value")
    assert "most similar" in describe_nearest(text, "lime 17 = volue\n}\n" * 200)
