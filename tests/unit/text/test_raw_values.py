"""Where a raw value ends: the cases that decide between data and structure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callwright.text.raw_values import RawValueRule
from callwright.text.source import Source

VALUE = RawValueRule("</v>", ("</call>",), ("<k>",), is_inline=True, call_tags=("<call>",))


def ends(value: RawValueRule, text: str, expects: Callable[[str], bool] | None = None) -> str | None:
    """What a text copies as the value, read one character at a time; None when it never ends."""
    source = Source()
    parts: list[str] = []
    reading = value.copy_value(source, parts.append, expects)
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


@pytest.mark.parametrize(
    "after",
    ["", " ", "<call>f</call>", "\n<call>f<k>x</k></v></call>", "<call>", "\n<call>f", "\n<call>f<k>x</k></v></ca"],
)
def test_a_value_that_quotes_half_a_call_ends_before_other_calls_or_the_end(after: str) -> None:
    assert ends(VALUE, f"a <call><k> b</v></call>{after}") == "a <call><k> b"


@pytest.mark.parametrize("after", ["</", " text"])
def test_where_text_follows_the_quoted_call_may_go_on(after: str) -> None:
    assert ends(VALUE, f"a <call><k> b</v></call>{after}") is None


@pytest.mark.parametrize(
    "value",
    [
        "{call}",
        "say {call} so",
        "{call}{call}",
        "{call} and\n{call}\n",
        "<call>f</call>",
        "see\n<call>f\n</call>\nthere",
        "<call>g<k>a</k></v><k>b</k>{call}</v></call>",
        "<call>g<k>a</k>say\n{call}\nso</v></call> again",
    ],
)
@pytest.mark.parametrize("after", ["", " and text", "<call>f</call>", "\n<call>f<k>x</k></v></call> and text"])
def test_the_tags_of_a_call_in_a_value_are_data(value: str, after: str) -> None:
    content = value.format(call="<call>f<k>a</k></v>\n<k>b</k></v>\n</call>")
    assert ends(VALUE, f"{content}</v></call>{after}") == content


@pytest.mark.parametrize("value", ["<call>, then <k>", "<call><call>", "the <call>f tag, <k>", "<k> <call>"])
def test_tags_that_do_not_make_a_call_are_words(value: str) -> None:
    assert ends(VALUE, f"{value}</v></call> and text") == value


def test_a_header_that_does_not_end_begins_no_call() -> None:
    rule = RawValueRule("</p>", ("</f>",), ("<p=",), call_tags=("<f=",))
    assert ends(rule, f"<f={'x' * 300}><p=a></p></f> and text") == f"<f={'x' * 300}><p=a>"
    assert ends(rule, "<f= or <p=a></p></f> and text") == "<f= or <p=a>"


def test_once_read_again_nothing_is_put_in_doubt() -> None:
    source = Source()
    source.expect_tokens(frozenset({"</call>"}))
    text = "<call>f<k>x</k></v></call>"
    source.feed(text, [text.index("</call>")])
    parts: list[str] = []
    reading = VALUE.copy_value(source, parts.append)
    next(reading)
    source.feed(text, [text.index("</call>")])
    source.close()
    with pytest.raises(StopIteration):
        next(reading)
    assert "".join(parts) == "<call>f<k>x</k>"
    assert source.is_rewound
    source.position += len("</call>")
    parts.clear()
    with pytest.raises(StopIteration) as over:
        next(VALUE.copy_value(source, parts.append))
    assert ("".join(parts), over.value.value) == ("<call>f<k>x</k>", "</v>")


def test_a_guarded_value_ends_without_its_mark_only_before_calls_or_the_end() -> None:
    rule = RawValueRule("]]>", ("</p>", "</f>"), ("<p>",), call_tags=("<f>",), own_value_tags=("<![",), is_guarded=True)
    assert ends(rule, "a\n</p></f>\nb]]></p></f> text") == "a\n</p></f>\nb"
    assert ends(rule, "a\n</p></f>") == "a"
    assert ends(rule, "<f><p><![x]]></p></f> b]]></p></f> text") == "<f><p><![x]]></p></f> b"


def test_a_call_inside_a_value_is_data_when_text_follows() -> None:
    inner = "<call>f<k>a</k><v>1</v><k>b</k><v>2</v></call> and more"
    assert ends(VALUE, f"see {inner}</v></call>", lambda key: key == "next") == f"see {inner}"


def test_in_a_value_that_quotes_a_call_the_next_key_must_be_expected() -> None:
    assert ends(VALUE, "<call><k></v><k>next</k></call>", lambda key: key == "next") == "<call><k>"
    assert ends(VALUE, "<call><k></v><k>other</k></call>", lambda key: key == "next") is None
    assert ends(VALUE, "<call><k></v><k>any</k></call>") == "<call><k>"


def test_a_value_that_holds_no_opening_ends_before_text() -> None:
    assert ends(VALUE, "a</v></call> and more") == "a"


def test_an_opening_known_to_be_no_token_is_plain_data() -> None:
    source = Source()
    source.expect_tokens(frozenset({"<call>", "</v>", "</call>"}))
    source.feed("<call> b</v></call> text", [8, 12])
    parts: list[str] = []
    with pytest.raises(StopIteration) as over:
        next(VALUE.copy_value(source, parts.append))
    assert (over.value.value, "".join(parts)) == ("</v>", "<call> b")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x</v><z>1</z></call>", "x"),
        ("x</v> <z>1</z>\n<y></y><k>n</k></call>", "x"),
        ("x</v><z>1</call></v></call>", "x</v><z>1</call>"),
        ("x</v><1>2</1></v></call>", "x</v><1>2</1>"),
    ],
)
def test_whole_elements_of_other_names_may_follow_a_value_where_that_is_allowed(text: str, value: str) -> None:
    others = RawValueRule("</v>", ("</call>",), ("<k>",), allows_other_elements=True)
    assert ends(others, text) == value
    assert ends(RawValueRule("</v>", ("</call>",), ("<k>",)), "x</v><z>1</z></v></call>") == "x</v><z>1</z>"
