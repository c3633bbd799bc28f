"""Prose, diffs, and numbers, as they are shown."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from callwright.agent.ui.console.diff_view import build_diff_view
from callwright.agent.ui.console.formatting import (
    format_age,
    format_duration,
    format_folder,
    format_tokens,
    sanitize_text,
)
from callwright.agent.ui.console.markdown import MarkdownBlock, MarkdownSplitter

BLOCKS = st.sampled_from(
    [
        "A paragraph\nof two lines.",
        "# A heading",
        "- one\n- two",
        "- one\n\n- two, loose\n\n  with a paragraph",
        "1. one\n\n   ```\n   code in it\n\n   more\n   ```\n2. two",
        "```python\nx = 1\n\n\ny = 2\n```",
        "~~~~\n```\nnot the end\n~~~~",
        "> quoted\n> lines",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "Here:\n```\ncode\n```",
    ]
)


def shown(view: RenderableType, width: int = 80, *, color: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=color, highlight=False).print(view)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


@given(st.lists(BLOCKS, max_size=6), st.lists(st.integers(0, 200), max_size=6))
def test_blocks_are_whole_whatever_the_cuts_and_nothing_is_lost(blocks: list[str], cuts: list[int]) -> None:
    text = "\n\n".join(blocks) + "\n"
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    paragraphs, once = MarkdownSplitter(), MarkdownSplitter()
    found = [block for start, end in pairwise(places) for block in paragraphs.feed(text[start:end])]
    found += paragraphs.close()
    assert found == once.feed(text) + once.close()
    assert re.sub(r"\n+", "\n", "\n".join(found)) == re.sub(r"\n+", "\n", text.strip("\n"))
    assert all(block.count("```python") == block.count("y = 2") for block in found)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\n\ntwo\n", ["one", "two"]),
        ("- a\n\n- b\n\ntext\n", ["- a\n\n- b", "text"]),
        ("- a\n\n  more of a\n\ntext\n", ["- a\n\n  more of a", "text"]),
        ("see:\n```\na\n\nb\n```\nafter\n", ["see:", "```\na\n\nb\n```", "after"]),
        ("```\nnever closed\n\nat all", ["```\nnever closed\n\nat all"]),
        ("```inline``` is no fence\n\nb\n", ["```inline``` is no fence", "b"]),
        ("\n\n\n", []),
    ],
)
def test_where_a_block_ends(text: str, blocks: list[str]) -> None:
    paragraphs = MarkdownSplitter()
    assert paragraphs.feed(text) + paragraphs.close() == blocks


def test_a_block_is_shown_as_soon_as_the_next_one_begins() -> None:
    paragraphs = MarkdownSplitter()
    assert paragraphs.feed("one\n\n") == []
    assert paragraphs.feed("two\n") == ["one"]
    assert paragraphs.pending == "two\n"
    assert paragraphs.feed("\n```\nx\n```\n") == ["two", "```\nx\n```"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Use the <Button> element.", "Use the <Button> element."),
        ("<div>\nkept\n</div>", "<div>"),
        ("[click](https://evil.example/x)", "click (https://evil.example/x)"),
        ("# Title", "Title"),
        ("2. second", "second"),
        ("a \x1b[31mred\x1b[0m b", "␛[31mred␛[0m"),
    ],
)
def test_prose_keeps_its_words(text: str, words: str) -> None:
    assert words in shown(MarkdownBlock(text))


def test_a_list_has_no_empty_line_above_it() -> None:
    assert shown(MarkdownBlock("- one\n- two")) == " • one\n • two"


def test_a_diff_has_line_numbers_and_its_signs() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -3,3 +3,2 @@ def f():\n x\n-old\n\\ No newline at end of file\n+new\n--- y\n"
    assert shown(build_diff_view(diff)).split("\n") == [
        "--- a.py",
        "+++ a.py",
        "@@ -3,3 +3,2 @@ def f():",
        "    3  x",
        "    4 -old",
        "      \\ No newline at end of file",
        "    4 +new",
        "    5 --- y",  # a line that is gone and began with dashes is no name of a file
    ]


def test_a_diff_of_several_files_starts_anew_with_each() -> None:
    diff = "--- /dev/null\n+++ b.py\n@@ -0,0 +1,2 @@\n+a\n+b\n--- c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    lines = shown(build_diff_view(diff)).split("\n")
    assert lines[3:7] == ["    1 +a", "    2 +b", "--- c.py", "+++ /dev/null"]
    assert lines[-1] == "    1 -gone"


def test_a_diff_is_in_colour_where_there_is_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    diff = "@@ -1 +1 @@\n-a\n+b\n"
    assert "\x1b[31m-a" in shown(build_diff_view(diff), color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in shown(build_diff_view(diff), color=True)


@given(st.text())
def test_clean_text_has_no_character_that_a_terminal_obeys(text: str) -> None:
    cleaned = sanitize_text(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", cleaned)
    assert sanitize_text(cleaned) == cleaned


@pytest.mark.parametrize("text", ["é", "数据", "👩‍💻", "−", "tab\there"])
def test_clean_leaves_letters_alone(text: str) -> None:
    assert sanitize_text(text) == text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0124, "12 ms"),
        (0.9996, "1.0 s"),
        (4.23, "4.2 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (-1, "0 ms"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_numbers_in_words() -> None:
    assert [format_tokens(999), format_tokens(12_345)] == ["999 tokens", "12.3k tokens"]
    assert [format_age(5), format_age(90), format_age(7300), format_age(200_000)] == [
        "now",
        "1 min ago",
        "2 h ago",
        "2 d ago",
    ]
    assert [format_folder("/home/me", "/home/me"), format_folder("/home/me/x", "/home/me/")] == ["~", "~/x"]
