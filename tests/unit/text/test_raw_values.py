"""Where a raw value ends: the cases that decide between data and structure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callwright.text.source import Source
from callwright.text.tags import RawValue

VALUE = RawValue("</v>", ("</call>",), ("<k>",), inline=True, begins=("<call>",))


def ends(value: RawValue, text: str, expects: Callable[[str], bool] | None = None) -> str | None:
    """What a text copies as the value, read one character at a time; None when it never ends."""
    source = Source()
    parts: list[str] = []
    reading = value.copy(source, parts.append, expects)
    for char in text:
        source.feed(char)
        if next(reading, "over") == "over":
            return "".join(parts)
    source.close()
    with pytest.raises(StopIteration) as over:
        next(reading)
    return None if over.value.value is None else "".join(parts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x<k>next</k>", "x"),
        ("x\n<k>next</k>", "x"),
        ("x<k>other</k></v></call>", "x<k>other</k>"),
        ("x<k></v></call>", "x<k>"),
    ],
)
def test_an_inline_value_without_its_end_ends_at_a_key_that_is_expected(text: str, value: str) -> None:
    assert ends(VALUE, text, lambda key: key == "next") == value


def test_without_anything_expected_a_key_ends_nothing() -> None:
    assert ends(VALUE, "x<k>next</k>") is None


@pytest.mark.parametrize("after", ["", " ", "<call>", "\n<call>next", " and text"])
def test_a_value_that_mentions_an_opening_ends_as_any_other(after: str) -> None:
    assert ends(VALUE, f"a <call> b</v></call>{after}") == "a <call> b"


@pytest.mark.parametrize("after", ["", " ", "<call>", "\n<call>next"])
def test_a_value_that_quotes_a_call_ends_before_another_call_or_the_end(after: str) -> None:
    assert ends(VALUE, f"a <call><k> b</v></call>{after}") == "a <call><k> b"


def test_a_call_inside_a_value_is_data_when_text_follows() -> None:
    inner = "<call>f<k>a</k><v>1</v><k>b</k><v>2</v></call> and more"
    assert ends(VALUE, f"see {inner}</v></call>", lambda key: key == "next") == f"see {inner}"


def test_in_a_value_that_quotes_a_call_the_next_key_must_be_expected() -> None:
    assert ends(VALUE, "<call><k></v><k>next</k>", lambda key: key == "next") == "<call><k>"
    assert ends(VALUE, "<call><k></v><k>other</k>", lambda key: key == "next") is None
    assert ends(VALUE, "<call><k></v><k>any</k>") == "<call><k>"


def test_a_value_that_holds_no_opening_ends_before_text() -> None:
    assert ends(VALUE, "a</v></call> and more") == "a"


def test_an_opening_known_to_be_no_token_is_plain_data() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<call>", "</v>", "</call>"}))
    source.feed("<call> b</v></call> text", [8, 12])
    parts: list[str] = []
    with pytest.raises(StopIteration) as over:
        next(VALUE.copy(source, parts.append))
    assert (over.value.value, "".join(parts)) == ("</v>", "<call> b")
