"""Calls in the text, read back by the rules of the old clients that look for them there (C-3, C-4, C-5)."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.guard.call_text_forms import format_kilo_call, format_obsidian_call
from callwright.model import ToolCall
from tests.support import old_clients
from tests.support.old_clients import Found

TOOLS = ("write_to_file", "read_file")
PARAMETERS = ("path", "content", "args", "line_count")
TRICKY = [
    "</use_tool>",
    "<use_tool>",
    "</content>",
    "<content>",
    "</path>",
    "<path>",
    "</write_to_file>",
    "<b>",
    "</b>",
]
PLAIN = ["&", "&amp;", '"', "'", "\n", "\\", "x", " ", "<", ">", "☃", "{", "}"]
PLAIN_TEXT = st.lists(st.sampled_from(PLAIN)).map("".join)
ANY_TEXT = st.lists(st.sampled_from(TRICKY + PLAIN)).map("".join)


def call(**arguments: Any) -> ToolCall:
    return ToolCall("c", "write_to_file", json.dumps(arguments))


def in_obsidian(made: ToolCall) -> dict[str, Any]:
    (found,) = old_clients.obsidian(f"Let me write.\n{format_obsidian_call(made)}\n")
    assert found.name == made.name
    return found.arguments


def in_kilo(made: ToolCall) -> dict[str, Any]:
    (found,) = old_clients.kilo(f"Let me write.\n{format_kilo_call(made)}\n", TOOLS, PARAMETERS)
    assert found.name == made.name
    return found.arguments


@given(PLAIN_TEXT.map(lambda text: f"x{text}x"))
def test_values_without_tags_come_back_as_they_are(value: str) -> None:
    assert in_obsidian(call(path="a", content=value)) == {"path": "a", "content": value}
    assert in_kilo(call(path=value, content=f"\n{value}\n")) == {"path": value, "content": f"\n{value}\n"}


@given(ANY_TEXT.map(lambda text: f"x{text}x"), ANY_TEXT.map(lambda text: f"x{text}x"))
def test_whatever_stands_in_a_value_the_call_stays_whole(path: str, content: str) -> None:
    """One call, all of its parameters in their order, every letter of each; a tag that would break it is escaped."""
    for read in (in_obsidian, in_kilo):
        found = read(call(path=path, content=content))
        assert list(found) == ["path", "content"]
        for sent, got in ((path, found["path"]), (content, found["content"])):
            assert got == sent or (got == sent.replace("<", "&lt;") and html.unescape(got) == html.unescape(sent))


@given(st.recursive(ANY_TEXT | st.integers() | st.booleans(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_lists_and_objects_come_back_exactly_whatever_they_hold(value: Any) -> None:
    for nested in ([value], {"key": value, "</path>": [value]}):
        assert in_obsidian(call(args=nested)) == {"args": nested}
        assert json.loads(in_kilo(call(args=nested))["args"]) == nested


@pytest.mark.parametrize("content", ["a </content> b", "</content>", "</content>\n</content>", "a\n\n", "\n"])
def test_old_kilo_writes_files_that_hold_its_own_closing_tag(content: str) -> None:
    assert in_kilo(call(path="a", content=content)) == {"path": "a", "content": content}


@pytest.mark.parametrize("name", ["Ann", "a & b", "<b>", "</use", "x" * 300])
def test_a_parameter_may_be_called_name(name: str) -> None:
    assert in_obsidian(call(name=name, path="a")) == {"name": name, "path": "a"}
    assert in_obsidian(call(path="a", name=name)) == {"path": "a", "name": name}


def test_numbers_are_text_and_nulls_are_left_out() -> None:
    made = call(path="a", line_count=3, args=None)
    assert (
        format_obsidian_call(made)
        == "<use_tool>\n<name>write_to_file</name>\n<path>a</path>\n<line_count>3</line_count>\n</use_tool>"
    )
    assert in_kilo(made) == {"path": "a", "line_count": "3"}


def test_calls_beside_each_other_stay_apart() -> None:
    text = "\n".join(format_obsidian_call(call(path=path)) for path in ("a </use_tool>", "b"))
    assert old_clients.obsidian(text) == [
        Found("write_to_file", {"path": "a &lt;/use_tool>"}),
        Found("write_to_file", {"path": "b"}),
    ]
