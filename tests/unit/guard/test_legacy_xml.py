"""Calls as XML for old clients: by those clients' own rules every call comes back, whatever its values hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.guard.legacy_xml import kilo_xml, obsidian_xml
from callwright.model import ToolCall
from tests.legacy_clients import kilo_reads, obsidian_reads

KEYS = ("path", "query", "content", "limit")
NASTY = st.sampled_from(
    [
        *("</use_tool>", "<use_tool>", "<name>", "</name>", "</path>", "<path>", "</content>", "<item>a</item>"),
        *('"', "'", "\n", "\\", "<", ">", "é", "<b>", "</b>", "{", "}", "[", "]", " ", "x", "&", "&lt;"),
        "</write_to_file>",
    ]
)
WORDS = st.lists(NASTY, max_size=8).map("".join)
VALUES = WORDS | st.integers() | st.booleans() | st.lists(WORDS, max_size=3) | st.dictionaries(WORDS, WORDS, max_size=3)
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES)


def made(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall("call_1", name, json.dumps(arguments))


def same(read: Any, meant: Any) -> bool:
    """Whether a value came back: as it was, as text where the client knows no types, or with its signs escaped."""
    if isinstance(meant, list | dict):
        return bool(read == meant)
    told = meant if isinstance(meant, str) else json.dumps(meant)
    return read in (told, told.replace("<", "&lt;")) or read == _parsed(told)


def _parsed(text: str) -> Any:
    """What looks like JSON is taken for it, and nobody can help that."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@given(calls=st.lists(ARGUMENTS, min_size=1, max_size=3), before=st.sampled_from(["", "I look.\n"]))
def test_obsidian_copilot_reads_every_call(calls: list[dict[str, Any]], before: str) -> None:
    text = before + "\n".join(obsidian_xml(made("write_to_file", arguments)) for arguments in calls)
    read = obsidian_reads(text)
    assert [name for name, _ in read] == ["write_to_file"] * len(calls)
    for (_, values), meant in zip(read, calls, strict=True):
        assert list(values) == list(meant)
        assert all(same(values[key], meant[key]) for key in meant), (values, meant)


@given(arguments=ARGUMENTS)
def test_kilo_code_reads_the_call(arguments: dict[str, Any]) -> None:
    read = kilo_reads(f"I write.\n{kilo_xml(made('write_to_file', arguments))}", {"write_to_file": KEYS})
    assert read is not None
    name, values = read
    assert (name, list(values)) == ("write_to_file", list(arguments))
    for key, meant in arguments.items():
        told = meant if isinstance(meant, str) else json.dumps(meant, ensure_ascii=False).replace("<", "\\u003c")
        assert values[key] in (told, told.strip(), told.replace("<", "&lt;").strip()), (values, arguments)
    if isinstance(whole := arguments.get("content"), str):
        assert values["content"] == whole


@pytest.mark.parametrize("value", ['a & "b"\n', "x < y", "<br>", "1 > 0", "&amp;"])
def test_what_nobody_misreads_is_not_touched(value: str) -> None:
    assert f"<q>{value}</q>" in obsidian_xml(made("find", {"q": value}))
    assert f"<q>{value}</q>" in kilo_xml(made("find", {"q": value}))


def test_the_form_is_the_one_of_the_seed() -> None:
    assert obsidian_xml(made("get_user", {"id": "42"})) == "<use_tool>\n<name>get_user</name>\n<id>42</id>\n</use_tool>"
