"""What vectors cannot show of the Python calls."""

from __future__ import annotations

import pytest

from callwright import Parser, collect, get_dialect
from callwright.model import ToolCall
from tests.support.harness import TOOLS, read, told

PYTHON = """typed(text="it's\\n", flag=True, maybe=None, options={"a": [1.5, False]})"""
JSON = """typed(text="it's\\n", flag=true, maybe=null, options={"a": [1.5, false]})"""
LFM2 = """typed(text='it\\'s\\n', flag=True, maybe=None, options={"a": [1.5, false]})"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pythonic", f"[{PYTHON}, ping()]"),
        ("lfm2", f"<|tool_call_start|>[{LFM2}, ping()]<|tool_call_end|>"),
        ("olmo3", f"<function_calls>{JSON}\nping()</function_calls>"),
        ("python_tag", f"<|python_tag|>{PYTHON.replace('(', '.call(')}; ping.call()"),
        ("tool_code", f"```tool_code\n{PYTHON}\nping()\n```"),
    ],
)
def test_calls_are_written_as_the_family_writes_them(name: str, text: str) -> None:
    given = '{"text": "it\'s\\n", "flag": true, "maybe": null, "options": {"a": [1.5, false]}}'
    assert get_dialect(name).render_call(ToolCall("1", "typed", given), ToolCall("2", "ping", "{}")) == text


def test_a_list_after_text_begins_a_line() -> None:
    assert get_dialect("pythonic").render_text("Sure.") == "Sure.\n"
    assert get_dialect("pythonic").render_text("") == ""


def test_with_no_tools_named_every_name_in_a_list_is_one() -> None:
    assert told(read(get_dialect("pythonic"), "[anything(x=1)]", tools=[])) == [("anything", {"x": 1})]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('[get_weather(days="2', ""),
        ('[nope("a", "b"), ping()]', "{}"),
        ('[nope("a", "b"), nope()]', None),
        ('[get_weather("Oslo", "2")]', '{"city": "Oslo", "days": 2}'),
    ],
)
def test_values_without_a_keyword_or_an_end(text: str, arguments: str | None) -> None:
    turn = read(get_dialect("pythonic"), text, 3)
    assert [call.arguments for call in turn.tool_calls] == ([] if arguments is None else [arguments])


def test_unknown_calls_are_skipped_with_their_arguments() -> None:
    text = "<|tool_call_start|>[nope('a, (', [1, 'b'], k={'c': ')'}), ping()]<|tool_call_end|>"
    turn = read(get_dialect("lfm2"), text, 1)
    assert told(turn) == [("ping", {})]
    assert [each.raw for each in turn.malformed] == ["[nope('a, (', [1, 'b'], k={'c': ')'})"]


def test_markers_count_only_as_tokens_once_tokens_are_known() -> None:
    parser = Parser(get_dialect("lfm2"), TOOLS)
    events = parser.feed("say <|tool_call_start|>[ping()]", [])
    events += parser.feed("<|tool_call_start|>[ping()]<|tool_call_end|>", [0, 27])
    turn = collect(events + parser.close())
    assert (turn.text, told(turn)) == ("say <|tool_call_start|>[ping()]", [("ping", {})])
