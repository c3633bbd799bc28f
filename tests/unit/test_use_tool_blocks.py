"""`<use_tool>` blocks in text, and calls as such blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import ToolCallAggregator, extract_use_tool_blocks, get_dialect, text_pattern, to_obsidian_xml
from callwright.aggregator import ToolCallRecord
from callwright.model import ToolCall
from tests.support import old_clients
from tests.support.harness import TOOLS

BODIES = [
    "<use_tool><name>get_weather</name><city>Oslo</city><days>2</days></use_tool>",
    '<use_tool>\n<name>get_weather</name>\n<arguments>{"city": "Oslo", "days": 2}</arguments>\n</use_tool>',
    '<use_tool name="get_weather"><city>Oslo</city><days>2</days></use_tool>',
    '<use_tool name=\'get_weather\'>{"city": "Oslo", "days": 2}</use_tool>',
    '<use_tool>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</use_tool>',
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("before", ["", "I look.\n\n", "<think>Hm.</think>\n"])
@pytest.mark.parametrize("after", ["", " And so on.", "\n\n<use_tool><name>get_weather</name><city>Os"])
def test_blocks_are_found_with_their_place(body: str, before: str, after: str) -> None:
    text = before + body + after + ("" if "<use_tool" in after else body)
    blocks = extract_use_tool_blocks(text, TOOLS)
    assert len(blocks) == (1 if "<use_tool" in after else 2)
    for block in blocks:
        assert text[block.start : block.end] == body
        assert (block.name, json.loads(block.arguments)) == ("get_weather", {"city": "Oslo", "days": 2})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "`<use_tool><name>ping</name></use_tool>`",
        "\n```\n<use_tool><name>ping</name></use_tool>\n```\n",
        "<use_tool><name>unknown</name></use_tool>",
        "<use_tool><name>get_weather</name><city>Os",
        "<tool_call><name>ping</name></tool_call>",
    ],
)
def test_what_is_no_complete_block(text: str) -> None:
    assert extract_use_tool_blocks(text, TOOLS) == []


def test_a_list_of_calls_is_one_block_for_each() -> None:
    text = '<use_tool>[{"name": "ping"}, {"name": "ping", "arguments": {}}]</use_tool>'
    blocks = extract_use_tool_blocks(text, TOOLS)
    assert [(block.name, block.arguments, block.start, block.end) for block in blocks] == [
        ("ping", "{}", 0, len(text))
    ] * 2


def test_values_have_the_types_of_the_schema() -> None:
    text = "<use_tool><name>typed</name><text>42</text><count>42</count></use_tool>"
    (block,) = extract_use_tool_blocks(text, TOOLS)
    assert json.loads(block.arguments) == {"text": "42", "count": 42}


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


def record(arguments: Any, name: str = "typed") -> ToolCallRecord:
    return ToolCallRecord("a", name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def test_the_order_of_parameters_is_that_of_the_schema_then_of_the_names() -> None:
    expected = "<use_tool>\n<name>typed</name>\n{}</use_tool>"
    declared = "<text>x</text>\n<count>1</count>\n<a>3</a>\n<z>2</z>\n"
    by_name = "<a>3</a>\n<count>1</count>\n<text>x</text>\n<z>2</z>\n"
    for arguments in ({"z": 2, "count": 1, "a": 3, "text": "x"}, {"text": "x", "a": 3, "count": 1, "z": 2}):
        assert to_obsidian_xml([record(arguments)], TOOLS) == expected.format(declared)
        assert to_obsidian_xml([record(arguments)]) == expected.format(by_name)


def test_several_calls_have_a_delimiter_between_them() -> None:
    calls = [record({}, "ping"), ToolCall("b", "ping", "{}")]
    one = "<use_tool>\n<name>ping</name>\n</use_tool>"
    assert to_obsidian_xml(calls) == f"{one}\n{one}"
    assert to_obsidian_xml(calls, delimiter="\n\n") == f"{one}\n\n{one}"
    assert to_obsidian_xml([]) == ""


TRICKY = ["</use_tool>", "<use_tool>", "</text>", "<b>", "</b>", "&", "&amp;", '"', "x", " ", "<", ">", "\n"]


@given(st.lists(st.sampled_from(TRICKY)).map("".join), st.integers())
def test_the_old_client_reads_one_call_whatever_a_value_contains(value: str, count: int) -> None:
    text = to_obsidian_xml([record({"text": f"x{value}x", "count": count})], TOOLS)
    (found,) = old_clients.obsidian(text)
    assert found.name == "typed"
    assert list(found.arguments) == ["text", "count"]


@given(st.text(alphabet="ab <>&\n{}[]\"'é", max_size=12), st.integers(), st.booleans())
def test_blocks_are_read_back(value: str, count: int, flag: bool) -> None:
    arguments = {"text": f"x{value.replace('<', '')}x", "count": count, "flag": flag}
    (block,) = extract_use_tool_blocks(to_obsidian_xml([record(arguments)], TOOLS), TOOLS)
    assert json.loads(block.arguments) == arguments


@pytest.mark.parametrize("arguments", ['{"a b": "<x>"}', '{"": 1}', '{"<a>": 1}', '{"use_tool": 1}'])
def test_arguments_that_are_no_elements_are_written_as_json(arguments: str) -> None:
    (block,) = extract_use_tool_blocks(to_obsidian_xml([record(arguments, "free")]))
    assert json.loads(block.arguments) == json.loads(arguments)


@pytest.mark.parametrize("arguments", ["ls -l <b>", "", "[1]", "null"])
def test_arguments_that_are_no_object_are_written_as_they_are(arguments: str) -> None:
    text = to_obsidian_xml([record(arguments, "a<b")])
    escaped = arguments.replace("<", "&lt;")
    assert text == f"<use_tool>\n<name>a&lt;b</name>\n<arguments>{escaped}</arguments>\n</use_tool>"


def test_blocks_as_a_text_pattern() -> None:
    calls = ToolCallAggregator(
        patterns=[lambda text: [(block.name, block.arguments) for block in extract_use_tool_blocks(text, TOOLS)]]
    )
    calls.ingest_message({"content": BODIES[0] + BODIES[2]}, emit_if_missing=True)
    again = ToolCallAggregator(patterns=[text_pattern(get_dialect("use_tool"), TOOLS)])
    again.ingest_message({"content": BODIES[0] + BODIES[2]}, emit_if_missing=True)
    assert [call.arguments for call in calls.snapshot()] == [call.arguments for call in again.snapshot()]
    assert len(extract_use_tool_blocks(to_obsidian_xml(calls.snapshot()), TOOLS)) == 2
