"""What the chat completions encoder writes: one shape, whatever was said and however it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import collect
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from callwright.model import Message, Request, Text, ToolCall, Usage
from callwright.wire import CLIENT_CODECS, SERVER_CODECS
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle
from tests.support.chat_shape import check_stream, frames
from tests.support.streams import places, said, sliced, turns

SERVE, CALL = SERVER_CODECS["openai_chat"], CLIENT_CODECS["openai_chat"]
REQUEST = Request("m", (Message("user", (Text("hi"),)),))
HEAD = ResponseHead("abc", 1_700_000_000, "model-☃")
BROKEN = ErrorResponse(status=502, message="no luck", fault="backend", kind="server_error", code="backend_failed")
TURN: list[Event] = [
    ReasoningDelta("I should look."),
    TextDelta("Let me look."),
    CallStart(0, "call_a", "read_file"),
    CallDelta(0, '{"path":'),
    CallDelta(0, '"a.txt"}'),
    CallEnd(0),
    CallStart(1, "call_b", "ping"),
    CallDelta(1, "{}"),
    CallEnd(1),
    UsageSeen(Usage(10, 5, 2, 3)),
    Finish("tool_calls"),
]


def encoder(style: StreamStyle | None = None, **ask: Any) -> StreamEncoder:
    return SERVE.create_encoder(ClientRequest(request=REQUEST, stream=True, **ask), HEAD, style or StreamStyle())


def stream(events: list[Event], style: StreamStyle | None = None, **ask: Any) -> bytes:
    writer = encoder(style, **ask)
    return writer.begin_stream() + writer.encode_events(events) + writer.end_stream()


def deltas(data: bytes, **shape: Any) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in check_stream(data, **shape) if chunk.get("choices")]


def last_reason(data: bytes, **shape: Any) -> str:
    return [chunk["choices"][0]["finish_reason"] for chunk in check_stream(data, **shape) if chunk.get("choices")][-1]


def read(data: bytes, cuts: list[int]) -> list[Event]:
    reader = CALL.create_reader()
    return [event for chunk in sliced(data, cuts) for event in reader.feed(chunk)] + reader.close()


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────


@given(turns(), places, places, st.sampled_from(("generated", "whole", 1, 7)), st.booleans())
def test_a_turn_survives_the_wire(
    events: list[Event], batches: list[int], cuts: list[int], granularity: Any, silences: bool
) -> None:
    writer = encoder(StreamStyle(arguments=granularity), include_usage=True)
    data = writer.begin_stream()
    for batch in sliced(events, batches):
        data += writer.encode_events(batch) + (writer.flush() if silences else b"") + writer.encode_heartbeat()
    data += writer.end_stream("calls=1")
    check_stream(data, usage=True)
    sent, got = said(events), said(read(data, cuts))
    assert got.outline == sent.outline
    assert got.calls == sent.calls
    assert got.finish == sent.finish
    assert got.usage == sent.usage or (sent.usage is None and got.usage == Usage())


@given(turns(), st.booleans())
def test_stream_and_whole_say_the_same(events: list[Event], functions: bool) -> None:
    ask = ClientRequest(request=REQUEST, include_usage=True, functions=functions)
    (choice,) = (answer := json.loads(SERVE.encode_response(ask, HEAD, StreamStyle(), [collect(events)])))["choices"]
    message = choice["message"]
    chunks = check_stream(stream(events, include_usage=True, functions=functions), usage=True, functions=functions)
    text, thought, calls, function, reason = "", "", {}, None, None
    for chunk in chunks:
        for part in chunk["choices"]:
            delta = part["delta"]
            text += delta.get("content", "")
            thought += delta.get("reasoning_content", "")
            reason = part["finish_reason"]
            for entry in delta.get("tool_calls", ()):
                call = calls.setdefault(entry["index"], {"id": entry.get("id"), "type": "function"})
                known = call.setdefault("function", {"name": entry["function"].get("name"), "arguments": ""})
                known["arguments"] += entry["function"]["arguments"]
            if piece := delta.get("function_call"):
                function = function or {"name": piece["name"], "arguments": ""}
                function["arguments"] += piece["arguments"]
    complete = [call.complete for call in collect(events).tool_calls]
    assert (message["content"] or "", message.get("reasoning_content", "")) == (text, thought)
    assert message.get("tool_calls", []) == [call for index, call in calls.items() if complete[index]]
    assert message.get("function_call") == (function if functions and complete[:1] == [True] else None)
    assert choice["finish_reason"] == reason
    assert answer["usage"] == chunks[-1]["usage"]
    assert {key: answer[key] for key in ("id", "created", "model")} == {
        key: chunks[0][key] for key in ("id", "created", "model")
    }


@given(turns(), st.integers(0, 30), st.booleans(), st.booleans(), st.sampled_from((1, 3)))
def test_every_stream_ends_once_whatever_came_before(
    events: list[Event], prefix: int, failing: bool, usage: bool, choices: int
) -> None:
    writer = encoder(include_usage=usage, choices=choices)
    data = writer.begin_stream() + writer.encode_events(events[:prefix], choices - 1)
    data += writer.fail_stream(BROKEN) if failing else writer.end_stream("done")
    assert frames(data).count("data: [DONE]") == 1
    chunks = check_stream(data, choices=choices, usage=usage)
    if failing or prefix < len(events) or choices > 1:
        assert "error" in chunks[-1]
    assert not any(
        (
            writer.encode_events(events),
            writer.flush(),
            writer.encode_heartbeat(),
            writer.end_stream(),
            writer.fail_stream(BROKEN),
        )
    )


@given(st.lists(turns(truncated=False), min_size=2, max_size=3), places)
def test_each_choice_has_its_own_state(all_turns: list[list[Event]], cuts: list[int]) -> None:
    writer = encoder(choices=len(all_turns), include_usage=True)
    data = writer.begin_stream()
    batches = [sliced(events, cuts) for events in all_turns]
    while any(batches):
        for choice, waiting in enumerate(batches):
            if waiting:
                data += writer.encode_events(waiting.pop(0), choice)
    chunks = check_stream(data + writer.end_stream(), choices=len(all_turns), usage=True)
    for choice, events in enumerate(all_turns):
        mine = [part["delta"] for chunk in chunks for part in chunk["choices"] if part["index"] == choice]
        assert "".join(delta.get("content", "") for delta in mine) == collect(events).text
    used = [usage for events in all_turns if (usage := collect(events).usage)] or [Usage()]
    assert chunks[-1]["usage"]["completion_tokens"] == sum(usage.completion_tokens for usage in used)
    assert chunks[-1]["usage"]["prompt_tokens"] == max(usage.prompt_tokens for usage in used)


# ── the shape, delta by delta ─────────────────────────────────────────────────────────────────────


def test_a_turn_with_everything() -> None:
    assert deltas(stream(TURN, include_usage=True), usage=True) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "I should look."},
        {"content": "Let me look."},
        {
            "tool_calls": [
                {"index": 0, "id": "call_a", "type": "function", "function": {"name": "read_file", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"path":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"a.txt"}'}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "call_b", "type": "function", "function": {"name": "ping", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


def test_the_head_is_the_same_on_every_chunk() -> None:
    chunk = check_stream(stream(TURN))[3]
    assert {key: chunk[key] for key in ("id", "object", "created", "model")} == {
        "id": "chatcmpl-abc",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "model-☃",
    }


def test_usage_comes_when_asked_for_and_only_then() -> None:
    assert check_stream(stream(TURN, include_usage=True), usage=True)[-1]["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert b'"usage"' not in stream(TURN)


@pytest.mark.parametrize(
    ("granularity", "fragments"),
    [("generated", ['{"path":', '"a.txt"}']), ("whole", ['{"path":"a.txt"}']), (6, ['{"path', '":"a.t', 'xt"}'])],
)
def test_arguments_are_cut_as_the_client_wants(granularity: Any, fragments: list[str]) -> None:
    found = [
        entry["function"]["arguments"]
        for delta in deltas(stream(TURN, StreamStyle(arguments=granularity)))
        for entry in delta.get("tool_calls", ())
        if entry["index"] == 0 and "id" not in entry
    ]
    assert found == fragments


def test_begin_tool_calls_comes_once_and_only_when_wanted() -> None:
    found = [delta for delta in deltas(stream(TURN, StreamStyle(begin_tool_calls=True))) if "beginToolCalls" in delta]
    assert found == [{"beginToolCalls": {"toolCallIds": ["call_a"]}}]
    assert b"beginToolCalls" not in stream(TURN)


@pytest.mark.parametrize("fields", [(), ("reasoning",), ("cot_summary", "reasoning_content")])
def test_reasoning_goes_into_the_fields_that_the_client_reads(fields: tuple[str, ...]) -> None:
    style = StreamStyle(reasoning_fields=fields)
    expected = dict.fromkeys(fields, "I should look.")
    assert deltas(stream(TURN, style))[1] == (expected or {"content": "Let me look."})
    message = json.loads(SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, style, [collect(TURN)]))[
        "choices"
    ][0]["message"]
    assert message.keys() == {"role", "content", "tool_calls", *fields}


def test_legacy_functions_get_one_function_call() -> None:
    data = stream(TURN, functions=True)
    assert [delta["function_call"] for delta in deltas(data, functions=True) if "function_call" in delta] == [
        {"name": "read_file", "arguments": ""},
        {"arguments": '{"path":'},
        {"arguments": '"a.txt"}'},
    ]
    assert last_reason(data, functions=True) == "function_call"


CALLED_EVENTS: list[Event] = [CallStart(0, "a", "ping"), CallDelta(0, "{}"), CallEnd(0)]
CUT: list[Event] = [CallStart(0, "a", "ping"), CallDelta(0, '{"a'), CallEnd(0, complete=False)]
REASONS = {
    "plain": ([TextDelta("x"), Finish("stop")], "stop"),
    "nothing": ([Finish("stop")], "stop"),
    "white space": ([TextDelta(" \n"), Finish("stop")], "stop"),
    "calls though the backend said stop": ([*CALLED_EVENTS, Finish("stop")], "tool_calls"),
    "calls and then an answer": ([*CALLED_EVENTS, TextDelta("x"), Finish("stop")], "tool_calls"),
    "a cut call": ([*CUT, Finish("length")], "length"),
    "a cut call though the backend said stop": ([*CUT, Finish("stop")], "length"),
    "no call though the backend said so": ([TextDelta("x"), Finish("tool_calls")], "stop"),
    "filtered calls": ([*CALLED_EVENTS, Finish("content_filter")], "content_filter"),
}


@pytest.mark.parametrize(("events", "reason"), REASONS.values(), ids=REASONS.keys())
def test_the_finish_reason_is_one_that_clients_act_on_rightly(events: list[Event], reason: str) -> None:
    assert last_reason(stream(events)) == reason
    answer = json.loads(SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, StreamStyle(), [collect(events)]))
    assert answer["choices"][0]["finish_reason"] == reason


def test_malformed_text_is_not_sent() -> None:
    assert deltas(stream([Malformed("<tool_call>{", "cut"), Finish("stop")])) == [
        {"role": "assistant", "content": ""},
        {},
    ]


def test_events_after_the_finish_are_dropped() -> None:
    writer = encoder()
    writer.encode_events([Finish("stop")])
    assert writer.encode_events([TextDelta("late"), Finish("stop")]) == b""


# ── the end ───────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_ends_the_choices_says_why_and_ends_the_stream() -> None:
    writer = encoder(choices=2, include_usage=True)
    data = (
        writer.begin_stream()
        + writer.encode_events([Finish("stop")], 0)
        + writer.encode_events([TextDelta("half"), TextDelta("-")], 1)
    )
    chunks = check_stream(data + writer.fail_stream(BROKEN), choices=2, usage=True)
    assert [(part["index"], part["delta"], part["finish_reason"]) for c in chunks[3:-1] for part in c["choices"]] == [
        (1, {"content": "half"}, None),
        (1, {"content": "-"}, None),
        (1, {}, "error"),
    ]
    assert chunks[-1] == {
        "error": {
            "message": "The backend failed: no luck",
            "type": "server_error",
            "param": None,
            "code": "backend_failed",
        }
    }


def test_a_failure_is_one_line_whatever_the_backend_said() -> None:
    writer = encoder()
    words = "a\u2028b\x85c\nd\ud83d"
    chunks = check_stream(
        writer.begin_stream() + writer.fail_stream(ErrorResponse(status=500, message=words, fault="backend"))
    )
    assert chunks[-1]["error"]["message"] == "The backend failed: a\u2028b\x85c\nd\ufffd"


def test_an_end_without_a_finish_is_a_failure_of_ours() -> None:
    writer = encoder()
    chunks = check_stream(writer.begin_stream() + writer.end_stream())
    assert chunks[-1]["error"]["message"].startswith("The gateway failed: ")


def test_a_comment_comes_before_the_end() -> None:
    writer = encoder()
    data = writer.begin_stream() + writer.encode_events([Finish("stop")]) + writer.end_stream("tool_call_count=0\nx=1")
    assert frames(data)[-2:] == [": tool_call_count=0 x=1", "data: [DONE]"]


@pytest.mark.parametrize("kind", ["comment", "event", "none"])
def test_a_heartbeat_is_what_the_client_counts(kind: Any) -> None:
    writer = encoder(StreamStyle(heartbeat=kind))
    beat = writer.encode_heartbeat()
    assert beat.startswith({"comment": b": ", "event": b"data: {", "none": b""}[kind])
    data = writer.begin_stream() + beat + writer.encode_events([Finish("stop")])
    check_stream(data + writer.end_stream())


def test_text_is_held_for_a_moment_and_not_longer() -> None:
    writer = encoder()
    writer.begin_stream()
    assert b'"Hello"' in writer.encode_events([TextDelta("Hello")])
    assert not writer.has_pending
    assert writer.encode_events([TextDelta(" w")]) == b""
    assert writer.has_pending
    assert b'" w"' in writer.flush()
    assert not writer.has_pending
    assert writer.flush() == b""


def test_reasoning_that_is_held_goes_before_the_text() -> None:
    events: list[Event] = [
        ReasoningDelta("abcdef"),
        ReasoningDelta("g"),
        TextDelta("h"),
        TextDelta("i"),
        Finish("stop"),
    ]
    found = deltas(stream(events))
    assert found[1:-1] == [
        {"reasoning_content": "abcdef"},
        {"reasoning_content": "g"},
        {"content": "h"},
        {"content": "i"},
    ]


# ── in one piece ──────────────────────────────────────────────────────────────────────────────────


def test_a_whole_answer() -> None:
    assert json.loads(SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, StreamStyle(), [collect(TURN)])) == {
        "id": "chatcmpl-abc",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "model-☃",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Let me look.",
                    "reasoning_content": "I should look.",
                    "tool_calls": [
                        {
                            "id": "call_a",
                            "type": "function",
                            "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'},
                        },
                        {"id": "call_b", "type": "function", "function": {"name": "ping", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


@pytest.mark.parametrize(
    ("events", "null", "content"),
    [(CALLED_EVENTS, True, None), (CALLED_EVENTS, False, ""), ([], True, ""), ([TextDelta("x")], True, "x")],
)
def test_content_is_null_only_beside_calls(events: list[Event], null: bool, content: str | None) -> None:
    turn = collect([*events, Finish("stop")])
    answer = json.loads(
        SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, StreamStyle(null_content=null), [turn])
    )
    assert answer["choices"][0]["message"]["content"] == content


def test_half_a_call_is_left_out_of_a_whole_answer() -> None:
    turn = collect([*CALLED_EVENTS, CallStart(1, "b", "ping"), CallDelta(1, "{"), CallEnd(1, False), Finish("length")])
    (choice,) = json.loads(SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, StreamStyle(), [turn]))[
        "choices"
    ]
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["a"]
    assert choice["finish_reason"] == "length"
    assert turn.tool_calls[1] == ToolCall("b", "ping", "{", complete=False)


@pytest.mark.parametrize(
    ("fault", "start"),
    [("client", "The request cannot be served: "), ("gateway", "The gateway failed: "), ("backend", "The backend f")],
)
def test_a_problem_says_who_failed(fault: Any, start: str) -> None:
    body = json.loads(SERVE.encode_error(ErrorResponse(status=400, message="why", fault=fault, param="n", code="bad")))
    assert body["error"]["message"].startswith(start)
    assert body["error"]["message"].endswith("why")
    assert (body["error"]["param"], body["error"]["code"]) == ("n", "bad")


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    events: list[Event] = [TextDelta("cut \ud83d"), Finish("stop")]
    assert deltas(stream(events))[1] == {"content": "cut \ufffd"}
    assert (
        "cut \ufffd"
        in SERVE.encode_response(ClientRequest(request=REQUEST), HEAD, StreamStyle(), [collect(events)]).decode()
    )
