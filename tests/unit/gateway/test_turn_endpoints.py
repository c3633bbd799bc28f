"""One turn through the gateway with the real engine, wires and app; only the model is made up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar
from unittest.mock import AsyncMock, Mock

import pytest

from callwright.backends.base import EventStream
from callwright.backends.trace_context import TRACEPARENT
from callwright.engine import Engine
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError
from callwright.events import Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.gateway import response_stream, turn_endpoints
from callwright.gateway.app import build_app
from callwright.gateway.choices import merge_choices
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.response_history import ResponseHistory
from callwright.gateway.response_stream import ResponseStream
from callwright.gateway.service import GatewayService, GatewayState
from callwright.gateway.settings import ServerSettings
from callwright.gateway.turn_endpoints import TurnEndpoints
from callwright.model import Message, Request, Text, Usage
from callwright.wire import SERVER_CODECS
from callwright.wire.base import ClientRequest, ResponseHead, StreamStyle
from tests.support.asgi import Answer as Reply
from tests.support.asgi import call
from tests.support.clock import ClockLoop, pass_time
from tests.support.fake import Fake

CALL = '<tool_call>{"name": "ping", "arguments": {"a": "xyz"}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {"a": {}}}}}


def app(backend: Any, *, server: dict[str, Any] | None = None, **model: Any) -> Any:
    engine = Engine([ModelSettings(name="m", **model)], {"one": backend}, ToolRules())
    service = GatewayService(GatewayState(ServerSettings(**(server or {})), (), engine))
    return build_app(
        service, SERVER_CODECS, TurnEndpoints(service, ErrorResponder(SERVER_CODECS, service.metrics)).build_endpoint
    )


def ask(backend: Any, path: str, body: dict[str, Any], headers: dict[str, str] | None = None, **options: Any) -> Reply:
    whole = json.dumps({"model": "m", **body}).encode()
    return asyncio.run(call(app(backend, **options), "POST", path, headers=headers, body=whole))


def chat(backend: Any, headers: dict[str, str] | None = None, **options: Any) -> Reply:
    body = {"messages": [{"role": "user", "content": "go"}], "tools": [TOOL], "stream": True}
    return ask(backend, "/v1/chat/completions", body, headers, **options)


def deltas(reply: Reply) -> list[dict[str, Any]]:
    lines = [line[6:] for line in reply.body.decode().splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in lines for choice in json.loads(line).get("choices", [])]


def said(*texts: str) -> list[Event]:
    return [*map(TextDelta, texts), Finish("stop")]


# ── settings that reach the stream ───────────────────────────────────────────────────────────────


def test_arguments_come_whole_where_a_model_says_so() -> None:
    pieces = [CALL[at : at + 3] for at in range(0, len(CALL), 3)]

    def fragments(**model: Any) -> list[str]:
        calls = [
            delta["tool_calls"][0]["function"]
            for delta in deltas(chat(Fake(said(*pieces)), **model))
            if "tool_calls" in delta
        ]
        return [function["arguments"] for function in calls if function["arguments"]]

    assert len(fragments()) > 1
    assert fragments(style={"arguments": "whole"}) == ['{"a": "xyz"}']


def test_begin_tool_calls_is_sent_only_where_it_is_set() -> None:
    assert "beginToolCalls" not in chat(Fake(said(CALL))).body.decode()
    assert "beginToolCalls" in chat(Fake(said(CALL)), style={"begin_tool_calls": True}).body.decode()


def test_telemetry_can_be_switched_off() -> None:
    assert b'\n: {"tool_call_count":1,' in chat(Fake(said(CALL))).body
    assert b"tool_call_count" not in chat(Fake(said(CALL)), server={"telemetry": False}).body


def test_a_whole_answer_carries_the_telemetry_in_its_headers() -> None:
    body = {"messages": [{"role": "user", "content": "go"}], "tools": [TOOL]}
    reply = ask(Fake(said(CALL)), "/v1/chat/completions", body)
    assert reply.headers["x-codex-tool-call-count"] == "1"
    assert reply.json["choices"][0]["finish_reason"] == "tool_calls"


def test_a_request_to_load_a_model_is_answered_without_asking_it() -> None:
    backend = Fake(said("no"))
    for path in ("/api/chat", "/api/generate"):
        assert json.loads(ask(backend, path, {}).body.splitlines()[-1])["done"] is True
    assert not backend.asked
    assert ask(backend, "/v1/messages", {"messages": [], "max_tokens": 1}).status == 400


# ── traces ───────────────────────────────────────────────────────────────────────────────────────


class Traced(Fake):
    traces: ClassVar[list[str]] = []

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        self.traces.append(TRACEPARENT.get())
        yield [TextDelta("ok"), Finish("stop")]


def test_a_clients_trace_goes_on_to_the_backend_as_a_step_of_its_own() -> None:
    trace, step = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    chat(Traced(said("")), {"traceparent": f"00-{trace}-{step}-01"})
    version, same, own, flags = Traced.traces[-1].split("-")
    assert (version, same, flags) == ("00", trace, "01")
    assert own != step


@pytest.mark.parametrize("given", ["", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01"])
def test_without_a_trace_a_new_one_begins(given: str) -> None:
    chat(Traced(said("")), {"traceparent": given} if given else None)
    assert len(Traced.traces[-1].split("-")[1]) == 32


# ── choices ──────────────────────────────────────────────────────────────────────────────────────


def test_every_choice_is_a_turn_of_its_own() -> None:
    backend = Fake(said("one"), said(CALL), said("three"))
    body = {"messages": [{"role": "user", "content": "go"}], "tools": [TOOL], "n": 3}
    choices = ask(backend, "/v1/chat/completions", body).json["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert [choice["finish_reason"] for choice in choices].count("tool_calls") == 1
    assert len(backend.asked) == 3


def test_the_failure_of_one_choice_ends_the_others() -> None:
    closed = []

    async def turn(name: str, *, fails: bool) -> EventStream:
        try:
            for _ in range(100):
                await asyncio.sleep(0)
                if fails:
                    raise BackendError("gone")
                yield [TextDelta(name)]
        finally:
            closed.append(name)

    async def run() -> list[int]:
        return [choice async for choice, _ in merge_choices([turn("a", fails=False), turn("b", fails=True)])]

    with pytest.raises(BackendError):
        asyncio.run(run())
    assert sorted(closed) == ["a", "b"]


# ── the clock ────────────────────────────────────────────────────────────────────────────────────


def stream(events: AsyncIterator[list[Event]], *, clock: bool = False, **times: float) -> list[str]:
    """What is sent, message by message, of events that come in their own time; with `clock` time flies."""
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b"<status>").decode())

    async def run() -> None:
        request = Request("m", (Message("user", (Text("go"),)),))
        encoder = SERVER_CODECS["openai_chat"].create_encoder(
            ClientRequest(request=request, stream=True), ResponseHead("x", 1, "m"), StreamStyle()
        )
        seconds = {"heartbeat_seconds": 5.0, "open_seconds": 5.0, **times}
        out = ResponseStream(send, encoder, "text/event-stream", **seconds)
        passing = asyncio.create_task(pass_time(*[5.0] * 40)) if clock else None
        async for batch in events:
            await out.write(batch)
        await out.end("")
        out.cancel_timers()
        if passing:
            passing.cancel()

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        runner.run(run())
    return sent


async def paced(*batches: list[Event], pause: float) -> AsyncIterator[list[Event]]:
    for batch in batches:
        await asyncio.sleep(pause)
        yield batch


def test_a_stream_opens_with_its_first_events() -> None:
    sent = stream(paced([TextDelta("hi")], [Finish("stop")], pause=0))
    assert sent[0] == "<status>"
    assert '"role"' in sent[1]
    assert '"hi"' in sent[1]


def test_a_stream_that_stays_silent_is_opened_by_the_clock_and_kept_alive() -> None:
    slow = paced([TextDelta("hi"), Finish("stop")], pause=100)
    sent = stream(slow, clock=True, open_seconds=10, heartbeat_seconds=20)
    assert '"role"' in sent[1]
    assert [part for part in sent[2:-2] if part.startswith(":")], sent
    assert sent[-1].endswith("[DONE]\n\n")


@pytest.mark.parametrize(("beat", "sent"), [(b"", 0), (b": still here\n\n", 10)], ids=["silent", "sent"])
def test_a_heartbeat_comes_once_in_each_period_also_when_it_sends_nothing(beat: bytes, sent: int) -> None:
    async def run() -> tuple[int, int]:
        encoder, beats = Mock(has_pending=False), list[bytes]()
        encoder.begin_stream.return_value = encoder.encode_events.return_value = b"data"

        def encode_heartbeat() -> bytes:
            beats.append(beat)
            return beat

        encoder.encode_heartbeat.side_effect = encode_heartbeat
        send = AsyncMock()
        out = ResponseStream(send, encoder, "text/event-stream", heartbeat_seconds=3600.0, open_seconds=5.0)
        await out.write([TextDelta("hi")])
        before = send.await_count
        await pass_time(*[3600.0] * 10)
        out.cancel_timers()
        return len(beats), send.await_count - before

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        assert runner.run(run()) == (10, sent)


def test_held_text_goes_out_when_nothing_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_stream, "_FLUSH_SECONDS", 0.01)
    sent = stream(paced([TextDelta("Hello. ")], [TextDelta("a")], [Finish("stop")], pause=0.1))
    assert [part for part in sent if '"content":"a"' in part and 'finish_reason":null' in part]


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def test_the_oldest_conversations_go_first_and_callers_are_kept_apart() -> None:
    memory = ResponseHistory(max_entries=2, max_characters=100)
    words = (Message("user", (Text("x" * 10),)),)
    for name in ("a", "b", "c"):
        memory.store_conversation("me", name, words)
    assert set(memory.find_conversations("me", ("a", "b", "c"))) == {"b", "c"}
    assert not memory.find_conversations("you", ("b", "c"))
    memory.store_conversation("me", "long", (Message("user", (Text("x" * 95),)),))
    assert set(memory.find_conversations("me", ("b", "c", "long"))) == {"long"}


def test_a_turn_is_counted_once_whatever_became_of_it() -> None:
    events: list[Event] = [ReasoningDelta("hm"), TextDelta("ok"), UsageSeen(Usage(3, 4)), Finish("stop")]
    gateway = app(Fake(events))

    async def run() -> bytes:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]}).encode()
        for _ in range(2):
            await call(gateway, "POST", "/v1/chat/completions", body=body)
        return (await call(gateway, "GET", "/metrics")).body

    page = asyncio.run(run()).decode()
    assert 'callwright_requests_total{client="openai",model="m",status="200",wire="openai_chat"} 2.0' in page
    assert 'callwright_tokens_total{kind="completion",model="m"} 8.0' in page
    assert "callwright_active_turns 0.0" in page


def test_an_answer_that_is_kept_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_endpoints, "_MAX_STORED_CHARACTERS", 100)
    body = {"messages": [{"role": "user", "content": "go"}]}
    reply = ask(Fake(said(*["word " * 10] * 5)), "/v1/chat/completions", body)
    assert reply.status == 502
    assert "did not stop" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 4096 tokens, however you requested 9000",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 9000 tokens > 4096 maximum",
    ],
)
def test_a_prompt_that_is_too_long_is_told_in_the_words_that_agents_condense_on(words: str) -> None:
    refused = BackendError(words, kind="refused", status=400)
    for path in ("/v1/chat/completions", "/v1/messages"):
        reply = ask(Fake(refused), path, {"messages": [{"role": "user", "content": "go"}], "max_tokens": 5})
        assert reply.status == 400
        assert "prompt is too long" in reply.json["error"]["message"]
    assert ask(Fake(refused), "/v1/responses", {"input": "go"}).json["error"]["code"] == "context_length_exceeded"
