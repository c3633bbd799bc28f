"""The official SDK against our bytes: it asks, we answer, and it goes on with what it got."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import openai
import pytest

from callwright import collect
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Message, Reasoning, Text, ToolCall, ToolResult, Usage
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamStyle
from callwright.wire.openai_responses import OpenAIResponsesServerCodec

PATCH = "*** Begin Patch\n*** End Patch\n"
TOOLS: list[Any] = [
    {"type": "function", "name": "ping", "parameters": {"type": "object", "properties": {}}, "strict": False},
    {"type": "custom", "name": "apply_patch", "description": "Edit."},
    {"type": "namespace", "name": "notes", "description": "Notes.", "tools": [{"type": "function", "name": "add"}]},
]
EVENTS: list[Event] = [
    ReasoningDelta("why"),
    TextDelta("let me "),
    TextDelta("see"),
    CallStart(0, "c1", "ping"),
    CallDelta(0, "{"),
    CallDelta(0, "}"),
    CallEnd(0),
    CallStart(1, "c2", "apply_patch"),
    CallDelta(1, json.dumps({"input": PATCH})),
    CallEnd(1),
    CallStart(2, "c3", "notes__add"),
    CallDelta(2, '{"a": 1}'),
    CallEnd(2),
    UsageSeen(Usage(7, 5)),
    Finish("tool_calls"),
]
ANSWER = Message(
    "assistant",
    (
        Reasoning("why"),
        Text("let me see"),
        ToolCall("c1", "ping", "{}"),
        ToolCall("c2", "apply_patch", json.dumps({"input": PATCH})),
        ToolCall("c3", "notes__add", '{"a": 1}'),
    ),
)


class Service:
    """Answers each request with the same turn, or with a failure in the middle of it."""

    def __init__(self, events: Sequence[Event], problem: ErrorResponse | None = None) -> None:
        self.asked: list[ClientRequest] = []
        self._events = events
        self._problem = problem

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        served = OpenAIResponsesServerCodec()
        ask = served.decode_request(request.read())
        self.asked.append(ask)
        head = ResponseHead("abc", 1_700_000_000, ask.request.model)
        if not ask.stream:
            body = served.encode_response(ask, head, StreamStyle(), [collect(self._events)])
            return httpx2.Response(200, content=body, headers={"content-type": "application/json"})
        encoder = served.create_encoder(ask, head, StreamStyle())
        parts = [
            encoder.begin_stream(),
            *(encoder.encode_events([event]) for event in self._events),
            encoder.encode_heartbeat(),
        ]
        parts.append(encoder.fail_stream(self._problem) if self._problem else encoder.end_stream("note"))
        return httpx2.Response(200, content=b"".join(parts), headers={"content-type": served.content_type})


def client(service: Service) -> openai.OpenAI:
    return openai.OpenAI(
        api_key="sk-fake",
        base_url="http://gateway/v1",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(service)),
    )


def by_helper(sdk: openai.OpenAI, **options: Any) -> Any:
    with sdk.responses.stream(model="m", **options) as stream:
        return stream.get_final_response()


def by_events(sdk: openai.OpenAI, **options: Any) -> Any:
    events = list(sdk.responses.create(model="m", stream=True, **options))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events[-1].response


def at_once(sdk: openai.OpenAI, **options: Any) -> Any:
    return sdk.responses.create(model="m", **options)


WAYS = [by_helper, by_events, at_once]


@pytest.mark.parametrize("ask", WAYS)
def test_a_tool_loop_goes_round(ask: Callable[..., Any]) -> None:
    service = Service(EVENTS)
    sdk = client(service)
    response = ask(sdk, input="hi", tools=TOOLS, instructions="be brief")
    assert response.output_text == "let me see"
    assert response.usage.total_tokens == 12
    items = {item.type: item for item in response.output}
    assert items["custom_tool_call"].input == PATCH
    assert (items["function_call"].name, items["function_call"].namespace) == ("add", "notes")
    results = [
        {"type": "function_call_output", "call_id": "c1", "output": "pong"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
        {"type": "function_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "added"}]},
    ]
    ask(sdk, input=[{"role": "user", "content": "hi"}, *response.output, *results], tools=TOOLS)
    assert service.asked[1].request.messages == (
        Message("user", (Text("hi"),)),
        ANSWER,
        Message("tool", (ToolResult("c1", "pong", "ping"),)),
        Message("tool", (ToolResult("c2", "done", "apply_patch"),)),
        Message("tool", (ToolResult("c3", "added", "notes__add"),)),
    )


def test_whole_and_streamed_are_the_same_to_the_sdk() -> None:
    bodies = [ask(client(Service(EVENTS)), input="hi", tools=TOOLS).model_dump() for ask in (by_events, at_once)]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("ask", [by_events, at_once])  # the helper wants `response.completed`, of OpenAI too
def test_a_cut_answer_is_incomplete_to_the_sdk(ask: Callable[..., Any]) -> None:
    response = ask(client(Service([TextDelta("half"), Finish("length")])), input="hi")
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "half"


def test_a_failure_in_the_middle_reaches_the_program() -> None:
    problem = ErrorResponse(status=502, message="the model went away", fault="backend")
    response = by_events(client(Service(EVENTS[:6], problem)), input="hi")
    assert (response.status, response.error.code) == ("failed", "server_error")
    assert "the model went away" in response.error.message
