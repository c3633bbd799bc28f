"""A whole Copilot Chat turn with a tool, as it goes over the wire (W-18).

The model's server sends what Copilot's own proxy was seen to send: text, an announcement of the calls, the arguments
twice and the second time from their beginning (T-7), a finish without a delta, and no `[DONE]`. The client writes tools
and results with Copilot's names, and reads as its SSE parser does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.hosted import Hosted, Reply, backend, model
from tests.support.chat_shape import check_stream
from tests.support.upstream import DONE, Step, Upstream, answer, sse

SEARCH = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
FUNCTION = {"name": "search", "description": "Looks things up.", "parameters": SEARCH}
ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "You help in an editor."},
    {"role": "user", "content": "How do parsers cope with halves of a delta?"},
]
HEADERS = {
    "authorization": "Bearer token",
    "x_request_id": "6f9d2c1e-trace",
    "x_interaction_type": "agent",
    "openai_intent": "chat",
    "user_agent": "GitHubCopilotChat/0.42.0",
}
INTRO = ("I can look that up. ", "One moment …")
RESULT = '{"results": [{"title": "On halves", "snippet": "They wait for the rest."}]}'
FINAL = "They keep what is incomplete until the rest has come."


def _chunk(**choice: Any) -> bytes:
    return sse({"choices": [{**choice, "index": 0}]})


def _call(arguments: str) -> bytes:
    return _chunk(delta={"tool_calls": [{"id": "call1", "function": {"name": "search", "arguments": arguments}}]})


CALLING: list[Step] = [
    *(_chunk(delta={"content": words}) for words in INTRO),
    _chunk(delta={"beginToolCalls": {"toolCallIds": ["call1"]}}),
    _call('{"query": "halves of a delta"'),
    0.02,
    _call('{"query": "halves of a delta"}'),
    _chunk(finish_reason="tool_calls"),
]
ANSWERING = [_chunk(delta={"content": FINAL}), _chunk(finish_reason="stop"), DONE]


def request(*more: dict[str, Any]) -> dict[str, Any]:
    """The client's request: the tool is there under both of its names."""
    tool = {"type": "function", "toolId": "search", "function": FUNCTION}
    return {"model": "m", "stream": True, "messages": [*ASKED, *more], "tools": [tool], "functions": [FUNCTION]}


class Parsed:
    """What the client's parser makes of a stream: text as it comes, calls when they are whole."""

    def __init__(self, reply: Reply) -> None:
        assert reply.status == 200, reply.body
        self.text = self.reason = ""
        self.order: list[str] = []
        self.calls: dict[int, dict[str, str]] = {}
        for chunk in check_stream(reply.body):
            (choice,) = chunk["choices"]
            self.add(choice["delta"])
            self.reason = choice["finish_reason"] or self.reason

    def add(self, delta: dict[str, Any]) -> None:
        if content := delta.get("content"):
            self.text += content
            self.order.append("text")
        for piece in delta.get("tool_calls", ()):
            call = self.calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] = piece.get("id", call["id"])
            call["name"] += piece["function"].get("name", "")
            call["arguments"] += piece["function"]["arguments"]
            self.order.append("call")


@pytest.mark.parametrize("end", [[DONE], []], ids=["with [DONE]", "without"])
@pytest.mark.parametrize("named", [{"name": "search"}, {}], ids=["result with a name", "without"])
def test_the_whole_trace(tmp_path: Any, upstream: Upstream, end: list[Step], named: dict[str, str]) -> None:
    upstream.play(answer(*CALLING, *end), answer(*ANSWERING))
    with Hosted(tmp_path, backend("main", upstream.url) + model("m", "main")) as gateway:
        reply = gateway.post("/v1/chat/completions", request(), **HEADERS)
        assert reply.headers["x-request-id"] == HEADERS["x_request_id"]
        first = Parsed(reply)
        (call,) = first.calls.values()
        assert first.text == "".join(INTRO)
        assert first.order == sorted(first.order, reverse=True), "text comes before the call"
        assert call == {"id": "call1", "name": "search", "arguments": '{"query": "halves of a delta"}'}
        assert first.reason == "tool_calls"

        made = {"id": call["id"], "type": "function", "function": {k: call[k] for k in ("name", "arguments")}}
        more = [
            {"role": "assistant", "content": first.text, "tool_calls": [made]},
            {"role": "tool", "content": RESULT, "toolCallId": call["id"], **named},
        ]
        final = Parsed(gateway.post("/v1/chat/completions", request(*more), **HEADERS))
        assert (final.text, final.calls, final.reason) == (FINAL, {}, "stop")

    asked, answered = (seen.json for seen in upstream.requests)
    assert asked["messages"] == ASKED
    assert [tool["function"] for tool in asked["tools"]] == [FUNCTION]
    *before, assistant, result = answered["messages"]
    assert before == ASKED
    assert (assistant["content"], assistant["tool_calls"]) == (first.text, [made])
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "call1", RESULT)


def test_a_result_without_its_call_is_refused_by_name(tmp_path: Any, upstream: Upstream) -> None:
    orphan = [
        {"role": "assistant", "content": "I found something."},
        {"role": "tool", "name": "search", "content": RESULT, "toolCallId": "call1"},
    ]
    with Hosted(tmp_path, backend("main", upstream.url) + model("m", "main")) as gateway:
        reply = gateway.post("/v1/chat/completions", request(*orphan), **HEADERS)
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["param"]) == (400, "messages[3].tool_call_id")
    assert "call1" in error["message"]
    assert not upstream.requests
