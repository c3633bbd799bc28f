"""Seals: what a server wants to see again with its reasoning reaches a client of its wire, and comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import collect
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, ReasoningSealed, TextDelta
from callwright.model import Message, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire import CLIENT_CODECS, SERVER_CODECS
from callwright.wire.base import ClientRequest, ResponseHead, StreamStyle
from tests.support.streams import SEALS, places, sliced, words

HEAD = ResponseHead("abc", 1_700_000_000, "m")
ASK = ClientRequest(request=Request("m", ()), stream=True)
SIGNED, REDACTED, ENCRYPTED, GEMINI = SEALS
OWN = {
    "anthropic": st.builds(lambda text: {"signature": text}, words) | st.just(REDACTED),
    "openai_responses": st.builds(lambda text: {"encrypted_content": text}, words),
}
"""The seals of the wires that have them."""
CALL: list[Event] = [CallStart(0, "c", "ping"), CallDelta(0, "{}"), CallEnd(0)]


@st.composite
def sealed_turns(draw: st.DrawFn, wire: str) -> list[Event]:
    """Turns in which everything that was thought is sealed; each seal is another."""
    events: list[Event] = []
    for number in range(draw(st.integers(0, 3))):
        opaque = {key: f"{value}{number}" for key, value in draw(OWN[wire]).items()}
        hidden = "redacted" in opaque
        events += [] if hidden else map(ReasoningDelta, draw(st.lists(words, max_size=3)))
        events.append(ReasoningSealed(opaque))
        events += [TextDelta("so")] if draw(st.booleans()) else []
    called = draw(st.booleans())
    return [*events, *(CALL if called else []), Finish("tool_calls" if called else "stop")]


def read(wire: str, data: bytes, cuts: list[int] = ()) -> tuple[Reasoning, ...]:
    """The thoughts in an answer, but for ids: those are of the writer's own."""
    reader = CLIENT_CODECS[wire].create_reader()
    events = [event for part in sliced(data, cuts) for event in reader.feed(part)]
    thoughts = collect([*events, *reader.close()]).thoughts
    return tuple(Reasoning(each.text, _without_id(each.opaque)) for each in thoughts)


def _without_id(opaque: dict[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (opaque or {}).items() if key != "id"}


@pytest.mark.parametrize("wire", OWN)
@given(data=st.data(), batches=places, cuts=places)
def test_seals_come_back_from_a_stream_under_any_cuts(
    wire: str, data: st.DataObject, batches: list[int], cuts: list[int]
) -> None:
    events = data.draw(sealed_turns(wire))
    encoder = SERVER_CODECS[wire].create_encoder(ASK, HEAD, StreamStyle())
    stream = (
        encoder.begin_stream()
        + b"".join(encoder.encode_events(part) for part in sliced(events, batches))
        + encoder.end_stream()
    )
    assert read(wire, stream, cuts) == collect(events).thoughts


@pytest.mark.parametrize("wire", OWN)
@given(data=st.data())
def test_seals_come_back_from_an_answer_in_one_piece(wire: str, data: st.DataObject) -> None:
    turn = collect(data.draw(sealed_turns(wire)))
    assert read(wire, SERVER_CODECS[wire].encode_response(ASK, HEAD, StreamStyle(), [turn])) == turn.thoughts


@pytest.mark.parametrize("wire", OWN)
@pytest.mark.parametrize("seal", SEALS)
def test_the_seal_of_another_wire_is_not_shown(wire: str, seal: dict[str, Any]) -> None:
    if any(key in seal for key in {"anthropic": SIGNED | REDACTED, "openai_responses": ENCRYPTED}[wire]):
        return
    events: list[Event] = [ReasoningDelta("why"), ReasoningSealed(seal), *CALL, Finish("tool_calls")]
    encoder = SERVER_CODECS[wire].create_encoder(ASK, HEAD, StreamStyle())
    stream = encoder.begin_stream() + encoder.encode_events(events) + encoder.end_stream()
    for answer in (stream, SERVER_CODECS[wire].encode_response(ASK, HEAD, StreamStyle(), [collect(events)])):
        assert read(wire, answer) == (Reasoning("why", {}),)


def test_a_client_that_wants_no_reasoning_gets_no_seal() -> None:
    events: list[Event] = [ReasoningDelta("why"), ReasoningSealed(SIGNED), ReasoningSealed(REDACTED), Finish("stop")]
    style = StreamStyle(reasoning_fields=())
    encoder = SERVER_CODECS["anthropic"].create_encoder(ASK, HEAD, style)
    stream = encoder.begin_stream() + encoder.encode_events(events) + encoder.end_stream()
    assert read("anthropic", stream) == ()
    assert read("anthropic", SERVER_CODECS["anthropic"].encode_response(ASK, HEAD, style, [collect(events)])) == ()


def test_what_an_anthropic_client_sends_back_reaches_the_server_as_it_was_signed() -> None:
    blocks = [
        {"type": "thinking", "thinking": "why", "signature": "Eq=="},
        {"type": "redacted_thinking", "data": "Em=="},
        {"type": "tool_use", "id": "c", "name": "ping", "input": {}},
    ]
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "pong"}]},
    ]
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    ask = SERVER_CODECS["anthropic"].decode_request(json.dumps(body).encode())
    sent = json.loads(CLIENT_CODECS["anthropic"].encode_request(ask.request, {}))
    assert sent["messages"][1]["content"] == blocks


