"""Raw completions: what is sent, and what is read from OpenAI-like servers and from llama.cpp's own endpoint."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.completions import DEFAULT_MAX_TOKENS, CompletionsClientCodec
from callwright.backends.errors import TOOLS_REFUSED
from callwright.backends.http import HttpBackend
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, WireError
from callwright.events import Event, Finish, TextDelta, UsageSeen, check_events, merge_deltas
from callwright.model import ToolSpec, Usage
from tests.support.tiny_wire import TinyWire, ask
from tests.support.upstream import Upstream

WIRE = CompletionsClientCodec("chatml", TinyWire())
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}


def stream(*chunks: Any, done: bool = True) -> bytes:
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join(frames) + (b"data: [DONE]\n\n" if done else b"")


def text(piece: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": piece, "finish_reason": finish, "logprobs": None}]}


def read(*pieces: bytes) -> list[Event]:
    reader = WIRE.create_reader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events if events and isinstance(events[-1], Finish) else [*events, *reader.close()]


def sent(request: Any, **extra: Any) -> Any:
    return msgspec.json.decode(WIRE.encode_request(request, extra))


def test_the_conversation_is_sent_as_text() -> None:
    body = sent(ask("Hi", temperature=0.5, stop="END", reasoning_effort="low"), min_p=0.1, response_format={})
    assert body == {
        "model": "m",
        "prompt": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
        "stop": ["<|im_end|>", "<|im_start|>", "END"],
        "temperature": 0.5,
        "min_p": 0.1,
        "max_tokens": DEFAULT_MAX_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(("stop", "added"), [(None, []), ([], []), (["a", "b"], ["a", "b"]), ("a", ["a"])])
def test_stops_are_added_to_the_templates(stop: Any, added: list[str]) -> None:
    body = sent(ask(stop=stop, max_tokens=7))
    assert body["stop"] == ["<|im_end|>", "<|im_start|>", *added]
    assert body["max_tokens"] == 7


def test_tools_are_refused_in_a_way_that_has_them_taught() -> None:
    with pytest.raises(BackendError, match="does not support tools") as raised:
        WIRE.encode_request(msgspec.structs.replace(ask(), tools=(ToolSpec("x"),)), {})
    assert (raised.value.kind, raised.value.code) == ("refused", TOOLS_REFUSED)


def test_a_turn_with_tools_is_refused_before_it_is_sent(upstream: Upstream) -> None:
    one = HttpBackend(BackendSettings(name="raw", kind="completions", url=upstream.url), WIRE)
    with pytest.raises(BackendError) as raised:
        asyncio.run(anext(one.stream_response(msgspec.structs.replace(ask(), tools=(ToolSpec("x"),)), {})))
    assert (raised.value.code, one.is_available, upstream.requests) == (TOOLS_REFUSED, True, [])


@pytest.mark.parametrize("cut", [1, 3, 64, 10_000])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            stream(text("Good"), text("bye"), text("", "stop"), USAGE),
            [TextDelta("Goodbye"), UsageSeen(Usage(5, 2)), Finish("stop")],
        ),
        (stream(text("Good"), text("bye", "length")), [TextDelta("Goodbye"), Finish("length")]),
        (stream(text("a"), text("b", "stop"), done=False), [TextDelta("ab"), Finish("stop")]),
        (stream(text("a"), {"choices": [{"index": 1, "text": "other"}]}), [TextDelta("a"), Finish("stop")]),
        (stream({"choices": [{"text": None, "finish_reason": "stop"}], "usage": None}), [Finish("stop")]),
        (
            stream(
                {"content": "Hi", "stop": False},
                {"content": "", "stop": True, "stop_type": "limit", "tokens_evaluated": 3, "tokens_predicted": 1},
                done=False,
            ),
            [TextDelta("Hi"), UsageSeen(Usage(3, 1)), Finish("length")],
        ),
        (
            stream({"content": "Hi", "stop": False}, {"content": "!", "stop": True, "stop_type": "eos"}, done=False),
            [TextDelta("Hi!"), UsageSeen(Usage()), Finish("stop")],
        ),
    ],
    ids=["openai", "length", "no done", "other choices", "null text", "llama.cpp limit", "llama.cpp"],
)
def test_streams_are_read(data: bytes, expected: list[Event], cut: int) -> None:
    events = read(*(data[at : at + cut] for at in range(0, len(data), cut)))
    check_events(events)
    assert merge_deltas(events) == expected


def test_nothing_counts_after_the_end() -> None:
    reader = WIRE.create_reader()
    assert reader.feed(stream(text("a")) + stream(text("late"))) == [TextDelta("a"), Finish("stop")]
    assert reader.feed(stream(text("later"))) == []
    assert reader.close() == []


def test_a_stream_that_breaks_off_is_an_error() -> None:
    with pytest.raises(BackendError, match="ended before the answer did") as raised:
        read(stream(text("a"), done=False))
    assert raised.value.kind == "protocol"


def test_an_error_in_the_stream_is_the_servers() -> None:
    with pytest.raises(BackendError, match="out of memory"):
        read(stream({"error": {"message": "out of memory"}}))


@given(st.binary() | st.text().map(lambda word: f"data: {word}\n\n".encode()))
def test_garbage_gives_our_own_errors_only(data: bytes) -> None:
    with suppress(BackendError, WireError):
        check_events(read(data))
