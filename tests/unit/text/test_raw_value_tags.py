"""Raw values: a closing tag counts by what follows it, at every cut."""

from __future__ import annotations

import pytest

from callwright.text.raw_values import RawValueRule
from callwright.text.source import Source
from tests.unit.text.test_source import drive, rest

VALUE = RawValueRule("</p>", ("</f>", "</t>"), ("<p=",), "\n")


def ended(text: str, rule: RawValueRule = VALUE, expects: tuple[str, ...] = ()) -> tuple[str | None, str, str]:
    """The tag that ended the value, the value, and what is left; the same at every cut."""
    results = set()
    for size in (1, 2, 3, 4, 7, max(len(text), 1)):
        out: list[str] = []
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        tag, _ = drive(lambda s, out=out: rule.copy_value(s, out.append, lambda key: key in expects), chunks)
        results.add((tag, "".join(out)))
    assert len(results) == 1, results
    out = []
    tag, source = drive(lambda s: rule.copy_value(s, out.append, lambda key: key in expects), [text])
    return tag, "".join(out), rest(source)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Oslo\n</p>\n</f>\n</t>", "Oslo"),
        ("Oslo</p></f></t>", "Oslo"),
        ("\n</p>\n<p=b>", ""),
        ("</p></f>", ""),
        ("a\n\n</p>\n<p=b>", "a\n"),
        ("a </p> b\n</p>\n</f>", "a </p> b"),
        ("</p>\n</p>\n</f>", "</p>"),
        ("a</p>\n</f>\n</t>\n</p>\n</f>\n</t>", "a</p>\n</f>\n</t>"),
        ("a</p></t></f>\n</p></f>", "a</p></t></f>"),
        ("a</p>\n</p>\n</p></f>", "a</p>"),
        ("a</f></t>x\n</p></f>", "a</f></t>x"),
        ("x\n</p></t>tail", "x"),
        ("x\n</p></f> tail", "x"),
        ("x\n</p>", "x"),
        ("x\n</p>  ", "x"),
        ("see \n<p=b> and\n</p></f>", "see \n<p=b> and"),
        ("see \n</f> and\n</p></f>", "see \n</f> and"),
    ],
)
def test_the_closing_tag_counts_by_position(text: str, value: str) -> None:
    tag, out, left = ended(text)
    assert tag is not None
    assert tag.endswith("</p>")
    assert out == value
    assert text == out + tag + left


@pytest.mark.parametrize("text", ["", "abc", "abc</", "a </p> b", "a\n</f> b", "\n<p=", "a</p></p>x"])
def test_a_value_that_does_not_end_is_all_emitted(text: str) -> None:
    assert ended(text) == (None, text, "")


def test_a_missing_close_is_seen_by_the_next_tag() -> None:
    assert ended("Oslo\n<p=days>2", expects=("days",)) == ("\n<p=", "Oslo", "\n<p=days>2")
    assert ended("Oslo\n<p=days>2", expects=("other",))[0] is None
    assert ended('Oslo\n<p="days" x', expects=("days",))[0] == "\n<p="
    assert ended("Oslo\n</f></t>") == ("\n</f>", "Oslo", "\n</f></t>")
    assert ended("Oslo\n</f>") == ("\n</f>", "Oslo", "\n</f>")
    assert ended("Oslo\n</f></f>") == ("\n</f>", "Oslo", "\n</f></f>")
    assert ended("x\n<p=" + "k" * 300 + ">", expects=("k",))[0] is None


def test_without_expectations_an_opening_tag_never_ends_a_value() -> None:
    out: list[str] = []
    tag, _ = drive(lambda s: VALUE.copy_value(s, out.append), ["a\n<p=days>2\n</p></f>"])
    assert (tag, "".join(out)) == ("\n</p>", "a\n<p=days>2")


def test_a_value_with_nothing_around_it_ends_at_its_tag() -> None:
    assert ended("a</v>b", RawValueRule("</v>")) == ("</v>", "a", "b")
    assert ended("a</v></v>b", RawValueRule("</v>")) == ("</v>", "a</v>", "b")


def test_a_literal_that_looks_like_a_token_is_data() -> None:
    source = Source()
    source.expect_tokens(frozenset({"</p>"}))
    out: list[str] = []
    reader = VALUE.copy_value(source, out.append)
    next(reader)
    source.feed("a\n</p>\n</f>\n</p>\n</f></t>", tokens=[12])
    source.close()
    with pytest.raises(StopIteration) as stop:
        next(reader)
    assert stop.value.value == "\n</p>"
    assert "".join(out) == "a\n</p>\n</f>"


PREFIXED = RawValueRule("§</p>", ("§</f>", "§</t>"), ("§<",), loose_close_tag="</p>")


@pytest.mark.parametrize(
    ("text", "ended_by", "value"),
    [
        ("x§</p>§</f>", "§</p>", "x"),
        ("x</p>§<q>", "</p>", "x"),
        ("x</p>§</f>", "</p>", "x"),
        ("<p>x</p>§</p>§</f>", "§</p>", "<p>x</p>"),
        ("a </p> b§</p>§<q>", "§</p>", "a </p> b"),
        ("\n§</p>§<q>", "§</p>", "\n"),
        ("a\n§<b\n§</p>§<q>", "§</p>", "a\n§<b\n"),
    ],
)
def test_a_closing_tag_may_lack_its_prefix(text: str, ended_by: str, value: str) -> None:
    tag, out, left = ended(text, PREFIXED)
    assert (tag, out) == (ended_by, value)
    assert text == value + ended_by + left


QUOTING = RawValueRule("</p>", ("</f>", "</f>"), ("<p>",), call_tags=("<f>",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("say <f><p>x</p></f> so</p></f>\nDone.", "say <f><p>x</p></f> so"),
        ("<f><p>x</p></f></p></f> Done.", "<f><p>x</p></f>"),
        ("see <f> so</p></f> Done.", "see <f> so"),
        ("see </f> so</p></f> Done.", "see </f> so"),
        ("see <f><p> so</p></f>", "see <f><p> so"),
    ],
)
def test_a_quoted_call_is_over_with_its_outermost_tag(text: str, value: str) -> None:
    assert ended(text, QUOTING)[:2] == ("</p>", value)


def test_another_call_ends_a_value_without_a_closing_tag() -> None:
    rule = RawValueRule("</p>", ("</f>", "</t>"), ("<p=",), call_tags=("<f=",))
    assert ended("v\n</f>\n<f=y>", rule) == ("\n</f>", "v", "\n</f>\n<f=y>")
    assert ended("v\n</f>\nwords", rule) == ("\n</f>", "v", "\n</f>\nwords")
    assert ended("<f=x>\n</f>\n<f=y></p></f>", rule) == ("</p>", "<f=x>\n</f>\n<f=y>", "</f>")