# ── the Responses API ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "extra", "asked"),
    [
        ({}, {}, None),
        ({"reasoning_effort": "low"}, {}, ["reasoning.encrypted_content"]),
        ({}, {"reasoning": {"summary": "auto"}}, ["reasoning.encrypted_content"]),
        ({"reasoning_effort": "low"}, {"include": ["message.output_text.logprobs"]}, ["message.output_text.logprobs"]),
    ],
)
def test_encrypted_reasoning_is_asked_for_with_reasoning(
    options: dict[str, Any], extra: dict[str, Any], asked: list[str] | None
) -> None:
    """The client's own wish comes first."""
    request = Request("m", (Message("user", (Text("go"),)),), options=options)
    assert json.loads(CLIENT_CODECS["openai_responses"].encode_request(request, extra)).get("include") == asked


def test_encrypted_reasoning_that_is_told_twice_is_one_seal() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    frames = [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ]
    data = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)
    reader = CLIENT_CODECS["openai_responses"].create_reader()
    thoughts = collect(reader.feed(data)).thoughts
    assert thoughts == (Reasoning("", {"id": "rs_1", "encrypted_content": "gAAA"}),)


# ── Gemini, on chat completions ──────────────────────────────────────────────────────────────────


def test_the_signature_on_a_call_of_gemini_stands_before_it() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "ping", "arguments": "{}"}, **GEMINI}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    reader = CLIENT_CODECS["openai_chat"].create_reader()
    first, second, *_ = reader.feed(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    assert first == ReasoningSealed(GEMINI)
    assert second == CallStart(0, "c", "ping")


@pytest.mark.parametrize("extra", [None, {}, "x", 3, ["a"]])
def test_what_is_no_signature_is_none(extra: object) -> None:
    call = {"index": 0, "id": "c", "function": {"name": "ping", "arguments": "{}"}, "extra_content": extra}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}}]}
    assert isinstance(
        CLIENT_CODECS["openai_chat"].create_reader().feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")[0],
        CallStart,
    )


def test_each_signature_goes_back_on_its_own_call() -> None:
    second = {"extra_content": {"google": {"thought_signature": "2"}}}
    calls = [ToolCall(name, name, "{}") for name in ("a", "b", "c")]
    parts = (Reasoning("", GEMINI), Text("so"), calls[0], calls[1], Reasoning("", second), calls[2])
    request = Request("m", (Message("assistant", parts), Message("tool", (ToolResult("a", "x"),))))
    message = json.loads(CLIENT_CODECS["openai_chat"].encode_request(request, {}))["messages"][0]
    assert [each.get("extra_content") for each in message["tool_calls"]] == [
        GEMINI["extra_content"],
        None,
        second["extra_content"],
    ]
    assert "reasoning_content" not in message
