"""Anthropic's stream: what a turn says survives it, however it is cut, and clients can always tell that it is over."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callwright import collect
from callwright.errors import BackendError, WireError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Request, Usage
from callwright.wire.anthropic import AnthropicClientCodec, AnthropicServerCodec
from callwright.wire.anthropic.decode import GATEWAY_SIGNATURE
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamStyle
from callwright.wire.framing import SseReader
from tests.support.streams import Said, places, said, sliced, turns

SERVED, CALLED = AnthropicServerCodec(), AnthropicClientCodec()
ASK = ClientRequest(request=Request("m", ()), stream=True)
HEAD = ResponseHead("abc", 1_700_000_000, "some-model")
BROKEN = ErrorResponse(status=502, message="the server went away", fault="backend", kind="server_error")
PLAIN = StreamStyle()
LEGAL = {
    "message_start": {"content_block_start", "message_delta", "error", "ping"},
    "content_block_start": {"content_block_delta", "content_block_stop", "error"},
    "content_block_delta": {"content_block_delta", "content_block_stop", "error"},
    "content_block_stop": {"content_block_start", "message_delta", "error"},
    "message_delta": {"message_stop"},
    "error": {"message_stop"},
    "message_stop": set(),
}


def stream(events: list[Event], cuts: list[int] = (), style: StreamStyle = PLAIN, ending: str = "end") -> bytes:
    encoder = SERVED.create_encoder(ASK, HEAD, style)
    out = encoder.begin_stream() + b"".join(encoder.encode_events(part) for part in sliced(events, cuts))
    out += encoder.end_stream() if ending == "end" else encoder.fail_stream(BROKEN)
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


def frames(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream, checked: names stand in both places, blocks are numbered, the order is legal."""
    reader = SseReader()
    found = [(name.decode(), json.loads(body)) for name, body in reader.feed(data) + reader.close()]
    assert all(name == body["type"] for name, body in found)
    kinds = [name for name, _ in found]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert all(after in LEGAL[before] for before, after in pairwise(kinds))
    starts = [body["index"] for name, body in found if name == "content_block_start"]
    assert starts == list(range(len(starts)))
    return [body for _, body in found]


def read(data: bytes, cuts: list[int] = ()) -> list[Event]:
    reader = CALLED.create_reader()
    events = [event for part in sliced(data, cuts) for event in reader.feed(part)]
    return events + reader.close()


def counted(usage: Usage | None) -> Usage | None:
    """Nothing counted and all zeros are the same here, and the cached are never more than all."""
    usage = usage or Usage()
    cached = usage.cached_tokens
    return Usage(max(usage.prompt_tokens, cached), usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens)


def essence(events: list[Event]) -> Said:
    whole = said(events)
    return Said(whole.outline, whole.calls, whole.finish, counted(whole.usage))


