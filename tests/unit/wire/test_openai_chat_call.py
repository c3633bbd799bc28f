"""What chat completions servers are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire import CLIENT_CODECS, SERVER_CODECS

CALL = CLIENT_CODECS["openai_chat"]
HISTORY = (
    Message("developer", (Text("Be brief."),)),
    Message("user", (Text("a"), Text("b"))),
    Message("assistant", (Reasoning("hm"), Text("Looking."), ToolCall("c1", "ping", '{"broken'))),
    Message("tool", (ToolResult("c1", "pong", "ping"),)),
    Message("assistant", (Reasoning("so"), Text("Done."))),
)
TOOL = ToolSpec("ping", "Pong.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def body(request: Request, **extra: Any) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(CALL.encode_request(request, extra))
    return written


def test_where_and_how_to_post() -> None:
    assert CALL.get_path(Request("m", ())) == "/chat/completions"
    assert CALL.build_headers("") == {}
    assert CALL.build_headers("sk-1") == {"authorization": "Bearer sk-1"}


def test_a_conversation_in_the_plainest_form() -> None:
    assert body(Request("m", HISTORY)) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a\nb"},
            {
                "role": "assistant",
                "content": "Looking.",
                "reasoning_content": "hm",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": '{"broken'}}],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "ping", "content": "pong"},
            {"role": "assistant", "content": "Done."},
        ],
    }


def test_reasoning_that_must_come_back_does() -> None:
    message = Message("assistant", (Reasoning("so", {"signature": "x"}), Text("Done.")))
    assert body(Request("m", (message,)))["messages"][0]["reasoning_content"] == "so"


def test_pictures_are_parts() -> None:
    parts = (Text("see"), Image("data:image/png;base64,AA", "image/png"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    assert body(Request("m", (Message("user", parts),)))["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture]}
    ]
    result = ToolResult("c1", "see", images=(parts[1],))
    assert body(Request("m", (Message("tool", (result,)),)))["messages"] == [
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "see"}, picture]}
    ]


def test_results_among_other_parts_come_before_them_as_messages_of_their_own() -> None:
    message = Message("user", (ToolResult("c1", "1"), ToolResult("c2", "2"), Text("go on")))
    assert [written["role"] for written in body(Request("m", (message,)))["messages"]] == ["tool", "tool", "user"]


def test_a_message_without_parts_has_empty_content() -> None:
    assert body(Request("m", (Message("user", ()),)))["messages"] == [{"role": "user", "content": ""}]


def test_tools_bring_only_what_differs_from_the_default() -> None:
    function = {"name": "ping", "description": "Pong.", "parameters": TOOL.parameters}
    plain = body(Request("m", HISTORY, (TOOL,)))
    assert plain["tools"] == [{"type": "function", "function": function}]
    assert not plain.keys() & {"tool_choice", "parallel_tool_calls"}
    assert body(Request("m", HISTORY, (TOOL,), parallel_tool_calls=False))["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(Request("m", HISTORY, parallel_tool_calls=False))
    empty = body(Request("m", HISTORY, (ToolSpec("x"),)))["tools"][0]["function"]
    assert empty == {"name": "x", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("none", "none"),
        ("required", "required"),
        ("ping", {"type": "function", "function": {"name": "ping"}}),
    ],
)
def test_a_choice_of_tools(choice: str, written: Any) -> None:
    assert body(Request("m", HISTORY, (TOOL,), tool_choice=choice))["tool_choice"] == written


def test_options_and_extra_are_passed_on_and_ours_come_first() -> None:
    written = body(
        Request("m", HISTORY, (TOOL,), options={"temperature": 0, "stop": ["x"]}),
        user="me",
        model="other",
        tools=[{"type": "web_search"}],
    )
    assert (written["temperature"], written["stop"], written["user"], written["model"]) == (0, ["x"], "me", "m")
    assert [tool["type"] for tool in written["tools"]] == ["function", "web_search"]


def test_the_limit_keeps_the_name_that_the_client_used() -> None:
    options = {"max_tokens": 5}
    assert body(Request("m", HISTORY, options=options))["max_tokens"] == 5
    written = body(Request("m", HISTORY, options=options), max_completion_tokens=9)
    assert (written.get("max_tokens"), written["max_completion_tokens"]) == (None, 5)


def test_what_is_written_is_read_back() -> None:
    request = Request("m", HISTORY[1:2] + HISTORY[2:4], (TOOL,), "ping", False, {"seed": 1})
    again = SERVER_CODECS["openai_chat"].decode_request(CALL.encode_request(request, {"user": "me"}))
    assert again.extra == {"user": "me"}
    assert again.request.messages[1:] == request.messages[1:]
    assert again.request.tools == request.tools
    assert (again.request.tool_choice, again.request.parallel_tool_calls) == ("ping", False)
    assert again.request.options == {"seed": 1}
