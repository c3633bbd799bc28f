"""Ollama's lines: what a turn says survives them, however they are cut, and clients can always tell that it is over."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx
import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import collect
from callwright.errors import BackendError, WireError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Request, Usage
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamStyle
from callwright.wire.ollama import (
    OLLAMA_CHAT_CODEC,
    OLLAMA_GENERATE_CODEC,
    THINKING_UNSUPPORTED,
    TOOLS_UNSUPPORTED,
    OllamaClientCodec,
)
from tests.support.streams import Said, places, said, sliced, turns

CALLED = OllamaClientCodec()
ASK = ClientRequest(request=Request("m", ()), stream=True)
HEAD = ResponseHead("abc", 1_700_000_000, "some-model")
BROKEN = ErrorResponse(status=502, message="the server went away", fault="backend")
PLAIN = StreamStyle()
SERVED = {"chat": OLLAMA_CHAT_CODEC, "generate": OLLAMA_GENERATE_CODEC}


def stream(
    events: list[Event], cuts: list[int] = (), style: StreamStyle = PLAIN, ending: str = "end", path: str = "chat"
) -> bytes:
    encoder = SERVED[path].create_encoder(ASK, HEAD, style)
    out = encoder.begin_stream() + b"".join(encoder.encode_events(part) for part in sliced(events, cuts))
    out += encoder.end_stream("a remark") if ending == "end" else encoder.fail_stream(BROKEN)
    assert not encoder.has_pending
    late = [
        encoder.encode_events(events),
        encoder.flush(),
        encoder.encode_heartbeat(),
        encoder.fail_stream(BROKEN),
        encoder.end_stream(),
    ]
    assert late == [b""] * 5, "something was sent after the end"
    return out


def lines(data: bytes) -> list[dict[str, Any]]:
    """The lines of a stream, checked: one object in each, and only the last is done."""
    assert data.endswith(b"\n")
    found = [json.loads(line) for line in data.decode().splitlines()]
    done = [line["done"] for line in found if "error" not in line]
    assert done == [False] * (len(done) - 1) + [True]
    assert "error" not in found[-1]
    return found


def read(data: bytes, cuts: list[int] = ()) -> list[Event]:
    reader = CALLED.create_reader()
    events = [event for part in sliced(data, cuts) for event in reader.feed(part)]
    return events + reader.close()


def essence(events: list[Event]) -> Said:
    """What this API can carry of a turn: whole calls, two counts, two reasons to stop."""
    calls = collect(events).tool_calls
    cut = {index for index, call in enumerate(calls) if not call.complete}
    turn = said(event for event in events if getattr(event, "index", -1) not in cut)
    outline = [
        CallDelta(event.index, json.dumps(json.loads(event.text))) if isinstance(event, CallDelta) else event
        for event in turn.outline
    ]
    usage = turn.usage or Usage()
    finish = "length" if turn.finish == "length" else "tool_calls" if turn.calls else "stop"
    return Said(outline, (), finish, Usage(usage.prompt_tokens, usage.completion_tokens))


@given(turns(), places, places)
def test_a_turn_comes_back_whatever_the_cuts(events: list[Event], batches: list[int], cuts: list[int]) -> None:
    assert essence(read(stream(events, batches), cuts)) == essence(events)


@given(turns(), places, st.sampled_from(["end", "fail"]), st.integers(0, 100), st.sampled_from(["chat", "generate"]))
def test_the_end_comes_once_and_last_whatever_came_before(
    events: list[Event], batches: list[int], ending: str, kept: int, path: str
) -> None:
    some = events[: kept % (len(events) + 1)]
    sent = lines(stream(some, batches, ending=ending, path=path))
    finished = ending == "end" and bool(some) and isinstance(some[-1], Finish)
    assert sum("error" in line for line in sent) == (not finished)
    if not finished:
        assert "error" in sent[-2]
        assert sent[-1]["done_reason"] == "error"


def added(sent: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer that the lines add up to."""
    *parts, last = sent
    text = {"content": "", "thinking": ""}
    calls: list[Any] = []
    for part in parts:
        for field in text:
            text[field] += part["message"].get(field, "")
        calls += part["message"].get("tool_calls", [])
    message = {"role": "assistant", "content": text["content"]}
    message |= {"thinking": text["thinking"]} if text["thinking"] else {}
    return {**last, "message": message | ({"tool_calls": calls} if calls else {})}


@given(turns(), places)
def test_the_stream_adds_up_to_the_whole(events: list[Event], batches: list[int]) -> None:
    whole = json.loads(OLLAMA_CHAT_CODEC.encode_response(ASK, HEAD, PLAIN, [collect(events)]))
    assert added(lines(stream(events, batches))) == whole


@given(turns(), places)
def test_generate_says_the_same_words(events: list[Event], batches: list[int]) -> None:
    turn = collect(events)
    whole = json.loads(OLLAMA_GENERATE_CODEC.encode_response(ASK, HEAD, PLAIN, [turn]))
    sent = lines(stream(events, batches, path="generate"))
    assert "".join(line["response"] for line in sent) == whole["response"] == turn.text
    assert "".join(line.get("thinking", "") for line in sent) == whole.get("thinking", "") == turn.reasoning
    assert not [line for line in sent if "message" in line]


