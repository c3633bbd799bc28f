"""What vectors cannot show of Gemma's calls."""

from __future__ import annotations

import pytest

from callwright import Parser, collect, get_dialect
from callwright.model import ToolCall, ToolResult
from tests.support.harness import TOOLS, read, told

GIVEN = '{"text": "say \\"hi\\"", "count": 2, "flag": true, "maybe": null, "tags": ["a"]}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "gemma4",
            '<|tool_call>call:typed{text:§say "hi"§,count:2,flag:true,maybe:None,tags:[§a§]}<tool_call|>'
            "<|tool_call>call:ping{}<tool_call|>".replace("§", '<|"|>'),
        ),
        (
            "functiongemma",
            '<start_function_call>call:typed{text:§say "hi"§,count:2,flag:true,maybe:null,tags:[§a§]}'
            "<end_function_call><start_function_call>call:ping{}<end_function_call>".replace("§", "<escape>"),
        ),
    ],
)
def test_calls_are_written_as_the_template_writes_them(name: str, text: str) -> None:
    assert get_dialect(name).render_call(ToolCall("1", "typed", GIVEN), ToolCall("2", "ping", "{}")) == text
    assert get_dialect(name).body_starts == ("call:", ":")


def test_a_result_is_shown_under_the_name_of_its_tool() -> None:
    shown = get_dialect("gemma4").render_result(ToolResult("1", "18 °C", "get_weather"))
    assert shown == '<|tool_response>response:get_weather{value:<|"|>18 °C<|"|>}<tool_response|>'


def test_quotes_that_are_known_to_be_no_tokens_are_text() -> None:
    parser = Parser(get_dialect("gemma4"), TOOLS)
    text = '<|tool_call>call:get_weather{city:<|"|>a <|"|>,days:2}<tool_call|> b<|"|>}<tool_call|>'
    tokens = [0, text.index('<|"|>'), text.rindex('<|"|>'), text.rindex("<tool_call|>")]
    turn = collect(parser.feed(text, tokens) + parser.close())
    assert told(turn) == [("get_weather", {"city": 'a <|"|>,days:2}<tool_call|> b'})]


def test_an_unnamed_tool_may_have_any_keys() -> None:
    text = '<|tool_call>call:any{a:<|"|>x<|"|>,b:y,c:2}<tool_call|>'
    assert told(read(get_dialect("gemma4"), text, 1, tools=[])) == [("any", {"a": "x", "b": "y", "c": 2})]
