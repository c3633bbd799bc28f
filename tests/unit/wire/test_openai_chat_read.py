"""Chat completions streams as servers send them, and what their complaints mean."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import collect
from callwright.errors import BackendError, WireError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
    merge_deltas,
)
from callwright.model import Usage
from callwright.wire import CLIENT_CODECS
from callwright.wire.framing import MAX_FRAME_BYTES
from tests.support.streams import places, sliced

CALL = CLIENT_CODECS["openai_chat"]


def sse(*chunks: Any, done: bool = True) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n" * done


def says(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def calls(*entries: Any, finish: str | None = None) -> dict[str, Any]:
    return says(finish, tool_calls=list(entries))


def read(data: bytes, size: int = 1_000_000) -> list[Event]:
    reader = CALL.create_reader()
    events = [event for at in range(0, len(data), size) for event in reader.feed(data[at : at + size])]
    return merge_deltas([*events, *reader.close()])


STREAMS: dict[str, tuple[bytes, list[Event]]] = {
    "text": (
        sse(says(role="assistant", content=""), says(content="He"), says(content="llo"), says("stop")),
        [TextDelta("Hello"), Finish("stop")],
    ),
    "usage after the finish": (
        sse(says("stop", content="x"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
        [TextDelta("x"), UsageSeen(Usage(3, 4)), Finish("stop")],
    ),
    "usage on every chunk": (
        sse(
            *({**says(content="x"), "usage": {"prompt_tokens": 3, "completion_tokens": n}} for n in (1, 2)),
            says("stop"),
        ),
        [TextDelta("xx"), UsageSeen(Usage(3, 2)), Finish("stop")],
    ),
    "usage with details": (
        sse(
            says("stop"),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 3,
                    "completion_tokens": 4,
                    "prompt_tokens_details": {"cached_tokens": 2},
                    "completion_tokens_details": {"reasoning_tokens": 1},
                },
            },
        ),
        [UsageSeen(Usage(3, 4, 1, 2)), Finish("stop")],
    ),
    "usage inside the choice (Moonshot)": (
        sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 1}}]}),
        [UsageSeen(Usage(1)), Finish("stop")],
    ),
    "usage is null": (sse({**says("stop"), "usage": None}), [Finish("stop")]),
    "no end marker": (sse(says("stop", content="x"), done=False), [TextDelta("x"), Finish("stop")]),
    "no last newline": (sse(says(content="x"), says("stop"), done=False)[:-2], [TextDelta("x"), Finish("stop")]),
    "no finish reason": (sse(says(content="x")), [TextDelta("x"), Finish("stop")]),
    "a prompt filter first (Azure)": (
        sse({"choices": [], "prompt_filter_results": []}, says("content_filter")),
        [Finish("content_filter")],
    ),
    "no index": (
        sse({"choices": [{"delta": {"content": "x"}, "finish_reason": "eos"}]}),
        [TextDelta("x"), Finish("stop")],
    ),
    "another choice": (sse({"choices": [{"index": 1, "delta": {"content": "no"}}]}, says("stop")), [Finish("stop")]),
    "both names of reasoning (vLLM)": (
        sse(says(reasoning="hm", reasoning_content="hm"), says("stop", content="x")),
        [ReasoningDelta("hm"), TextDelta("x"), Finish("stop")],
    ),
    "parts (Mistral)": (
        sse(
            says(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            says("model_length", content=[{"type": "text", "text": "x"}]),
        ),
        [ReasoningDelta("hm"), TextDelta("x"), Finish("length")],
    ),
    "fields of the wrong kind": (
        sse(
            {"choices": [{"delta": {"content": 5, "reasoning": {"a": 1}}}], "usage": 7}, {"choices": [{}]}, says("stop")
        ),
        [Finish("stop")],
    ),
    "parts of the wrong kind": (
        sse(says(content=[5, {"text": 7}, {"thinking": [5, {"text": ""}]}, {"text": "x"}]), says("stop")),
        [TextDelta("x"), Finish("stop")],
    ),
    "a refusal": (sse(says("stop", content=None, refusal="No.")), [TextDelta("No."), Finish("stop")]),
    "frames after the end": (sse(says("stop")) + sse(says(content="late")), [Finish("stop")]),
    "comments and CRLF": (
        b": hi\r\n\r\n" + sse(says(content="x"), says("stop")).replace(b"\n", b"\r\n"),
        [TextDelta("x"), Finish("stop")],
    ),
    "a call in pieces": (
        sse(
            calls({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
            calls({"index": 0, "function": {"arguments": '{"x":'}}),
            calls({"index": 0, "function": {"arguments": "1}"}}),
            says("tool_calls"),
        ),
        [CallStart(0, "a", "f"), CallDelta(0, '{"x":1}'), CallEnd(0), Finish("tool_calls")],
    ),
    "a call without an id, and the wrong reason": (
        sse(calls({"index": 0, "function": {"name": "f", "arguments": "{}"}}, finish="stop")),
        [CallStart(0, "", "f"), CallDelta(0, "{}"), CallEnd(0), Finish("stop")],
    ),
    "calls without a finish reason": (
        sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
        [CallStart(0, "a", "f"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")],
    ),
    "arguments as an object": (
        sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}), says("tool_calls")),
        [CallStart(0, "a", "f"), CallDelta(0, '{"x": 1}'), CallEnd(0), Finish("tool_calls")],
    ),
    "a legacy call": (
        sse(
            says(function_call={"name": "f", "arguments": ""}), says("function_call", function_call={"arguments": "{}"})
        ),
        [CallStart(0, "", "f"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")],
    ),
    "a call that was cut": (
        sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x'}}), says("length")),
        [CallStart(0, "a", "f"), CallDelta(0, '{"x'), CallEnd(0, complete=False), Finish("length")],
    ),
    "the whole answer": (
        json.dumps(
            {
                "object": "chat.completion",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "role": "assistant",
                            "content": "x",
                            "reasoning_content": "hm",
                            "tool_calls": [
                                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                            ],
                        },
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            },
            indent=1,
        ).encode(),
        [
            ReasoningDelta("hm"),
            TextDelta("x"),
            CallStart(0, "a", "f"),
            CallDelta(0, "{}"),
            CallStart(1, "b", "f"),
            CallDelta(1, "{}"),
            CallEnd(0),
            CallEnd(1),
            UsageSeen(Usage(1, 2)),
            Finish("tool_calls"),
        ],
    ),
}


@pytest.mark.parametrize(("data", "events"), STREAMS.values(), ids=STREAMS.keys())
@pytest.mark.parametrize("size", [1, 5, 1_000_000])
def test_a_servers_stream_is_read(data: bytes, events: list[Event], size: int) -> None:
    assert read(data, size) == events


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary"])
def test_reasoning_is_read_from_any_field(field: str) -> None:
    assert read(sse(says(**{field: "hm"}), says("stop"))) == [ReasoningDelta("hm"), Finish("stop")]


@pytest.mark.parametrize(
    ("word", "reason"),
    [("stop", "stop"), ("max_tokens", "length"), ("refusal", "content_filter"), ("error", "error"), ("what", "stop")],
)
def test_finish_reasons_are_mapped(word: str, reason: str) -> None:
    assert read(sse(says(word))) == [Finish(reason)]


def test_content_is_out_as_soon_as_it_is_in() -> None:
    reader = CALL.create_reader()
    assert reader.feed(sse(says(content="x"), done=False)) == [TextDelta("x")]
    started = reader.feed(sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}), done=False))
    assert started == [CallStart(0, "a", "f"), CallDelta(0, "{")]


def test_calls_that_interleave_are_told_apart() -> None:
    entries = [{"index": n, "id": f"id{n}", "function": {"name": "f", "arguments": '{"x":'}} for n in (0, 1)]
    more = [{"index": n, "function": {"arguments": f"{n}}}"}} for n in (1, 0)]
    turn = collect(read(sse(*map(calls, entries), *map(calls, more), says("tool_calls"))))
    assert [(call.id, call.arguments) for call in turn.tool_calls] == [("id0", '{"x":0}'), ("id1", '{"x":1}')]


# ── streams that fail ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("data", [b"", b"\n", b": hi\n\n", sse(says(content="x"), done=False)])
def test_a_stream_that_ends_before_its_turn_is_the_backends_fault(data: bytes) -> None:
    with pytest.raises(BackendError, match="before the end of the turn") as caught:
        read(data)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "data",
    [b"data: hello\n\n", b"data: []\n\n", b'data: {"choices":5}\n\n', b'data: {"choices":[{"delta":7}]}\n\n', b"{"],
)
def test_garbage_is_named(data: bytes) -> None:
    with pytest.raises(WireError, match="sent an invalid chunk"):
        read(data)


def test_an_answer_in_one_piece_has_a_limit() -> None:
    reader = CALL.create_reader()
    reader.feed(b"{")
    with pytest.raises(WireError, match="longer than"):
        reader.feed(b" " * MAX_FRAME_BYTES)


ERRORS: dict[str, tuple[bytes, str, str, str]] = {
    "OpenAI": (sse({"error": {"message": "boom", "type": "server_error"}}), "boom", "unavailable", ""),
    "a text": (sse({"error": "boom"}), "boom", "unavailable", ""),
    "beside choices (OpenRouter)": (
        sse({**says("error"), "error": {"code": 429, "message": "slow down"}}),
        "slow down",
        "rate_limit",
        "",
    ),
    "Groq": (
        b"event: error\n"
        + sse(
            {
                "error": {
                    "message": "Failed to call a function.",
                    "type": "invalid_request_error",
                    "code": "tool_use_failed",
                    "failed_generation": '<function=f>{"a":1}</function>',
                    "status_code": 400,
                }
            }
        ),
        "Failed to call a function.",
        "refused",
        '<function=f>{"a":1}</function>',
    ),
    "llama.cpp": (
        sse(
            {
                "error": {
                    "code": 500,
                    "message": "Failed to parse input at pos 12: <tool_call>\n{}",
                    "type": "server_error",
                }
            }
        ),
        "Failed to parse",
        "unavailable",
        "<tool_call>\n{}",
    ),
    "llama.cpp, older": (
        b'error: {"code":500,"message":"Failed to parse input at pos 0: x","type":"server_error"}\n\n',
        "Failed to parse",
        "unavailable",
        "x",
    ),
    "an event of text": (b"event: error\ndata: boom\n\n", "boom", "unavailable", ""),
    "as the whole answer": (b'{"error": {"message": "boom"}}', "boom", "unavailable", ""),
}


@pytest.mark.parametrize(("data", "message", "kind", "salvage"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_in_the_stream_is_raised(data: bytes, message: str, kind: str, salvage: str) -> None:
    with pytest.raises(BackendError) as caught:
        read(sse(says(content="x"), done=False) * (data[:1] != b"{") + data)
    assert message in str(caught.value)
    assert (caught.value.kind, caught.value.salvage) == (kind, salvage)


REFUSALS: dict[str, tuple[int, Any, str, str, bool]] = {
    "auth": (401, {"error": {"message": "bad key"}}, "the backend answered 401: bad key", "auth", False),
    "forbidden": (403, {"detail": "no"}, "the backend answered 403: no", "auth", False),
    "timeout": (408, {"message": "late"}, "the backend answered 408: late", "timeout", True),
    "rate": (429, {"error": {"message": "slow", "code": "x"}}, "the backend answered 429: slow", "rate_limit", True),
    "busy": (
        503,
        {"error": {"message": "Loading model"}},
        "the backend answered 503: Loading model",
        "overloaded",
        True,
    ),
    "gateway": (502, None, "the backend answered 502: no reason was given", "unavailable", True),
    "not found": (
        404,
        {"error": "model 'x' not found"},
        "the backend answered 404: model 'x' not found",
        "refused",
        False,
    ),
    "validation": (422, {"detail": [{"loc": ["n"], "msg": "too big"}]}, "answered 422: too big", "refused", False),
    "moved": (302, None, "answered 302", "unavailable", False),
}


@pytest.mark.parametrize(("status", "body", "message", "kind", "again"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_says_what_failed_and_whether_to_try_again(
    status: int, body: Any, message: str, kind: str, again: bool
) -> None:
    error = CALL.parse_error(status, b"" if body is None else json.dumps(body).encode())
    assert message in str(error)
    assert (error.status, error.kind, error.retryable) == (status, kind, again)


@pytest.mark.parametrize(
    ("status", "body", "salvage"),
    [
        (
            400,
            {"error": {"message": "See 'failed_generation'", "failed_generation": "ping{}</function>"}},
            "ping{}</function>",
        ),
        (500, {"error": {"code": 500, "message": "Failed to parse input at pos 184: a: b\nc"}}, "a: b\nc"),
        (
            500,
            {"error": {"message": "error parsing tool call: raw='it's {\n}', err=invalid character 'i'"}},
            "it's {\n}",
        ),
        (500, {"error": "error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input"}, '{"a":'),
        (500, {"error": {"message": "boom"}}, ""),
    ],
)
def test_the_models_output_is_saved_from_a_refusal(status: int, body: Any, salvage: str) -> None:
    assert CALL.parse_error(status, json.dumps(body).encode()).salvage == salvage


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b'{"error":{"code":7}}', '{"error":{"code":7}}'),
        (b'{"error":' * 2000, '{"error":{"error":'),
        (b" ", "no reason was given"),
    ],
)
def test_a_refusal_without_a_message_shows_what_came(body: bytes, message: str) -> None:
    assert str(CALL.parse_error(502, body)).startswith(f"the backend answered 502: {message}")


def test_a_long_refusal_is_shown_in_part_and_saved_whole() -> None:
    error = CALL.parse_error(
        500, json.dumps({"error": {"message": "Failed to parse input at pos 1: " + "x" * 9000}}).encode()
    )
    assert len(str(error)) < 2100
    assert error.salvage == "x" * 9000


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────

KEYS = (
    "choices index delta message content finish_reason usage error tool_calls function name arguments id "
    "reasoning thinking text prompt_tokens prompt_tokens_details cached_tokens status"
)
keys = st.sampled_from(KEYS.split())
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(
    st.lists(values | st.builds(lambda delta: {"choices": [{"delta": delta}]}, st.dictionaries(keys, values))), places
)
def test_any_json_is_read_or_refused(chunks: list[Any], cuts: list[int]) -> None:
    reader = CALL.create_reader()
    with contextlib.suppress(BackendError, WireError):
        for piece in sliced(sse(*chunks), cuts):
            reader.feed(piece)
        reader.close()


@given(st.integers(100, 599), values.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50))
def test_any_refusal_has_a_message(status: int, body: bytes) -> None:
    error = CALL.parse_error(status, body)
    assert str(error)
    assert error.status == status