def test_lines_look_like_ollamas() -> None:
    call = [CallStart(0, "c1", "ping"), CallDelta(0, '{\n "n": 1.10}'), CallEnd(0)]
    events = [ReasoningDelta("hm"), TextDelta("Hi"), *call, UsageSeen(Usage(7, 3)), Finish("tool_calls")]
    top = {"model": "some-model", "created_at": "2023-11-14T22:13:20Z"}
    function = {"index": 0, "name": "ping", "arguments": {"n": 1.1}}
    counts = {"total_duration": 0, "load_duration": 0, "prompt_eval_count": 7, "prompt_eval_duration": 0,
              "eval_count": 3, "eval_duration": 0}  # fmt: skip
    said_ = [
        {"role": "assistant", "content": "", "thinking": "hm"},
        {"role": "assistant", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": function}]},
    ]
    assert lines(stream(events)) == [
        *({**top, "message": message, "done": False} for message in said_),
        {**top, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", **counts},
    ]
    assert b'"arguments":{  "n": 1.10}' in stream(events), "numbers stay as they were written"


def test_a_cut_call_does_not_go_out() -> None:
    events = [TextDelta("Hi"), CallStart(0, "c", "ping"), CallDelta(0, '{"a":'), CallEnd(0, False), Finish("length")]
    assert "ping" not in str(lines(stream(events)))
    assert b"ping" not in OLLAMA_CHAT_CODEC.encode_response(ASK, HEAD, PLAIN, [collect(events)])
    assert lines(stream(events))[-1]["done_reason"] == "length"


def test_reasoning_is_left_out_where_the_client_wants_none() -> None:
    events = [ReasoningDelta("hm"), TextDelta("Hi"), Finish("stop")]
    assert b"hm" not in stream(events, style=StreamStyle(reasoning_fields=()))
    assert b"hm" not in OLLAMA_CHAT_CODEC.encode_response(
        ASK, HEAD, StreamStyle(reasoning_fields=()), [collect(events)]
    )


def test_an_idle_stream_is_kept_alive_only_for_clients_that_count_lines() -> None:
    for heartbeat, count in (("comment", 0), ("event", 1), ("none", 0)):
        encoder = OLLAMA_CHAT_CODEC.create_encoder(ASK, HEAD, StreamStyle(heartbeat=heartbeat))
        assert encoder.encode_heartbeat().count(b'"message":{"role":"assistant","content":""},"done":false}\n') == count


def test_held_text_goes_out_when_asked_for() -> None:
    encoder = OLLAMA_CHAT_CODEC.create_encoder(ASK, HEAD, PLAIN)
    encoder.encode_events([TextDelta("Hello"), TextDelta("a")])
    assert encoder.has_pending
    assert b'"content":"a"' in encoder.flush()
    assert not encoder.has_pending


def test_errors_are_one_text() -> None:
    assert json.loads(OLLAMA_CHAT_CODEC.encode_error(BROKEN)) == {"error": "The backend failed: the server went away"}


# ── the real SDK ─────────────────────────────────────────────────────────────────────────────────────


class Sdk:
    """Ollama's client, answered with whatever bytes are set."""

    def __init__(self) -> None:
        self.answer = httpx.Response(200)
        self.client = ollama.Client("http://gateway")
        self.client._client = httpx.Client(
            transport=httpx.MockTransport(lambda _: self.answer), base_url="http://gateway"
        )

    def __call__(self, content: bytes, status: int = 200) -> ollama.Client:
        self.answer = httpx.Response(status, content=content)
        return self.client


sdk = Sdk()


@given(turns(), places)
def test_the_sdk_reads_the_stream_as_the_whole(events: list[Event], batches: list[int]) -> None:
    parts = list(sdk(stream(events, batches)).chat("m", [], stream=True))
    whole = sdk(OLLAMA_CHAT_CODEC.encode_response(ASK, HEAD, PLAIN, [collect(events)])).chat("m", [])
    assert "".join(part.message.content or "" for part in parts) == (whole.message.content or "")
    assert "".join(part.message.thinking or "" for part in parts) == (whole.message.thinking or "")
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    assert calls == list(whole.message.tool_calls or ())
    assert parts[-1].model_dump(exclude={"message"}) == whole.model_dump(exclude={"message"})


@pytest.mark.parametrize("some", [[], [TextDelta("Hi")], [CallStart(0, "c", "ping"), CallDelta(0, '{"a":')]])
@pytest.mark.parametrize("path", ["chat", "generate"])
def test_the_sdk_raises_when_a_turn_fails(some: list[Event], path: str) -> None:
    client = sdk(stream(some, ending="fail", path=path))
    reading = client.chat("m", [], stream=True) if path == "chat" else client.generate("m", "x", stream=True)
    with pytest.raises(ollama.ResponseError, match="the server went away"):
        list(reading)


def test_the_sdk_reads_what_is_generated() -> None:
    events = [ReasoningDelta("hm"), TextDelta("Hi"), Finish("stop")]
    parts = list(sdk(stream(events, path="generate")).generate("m", "x", stream=True))
    assert "".join(part.response for part in parts) == "Hi"
    assert parts[-1].done_reason == "stop"


def test_the_sdk_knows_our_errors() -> None:
    with pytest.raises(ollama.ResponseError, match="slow down") as caught:
        sdk(OLLAMA_CHAT_CODEC.encode_error(ErrorResponse(status=429, message="slow down", fault="gateway")), 429).chat(
            "m", []
        )
    assert caught.value.status_code == 429


# ── reading a server ─────────────────────────────────────────────────────────────────────────────────


def sent(*entries: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"model": "m", "created_at": "t", **entry}).encode() + b"\n" for entry in entries)


