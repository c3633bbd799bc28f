"""Halves of a surrogate pair that a server sends in two strings, on every wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, merge_deltas
from tests.support.failures import READ, sse

HIGH, LOW = "\ud83d", "\ude00"
PIECES = ["a", HIGH, LOW, "b" + HIGH, LOW + HIGH, LOW]
JOINED = "a😀b😀😀"


def chat(**delta: Any) -> bytes:
    return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def chat_call(piece: str, **start: Any) -> bytes:
    entry = {"index": 0, "function": {"arguments": piece, **start}}
    return chat(tool_calls=[{"id": "a", **entry} if start else entry])


CHAT_END = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"


def anthropic(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, "index": 0, **fields}, kind)


def build_anthropic(block: dict[str, Any], deltas: list[dict[str, Any]]) -> bytes:
    return b"".join(
        [
            anthropic("content_block_start", content_block=block),
            *(anthropic("content_block_delta", delta=delta) for delta in deltas),
            anthropic("content_block_stop"),
            anthropic("message_delta", delta={"stop_reason": "end_turn"}, usage={}),
            anthropic("message_stop"),
        ]
    )


def response(kind: str, **fields: Any) -> bytes:
    return sse({"type": f"response.{kind}", **fields}, f"response.{kind}")


RESPONSE_END = response("completed", response={"status": "completed", "output": []})
ITEM = {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": ""}
CALL_PIECES = ['{"t": "', *PIECES, '"}']


def ollama(**message: Any) -> bytes:
    return json.dumps({"message": {"role": "assistant", "content": "", **message}, "done": False}).encode() + b"\n"


OLLAMA_END = b'{"message": {"content": ""}, "done": true, "done_reason": "stop"}\n'

STREAMS: dict[tuple[str, type[Event]], bytes] = {
    ("openai_chat", TextDelta): b"".join(chat(content=piece) for piece in PIECES) + CHAT_END,
    ("openai_chat", ReasoningDelta): b"".join(chat(reasoning_content=piece) for piece in PIECES) + CHAT_END,
    ("openai_chat", CallDelta): chat_call("", name="f") + b"".join(map(chat_call, CALL_PIECES)) + CHAT_END,
    ("anthropic", TextDelta): build_anthropic(
        {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in PIECES]
    ),
    ("anthropic", CallDelta): build_anthropic(
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        [{"type": "input_json_delta", "partial_json": piece} for piece in CALL_PIECES],
    ),
    ("openai_responses", TextDelta): b"".join(response("output_text.delta", delta=piece) for piece in PIECES)
    + RESPONSE_END,
    ("openai_responses", CallDelta): response("output_item.added", item=ITEM)
    + b"".join(response("function_call_arguments.delta", item_id="fc", delta=piece) for piece in CALL_PIECES)
    + RESPONSE_END,
    ("ollama", TextDelta): b"".join(ollama(content=piece) for piece in PIECES) + OLLAMA_END,
    ("ollama", ReasoningDelta): b"".join(ollama(thinking=piece) for piece in PIECES) + OLLAMA_END,
    ("completions", TextDelta): b"".join(sse({"choices": [{"text": piece}]}) for piece in PIECES)
    + sse({"choices": [{"text": "", "finish_reason": "stop"}]})
    + b"data: [DONE]\n\n",
}


def read(name: str, data: bytes, size: int) -> list[Event]:
    reader = READ[name].create_reader()
    events: list[Event] = []
    for at in range(0, len(data), size):
        events += reader.feed(data[at : at + size])
    return merge_deltas([*events, *reader.close()])


@pytest.mark.parametrize(("name", "kind"), STREAMS)
@pytest.mark.parametrize("size", [7, 10_000])
def test_halves_join(name: str, kind: type[Event], size: int) -> None:
    events = read(name, STREAMS[name, kind], size)
    texts = [getattr(event, "text", "") for event in events if isinstance(event, kind)]
    assert texts == [f'{{"t": "{JOINED}"}}' if kind is CallDelta else JOINED]


def test_a_half_that_stays_alone_does_not_end_the_turn() -> None:
    data = chat(reasoning_content=HIGH) + chat(content=HIGH) + chat_call("{}", name="f") + chat(content="x" + HIGH)
    events = read("openai_chat", data + CHAT_END, 10_000)
    assert events == [
        ReasoningDelta(HIGH),
        TextDelta(HIGH),
        CallStart(0, "a", "f"),
        CallDelta(0, "{}"),
        TextDelta("x" + HIGH),
        CallEnd(0),
        Finish("stop"),
    ]


def test_a_half_in_a_whole_object_costs_that_character() -> None:
    call = {"function": {"name": "f", "arguments": {"t": f"a{HIGH}b"}}}
    events = read("ollama", ollama(tool_calls=[call]) + OLLAMA_END, 10_000)
    (arguments,) = [json.loads(event.text) for event in events if isinstance(event, CallDelta)]
    assert arguments["t"][0] + arguments["t"][-1] == "ab"
