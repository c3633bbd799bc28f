"""Asking a server that speaks the Responses API, and reading what such servers send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItem
from pydantic import TypeAdapter

from callwright import collect
from callwright.errors import BackendError, WireError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec, Usage
from callwright.wire.openai_responses import OpenAIResponsesClientCodec, OpenAIResponsesServerCodec
from tests.support.streams import places, sliced

PING = ToolSpec("ping", "Answer.", {"type": "object", "properties": {}})
USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 2},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 12,
}


def request(*messages: Message, **more: Any) -> Request:
    return Request("m", messages or (Message("user", (Text("hi"),)),), **more)


def body(asked: Request, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    return json.loads(OpenAIResponsesClientCodec().encode_request(asked, extra or {}))


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def read(data: bytes) -> list[Event]:
    reader = OpenAIResponsesClientCodec().create_reader()
    return reader.feed(data) + reader.close()


def end(status: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "r", "status": status, "output": []} | response}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def test_where_and_with_what_key() -> None:
    called = OpenAIResponsesClientCodec()
    assert called.get_path(request()) == "/responses"
    assert called.build_headers("k") == {"authorization": "Bearer k"}
    assert called.build_headers("") == {}


def test_a_plain_request() -> None:
    assert body(request()) == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "stream": True,
        "store": False,
    }


def test_a_whole_conversation_in_items_that_the_sdk_takes() -> None:
    hidden = Reasoning("why", {"id": "rs_1", "encrypted_content": "gAAA"})
    items = body(
        request(
            Message("system", (Text("rules"),)),
            Message("user", (Text("see"), Image("https://x"))),
            Message("assistant", (hidden, Text("let me"), ToolCall("c1", "ping", '{"a": '))),
            Message("tool", (ToolResult("c1", "ok", images=(Image("data:image/png;base64,AA"),)),)),
            Message("assistant", (Reasoning("not from there"), Reasoning("old", {"id": "rs_0"}), Text("done"))),
        )
    )["input"]
    assert [(item["type"], item.get("role")) for item in items] == [
        ("message", "system"),
        ("message", "user"),
        ("reasoning", None),
        ("message", "assistant"),
        ("function_call", None),
        ("function_call_output", None),
        ("message", "assistant"),
    ]
    assert items[2] == {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "why"}],
    }
    assert items[4]["arguments"] == '{"a": '
    assert [part["type"] for part in items[5]["output"]] == ["input_text", "input_image"]
    for item in items[:3] + items[4:6]:
        TypeAdapter(ResponseInputItem).validate_python(item)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("auto", "auto"), ("required", "required"), ("ping", {"type": "function", "name": "ping"})],
)
def test_tools_are_flat_and_not_strict(choice: str, expected: Any) -> None:
    got = body(request(tools=(PING,), tool_choice=choice, parallel_tool_calls=False))
    assert got["tools"] == [
        {
            "type": "function",
            "name": "ping",
            "description": "Answer.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    assert (got["tool_choice"], got["parallel_tool_calls"]) == (expected, False)


def test_options_go_by_this_wires_names_and_those_it_does_not_have_stay_out() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    options = {"max_tokens": 9, "temperature": 0, "seed": 1, "stop": ["x"], "reasoning_effort": "low"}
    got = body(request(options=options | {"response_format": schema}), {"reasoning": {"summary": "auto"}})
    assert got["max_output_tokens"] == 9
    assert got["temperature"] == 0
    assert got["reasoning"] == {"summary": "auto", "effort": "low"}
    assert got["text"] == {"format": {"type": "json_schema", "name": "n", "schema": {}}}
    assert not {"seed", "stop", "max_tokens", "reasoning_effort", "response_format"} & set(got)


def test_a_request_from_the_same_wire_is_passed_on_with_all_it_had() -> None:
    sent = {
        "model": "m",
        "instructions": "be brief",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "web_search_call", "id": "ws"},
            {"type": "function_call", "call_id": "c1", "name": "ping", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "pong"},
        ],
        "tools": [{"type": "function", "name": "ping", "parameters": {"type": "object"}}, {"type": "web_search"}],
        "tool_choice": {"type": "web_search"},
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    }
    ask = OpenAIResponsesServerCodec().decode_request(json.dumps(sent).encode())
    got = body(ask.request, ask.extra)
    assert [item.get("role") or item["type"] for item in got["input"]] == [
        "system",
        "user",
        "function_call",
        "function_call_output",
    ]
    assert [tool["type"] for tool in got["tools"]] == ["function", "web_search"]
    assert got["tool_choice"] == {"type": "web_search"}
    assert (got["store"], got["include"], got["text"]) == (True, sent["include"], sent["text"])
    assert "instructions" not in got


# ── reading ──────────────────────────────────────────────────────────────────────────────────────

STREAM = sse(
    {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
    {"type": "response.reasoning_summary_part.added", "summary_index": 0},
    {"type": "response.reasoning_summary_text.delta", "delta": "one", "summary_index": 0},
    {"type": "response.reasoning_summary_part.added", "summary_index": 1},
    {"type": "response.reasoning_summary_text.delta", "delta": "two", "summary_index": 1},
    {"type": "response.reasoning_text.delta", "delta": "raw"},
    {"type": "response.output_item.added", "item": {"type": "message", "id": "m1", "content": []}},
    {"type": "response.output_text.delta", "item_id": "m1", "delta": "Hé"},
    {"type": "response.output_text.delta", "item_id": "m1", "delta": "llo"},
    {"type": "response.output_text.done", "item_id": "m1", "text": "Héllo"},
    {"type": "response.output_item.done", "item": message("Héllo")},
    {
        "type": "response.output_item.added",
        "item": {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "ping", "arguments": ""},
    },
    {"type": "response.function_call_arguments.delta", "item_id": "fc1", "delta": '{"a"'},
    {"type": "response.function_call_arguments.delta", "item_id": "fc1", "delta": ": 1}"},
    {"type": "response.function_call_arguments.done", "item_id": "fc1", "arguments": '{"a": 1}'},
    {
        "type": "response.output_item.done",
        "item": {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "ping", "arguments": '{"a": 1}'},
    },
    end(output=[message("Héllo")], usage=USAGE),
)


def test_openais_own_stream() -> None:
    assert read(STREAM) == [
        ReasoningDelta("one"),
        ReasoningDelta("\n\n"),
        ReasoningDelta("two"),
        TextDelta("Hé"),
        TextDelta("llo"),
        CallStart(0, "c1", "ping"),
        CallDelta(0, '{"a"'),
        CallDelta(0, ": 1}"),
        CallEnd(0),
        UsageSeen(Usage(7, 5, 3, 2)),
        Finish("tool_calls"),
    ]


@given(places)
def test_cuts_between_bytes_leave_no_trace(cuts: list[int]) -> None:
    reader = OpenAIResponsesClientCodec().create_reader()
    events = [event for piece in sliced(STREAM, cuts) for event in reader.feed(piece)]
    assert events + reader.close() == read(STREAM)


CALL = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "ping", "arguments": "{}"}


@pytest.mark.parametrize(
    "data",
    [
        sse({"type": "response.output_item.done", "item": message("x")}, end(output=[message("x")])),
        sse(end(output=[message("x")])),
        json.dumps({"object": "response", "status": "completed", "output": [message("x")]}).encode(),
        b"\r\n"
        + json.dumps({"object": "response", "status": "completed", "output": [message("x")]}, indent=1).encode(),
        sse({"type": "response.output_text.delta", "delta": "x"}, end(output=[message("other id, same text")])),
    ],
)
def test_text_is_read_once_wherever_it_stands(data: bytes) -> None:
    assert read(data) == [TextDelta("x"), Finish("stop")]


@pytest.mark.parametrize(
    "data",
    [
        sse({"type": "response.output_item.done", "item": CALL}, end(output=[CALL])),
        sse(end(output=[CALL])),
        json.dumps({"object": "response", "status": "completed", "output": [CALL]}).encode(),
        sse({"type": "response.output_item.added", "item": CALL}, end()),
    ],
)
def test_a_call_is_read_once_wherever_it_stands(data: bytes) -> None:
    assert read(data) == [CallStart(0, "c1", "ping"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]


def test_calls_may_interleave_and_each_ends_when_it_is_done() -> None:
    def item(number: int, step: str, **more: Any) -> dict[str, Any]:
        call = {"type": "function_call", "id": f"fc{number}", "call_id": f"c{number}", "name": "ping", "arguments": ""}
        return {"type": f"response.output_item.{step}", "item": call | more}

    events = read(
        sse(
            item(1, "added"),
            item(2, "added"),
            {"type": "response.function_call_arguments.delta", "item_id": "fc2", "delta": "{}"},
            item(2, "done", arguments="{}"),
            {"type": "response.function_call_arguments.delta", "item_id": "fc1", "delta": "{ }"},
            item(1, "done", arguments="{ }"),
            end(),
        )
    )
    assert [event.index for event in events if isinstance(event, CallEnd)] == [1, 0]
    assert [call.arguments for call in collect(events).tool_calls] == ["{ }", "{}"]


def test_calls_without_any_id_are_left_to_the_turn_to_name() -> None:
    bare = {"type": "function_call", "name": "ping", "arguments": "{}"}
    events = read(sse(end(output=[bare, bare])))
    assert [event.id for event in events if isinstance(event, CallStart)] == ["", ""]
    assert [event for event in events if isinstance(event, CallEnd)] == [CallEnd(0), CallEnd(1)]


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, "length")]
)
def test_an_incomplete_response(reason: str | None, finish: str) -> None:
    added = {"type": "response.output_item.added", "item": CALL | {"arguments": '{"a'}}
    events = read(sse(added, end("incomplete", incomplete_details={"reason": reason} if reason else None)))
    assert events[-2:] == [CallEnd(0, complete=False), Finish(finish)]


@pytest.mark.parametrize(
    ("data", "kind", "retryable"),
    [
        (sse(end("failed", error={"code": "server_error", "message": "oops"})), "unavailable", True),
        (sse(end("failed", error={"code": "rate_limit_exceeded", "message": "oops"})), "rate_limit", True),
        (sse(end("failed", error={"code": "context_length_exceeded", "message": "oops"})), "refused", False),
        (sse({"type": "error", "code": "server_error", "message": "oops"}), "unavailable", True),
        (sse({"type": "error", "error": {"type": "x", "message": "oops"}}), "unavailable", True),
        (sse({"error": {"code": 503, "message": "oops"}}), "overloaded", True),
        (b'event: error\ndata: {"message": "oops"}\n\n', "unavailable", True),
        (b'{"error": {"message": "oops"}}', "unavailable", True),
        (sse(end("failed", error=None)), "unavailable", True),
    ],
)
def test_errors_in_the_stream(data: bytes, kind: str, retryable: bool) -> None:
    with pytest.raises(BackendError) as caught:
        read(data)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert "oops" in str(caught.value) or b"oops" not in data


@pytest.mark.parametrize(
    "data",
    [b"", sse({"type": "response.created"}), STREAM[:-400], b"data: [DONE]\n\n", b"{}", b"{ broken"],
    ids=range(6),
)
def test_a_stream_without_its_last_event_is_an_error(data: bytes) -> None:
    with pytest.raises(BackendError) as caught:
        read(data)
    assert caught.value.kind == "protocol"


def test_what_follows_the_last_event_is_dropped() -> None:
    late = {"type": "response.output_text.delta", "delta": "late"}
    assert read(sse(end(), late) + b"data: [DONE]\n\n") == [Finish("stop")]


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: 3\n\n"])
def test_garbage_is_the_servers_fault(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


keys = st.sampled_from(
    ("type", "item", "response", "output", "content", "summary", "delta", "status", "usage", "error")
)
words = st.sampled_from(
    (
        "response.output_item.done",
        "response.completed",
        "response.incomplete",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "function_call",
        "message",
        "reasoning",
        "completed",
        "error",
    )
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(keys, values), max_size=4))
def test_odd_events_raise_nothing_but_what_is_declared(events: list[Any]) -> None:
    try:
        assert read(sse(*events))[-1:]
    except (BackendError, WireError) as problem:
        assert str(problem)  # noqa: PT017


def test_a_refusal_says_what_the_server_said() -> None:
    problem = OpenAIResponsesClientCodec().parse_error(429, b'{"error": {"message": "slow down"}}')
    assert (problem.kind, problem.retryable, problem.status) == ("rate_limit", True, 429)
    assert "slow down" in str(problem)