def spoke(**fields: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", **fields}, "done": False}


DONE = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "eval_count": 3}


def test_calls_are_told_apart_though_all_have_one_index() -> None:
    def call(path: str) -> dict[str, Any]:
        return {"function": {"index": 0, "name": "read", "arguments": {"path": path}}}

    turn = collect(
        read(sent(spoke(content="", tool_calls=[call("a"), call("b")]), spoke(tool_calls=[call("c")]), DONE))
    )
    assert [json.loads(call.arguments)["path"] for call in turn.tool_calls] == ["a", "b", "c"]
    assert turn.finish_reason == "tool_calls"
    assert turn.usage == Usage(0, 3)


def test_a_call_keeps_its_id_and_may_have_none() -> None:
    named = {"id": "call_7", "function": {"name": "a", "arguments": {}}}
    bare = {"function": {"name": "b"}}
    starts = [event for event in read(sent(spoke(tool_calls=[named, bare]), DONE)) if isinstance(event, CallStart)]
    assert starts == [CallStart(0, "call_7", "a"), CallStart(1, "", "b")]


def test_an_answer_that_is_not_streamed_is_one_line() -> None:
    answer = json.dumps({**DONE, "message": {"role": "assistant", "content": "Hi", "thinking": "hm"}}).encode()
    assert read(answer) == [ReasoningDelta("hm"), TextDelta("Hi"), UsageSeen(Usage(0, 3)), Finish("stop")]


@pytest.mark.parametrize(("reason", "want"), [("stop", "stop"), ("length", "length"), ("load", "stop"), (None, "stop")])
def test_reasons(reason: str | None, want: str) -> None:
    assert read(sent({**DONE, "done_reason": reason}))[-1] == Finish(want)


def test_a_stream_that_breaks_off_is_an_error() -> None:
    for data in (b"", sent(spoke(content="Hi"))):
        with pytest.raises(BackendError, match="before it sent done"):
            read(data)


def test_what_comes_after_the_end_is_dropped() -> None:
    assert read(sent(DONE, {"error": "late"}))[-1] == Finish("stop")


def test_an_error_in_the_stream_is_raised() -> None:
    with pytest.raises(BackendError, match="unexpected EOF") as caught:
        read(sent(spoke(content="Hi"), {"error": "unexpected EOF"}))
    assert caught.value.retryable


@pytest.mark.parametrize("data", [b"nonsense\n", b"[1]\n", b'{"message": 3}\n', b'"\xff"\n'])
def test_garbage_is_a_wire_error(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


@given(st.binary(max_size=200), places)
def test_no_bytes_make_the_reader_raise_anything_else(data: bytes, cuts: list[int]) -> None:
    with suppress(BackendError, WireError):
        read(data, cuts)


RAW = """{"path": "it's.py", "content": "a\nb\"]"""


@pytest.mark.parametrize("status", [500, 0])
def test_what_the_model_wrote_is_saved_from_an_error_about_it(status: int) -> None:
    message = f"error parsing tool call: raw='{RAW}', err=invalid character ']' after object key:value pair"
    body = json.dumps({"error": message}).encode()
    if status:
        assert CALLED.parse_error(status, body).salvage == RAW
    else:
        with pytest.raises(BackendError) as caught:
            read(body + b"\n")
        assert caught.value.salvage == RAW


@pytest.mark.parametrize("phrase", [TOOLS_UNSUPPORTED, THINKING_UNSUPPORTED])
def test_a_refusal_of_tools_or_thinking_can_be_told(phrase: str) -> None:
    error = CALLED.parse_error(400, json.dumps({"error": f'"gemma3:1b" {phrase}'}).encode())
    assert error.kind == "refused"
    assert not error.retryable
    assert phrase in str(error)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(401, "auth", False), (404, "refused", False), (429, "rate_limit", True), (503, "overloaded", True)],
)
def test_refusals(status: int, kind: str, retryable: bool) -> None:
    error = CALLED.parse_error(status, b'{"error":"model not found, try pulling it first"}')
    assert (error.kind, error.retryable) == (kind, retryable)
    assert "pulling" in str(error)