@given(turns(), places, places)
@example([CallStart(0, "c", "ping"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")], [], [])
def test_a_turn_comes_back_whatever_the_cuts(events: list[Event], batches: list[int], cuts: list[int]) -> None:
    assert essence(read(stream(events, batches), cuts)) == essence(events)


@given(
    turns(), places, st.sampled_from(["end", "fail"]), st.integers(0, 100), st.sampled_from(["generated", "whole", 3])
)
def test_the_end_comes_once_and_last_whatever_came_before(
    events: list[Event], batches: list[int], ending: str, kept: int, arguments: Any
) -> None:
    some = events[: kept % (len(events) + 1)]
    sent = frames(stream(some, batches, StreamStyle(arguments=arguments), ending))
    kinds = [frame["type"] for frame in sent]
    finished = ending == "end" and bool(some) and isinstance(some[-1], Finish)
    assert kinds.count("message_stop") == 1
    assert kinds.count("message_delta") == finished
    assert kinds.count("error") == (not finished)


def message_of(sent: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a stream adds up to."""
    message = sent[0]["message"]
    buffers: list[str] = []
    for frame in sent[1:]:
        match frame["type"]:
            case "content_block_start":
                message["content"].append(frame["content_block"])
                buffers.append("")
            case "content_block_delta":
                delta, block = frame["delta"], message["content"][frame["index"]]
                kind = delta.pop("type")
                if kind == "input_json_delta":
                    buffers[frame["index"]] += delta["partial_json"]
                else:
                    field = kind.removesuffix("_delta")
                    block[field] += delta[field]
            case "message_delta":
                message |= frame["delta"]
                message["usage"] = frame["usage"]
    for block, buffer in zip(message["content"], buffers, strict=True):
        if block["type"] == "tool_use":
            block["input"] = json.loads(buffer)
    return message


def folded(message: dict[str, Any]) -> dict[str, Any]:
    """The same with the runs of text joined: an answer in one piece has one of each."""
    blocks = message.pop("content")
    for kind in ("text", "thinking"):
        message[kind] = "".join(block[kind] for block in blocks if block["type"] == kind)
    message["calls"] = [block for block in blocks if block["type"] == "tool_use"]
    message["signatures"] = {block["signature"] for block in blocks if block["type"] == "thinking"}
    return message


@given(turns(truncated=False), places, st.sampled_from(["generated", "whole", 1, 7]))
def test_the_stream_adds_up_to_the_whole(events: list[Event], batches: list[int], arguments: Any) -> None:
    style = StreamStyle(arguments=arguments)
    whole = json.loads(SERVED.encode_response(ASK, HEAD, style, [collect(events)]))
    assert folded(message_of(frames(stream(events, batches, style)))) == folded(whole)


def test_a_cut_call_is_not_in_the_whole() -> None:
    events = [TextDelta("Hi"), CallStart(0, "c", "ping"), CallDelta(0, '{"a":'), CallEnd(0, False), Finish("length")]
    whole = json.loads(SERVED.encode_response(ASK, HEAD, StreamStyle(), [collect(events)]))
    assert [block["type"] for block in whole["content"]] == ["text"]
    assert whole["stop_reason"] == "max_tokens"
    assert frames(stream(events))[-2]["delta"]["stop_reason"] == "max_tokens"


def test_arguments_come_in_the_pieces_that_a_client_wants() -> None:
    events = [CallStart(0, "c", "ping"), CallDelta(0, '{"a"'), CallDelta(0, ":12}"), CallEnd(0), Finish("tool_calls")]
    pieces = {
        style: [
            frame["delta"]["partial_json"]
            for frame in frames(stream(events, style=StreamStyle(arguments=style)))
            if frame["type"] == "content_block_delta"
        ]
        for style in ("generated", "whole", 3)
    }
    assert pieces == {"generated": ['{"a"', ":12}"], "whole": ['{"a":12}'], 3: ['{"a', '":1', "2}"]}


def test_reasoning_is_left_out_where_the_client_wants_none() -> None:
    events = [ReasoningDelta("hm"), TextDelta("Hi"), Finish("stop")]
    style = StreamStyle(reasoning_fields=())
    assert "thinking" not in str(frames(stream(events, style=style)))
    assert b"thinking" not in SERVED.encode_response(ASK, HEAD, style, [collect(events)])


def test_an_idle_stream_is_kept_alive_with_pings() -> None:
    for heartbeat, count in (("comment", 1), ("event", 1), ("none", 0)):
        encoder = SERVED.create_encoder(ASK, HEAD, StreamStyle(heartbeat=heartbeat))
        assert encoder.encode_heartbeat().count(b'event: ping\ndata: {"type":"ping"}\n\n') == count


def test_a_remark_stands_before_the_end() -> None:
    encoder = SERVED.create_encoder(ASK, HEAD, StreamStyle())
    assert b": calls=1\n\nevent: message_stop" in encoder.encode_events([Finish("stop")]) + encoder.end_stream(
        "calls=1"
    )


def test_held_text_goes_out_when_asked_for() -> None:
    encoder = SERVED.create_encoder(ASK, HEAD, StreamStyle())
    encoder.encode_events([TextDelta("Hello"), TextDelta("a")])
    assert encoder.has_pending
    assert b'"text":"a"' in encoder.flush()
    assert not encoder.has_pending


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")],
)
def test_stop_reasons(reason: Any, stop_reason: str) -> None:
    assert frames(stream([Finish(reason)]))[-2]["delta"] == {"stop_reason": stop_reason, "stop_sequence": None}


def test_a_turn_that_finishes_on_an_error_is_a_failure() -> None:
    assert [frame["type"] for frame in frames(stream([Finish("error")]))][-2:] == ["error", "message_stop"]


def test_a_half_call_stays_open_when_the_turn_fails() -> None:
    some = [TextDelta("Hi"), CallStart(0, "c", "ping"), CallDelta(0, '{"a":')]
    kinds = [frame["type"] for frame in frames(stream(some, ending="fail"))]
    assert kinds[-4:] == ["content_block_start", "content_block_delta", "error", "message_stop"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_have_this_apis_types(status: int, kind: str) -> None:
    body = json.loads(SERVED.encode_error(ErrorResponse(status=status, message="so it is", fault="client")))
    assert body["type"] == "error"
    assert body["error"]["type"] == kind
    assert body["error"]["message"].endswith("so it is")


# ── the real SDK ─────────────────────────────────────────────────────────────────────────────────────


class Sdk:
    """Anthropic's client, answered with whatever bytes are set."""

    def __init__(self) -> None:
        self.answer = httpx2.Response(200)
        client = httpx2.Client(transport=httpx2.MockTransport(lambda _: self.answer))
        self.client = anthropic.Anthropic(api_key="k", base_url="http://gateway", http_client=client, max_retries=0)

    def __call__(self, content: bytes, status: int = 200, content_type: str = "text/event-stream") -> Any:
        self.answer = httpx2.Response(status, headers={"content-type": content_type}, content=content)
        return self.client.messages


sdk = Sdk()
ASKED: dict[str, Any] = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}


@given(turns(truncated=False), places)
def test_the_sdk_reads_the_stream_as_the_whole(events: list[Event], batches: list[int]) -> None:
    with sdk(stream(events, batches)).stream(**ASKED) as reading:
        streamed = reading.get_final_message().to_dict(exclude_none=True)
    whole = sdk(SERVED.encode_response(ASK, HEAD, StreamStyle(), [collect(events)]), content_type="application/json")
    assert folded(streamed) == folded(whole.create(**ASKED).to_dict(exclude_none=True))


@pytest.mark.parametrize(
    "some", [[], [TextDelta("Hi")], [ReasoningDelta("hm")], [CallStart(0, "c", "ping"), CallDelta(0, '{"a":')]]
)
def test_the_sdk_raises_when_a_turn_fails(some: list[Event]) -> None:
    with (
        pytest.raises(anthropic.APIStatusError, match="the server went away"),
        sdk(stream(some, ending="fail")).stream(**ASKED) as reading,
    ):
        reading.get_final_message()


def test_the_sdk_knows_our_errors() -> None:
    body = SERVED.encode_error(ErrorResponse(status=429, message="slow down", fault="gateway"))
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        sdk(body, 429, "application/json").create(**ASKED)


def test_the_sdk_gives_thinking_back_with_our_signature() -> None:
    with sdk(stream([ReasoningDelta("hm"), TextDelta("Hi"), Finish("stop")])).stream(**ASKED) as reading:
        block = reading.get_final_message().content[0]
    assert (block.thinking, block.signature) == ("hm", GATEWAY_SIGNATURE)


# ── reading a server ─────────────────────────────────────────────────────────────────────────────────


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


START = {
    "type": "message_start",
    "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude",
                "stop_reason": None, "usage": {"input_tokens": 10, "cache_read_input_tokens": 90,
                                               "cache_creation_input_tokens": 5, "output_tokens": 1}},
}  # fmt: skip
TOOL = {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_1",
                                                                     "name": "ping", "input": {}}}  # fmt: skip
STOP = {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 7}}  # fmt: skip
END = {"type": "message_stop"}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    empty = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}}
    events = read(sse(START, TOOL, empty, {"type": "content_block_stop", "index": 1}, STOP, END))
    assert events == [
        CallStart(0, "toolu_1", "ping"),
        CallDelta(0, "{}"),
        CallEnd(0),
        UsageSeen(Usage(105, 7, 0, 90)),
        Finish("tool_calls"),
    ]


def test_arguments_that_stand_in_the_start_of_a_block_count() -> None:
    start = json.loads(json.dumps(TOOL))
    start["content_block"]["input"] = {"a": 1}
    turn = collect(read(sse(START, start, {"type": "content_block_stop", "index": 1}, STOP, END)))
    assert json.loads(turn.tool_calls[0].arguments) == {"a": 1}


def test_tools_that_the_server_runs_are_passed_over() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    query = {"type": "input_json_delta", "partial_json": '{"query":"x"}'}
    events = read(
        sse(
            START,
            {"type": "content_block_start", "index": 0, "content_block": search},
            {"type": "content_block_delta", "index": 0, "delta": query},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "web_search_tool_result"}},
            {"type": "content_block_stop", "index": 1},
            {**STOP, "delta": {"stop_reason": "end_turn"}},
            END,
        )
    )
    assert [type(event) for event in events] == [UsageSeen, Finish]


def test_events_without_meaning_for_the_turn_are_passed_over() -> None:
    odd = [{"type": "ping"}, {"type": "something_new", "index": 3}, {"type": "content_block_stop", "index": 9}]
    assert [type(event) for event in read(sse(START, *odd, STOP, END))] == [UsageSeen, Finish]


def test_an_answer_without_end_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.wire.anthropic.read.MAX_FRAME_BYTES", 100)
    with pytest.raises(WireError, match="longer than 100"):
        read(b'{"type": "message"' + b" " * 100)


def test_a_call_cut_by_the_limit_is_not_whole() -> None:
    half = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":"x'}}
    stop = {**STOP, "delta": {"stop_reason": "max_tokens"}}
    turn = collect(read(sse(START, TOOL, half, {"type": "content_block_stop", "index": 1}, stop, END)))
    assert not turn.tool_calls[0].complete
    assert turn.finish_reason == "length"
    unstopped = collect(read(sse(START, TOOL, half, stop, END)))
    assert unstopped.tool_calls == turn.tool_calls


@pytest.mark.parametrize(
    ("kind", "fault", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate_limit", True),
        ("api_error", "unavailable", True),
        ("timeout_error", "timeout", True),
        ("authentication_error", "auth", False),
        ("invalid_request_error", "refused", False),
        ("something_new", "unavailable", True),
    ],
)
def test_an_error_in_the_stream_is_raised(kind: str, fault: str, retryable: bool) -> None:
    with pytest.raises(BackendError, match="Overloaded") as caught:
        read(sse(START, {"type": "error", "error": {"type": kind, "message": "Overloaded"}}))
    assert (caught.value.kind, caught.value.retryable) == (fault, retryable)


def test_a_stream_that_breaks_off_is_an_error() -> None:
    with pytest.raises(BackendError, match="before the end"):
        read(sse(START, TOOL))
    with pytest.raises(BackendError, match="before the end"):
        read(b"")


def test_a_stream_that_only_lacks_its_last_event_is_over() -> None:
    assert read(sse(START, STOP))[-1] == Finish("tool_calls")


def test_what_comes_after_the_end_is_dropped() -> None:
    assert read(sse(START, STOP, END, {"type": "error", "error": {"type": "api_error", "message": "late"}}))


@given(places)
def test_an_answer_that_is_not_streamed_is_read_too(cuts: list[int]) -> None:
    events = [ReasoningDelta("hm"), TextDelta("Hi"), CallStart(0, "c", "ping"), CallDelta(0, '{"a": 1}'), CallEnd(0),
              UsageSeen(Usage(10, 5, 2, 3)), Finish("tool_calls")]  # fmt: skip
    assert essence(read(SERVED.encode_response(ASK, HEAD, StreamStyle(), [collect(events)]), cuts)) == essence(events)


@pytest.mark.parametrize("data", [b"data: nonsense\n\n", b"data: [1]\n\n", b'data: "\xff"\n\n', b'{"type": "mess'])
def test_garbage_is_a_wire_error(data: bytes) -> None:
    with pytest.raises(WireError):
        read(data)


@given(st.binary(max_size=200), places)
def test_no_bytes_make_the_reader_raise_anything_else(data: bytes, cuts: list[int]) -> None:
    with suppress(BackendError, WireError):
        read(data, cuts)
