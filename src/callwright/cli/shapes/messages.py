"""Anthropic's messages, strictly: blocks one after the other, then the stop reason, then the stop.

The measurements behind each rule: Copilot CLI and the Anthropic SDK need the `event:` lines, the SDKs need usage in
`message_start` and `message_delta`, and without `message_delta` and `message_stop` Claude Code says that the
connection was lost and opencode asks again without end.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.cli.shapes.base import (
    Seen,
    Shape,
    Trial,
    counts,
    decoded,
    field,
    frames,
    need,
    object_text,
    same,
    seen,
)
from callwright.model import ToolCall

__all__ = ["MESSAGES"]

_DELTAS = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def _body(trial: Trial) -> dict[str, Any]:
    body: dict[str, Any] = {"model": trial.model, "stream": trial.stream, "max_tokens": 1024}
    body["messages"] = [{"role": "user", "content": trial.prompt}]
    if trial.tool:
        spec = {"name": trial.tool.name, "description": trial.tool.description, "input_schema": trial.tool.parameters}
        body["tools"] = [spec]
        body["tool_choice"] = {"type": "auto" if trial.call else "any"}
    if trial.call:
        call = {"type": "tool_use", "id": trial.call.id, "name": trial.call.name}
        result = {"type": "tool_result", "tool_use_id": trial.call.id, "content": trial.result}
        body["messages"] += [
            {"role": "assistant", "content": [{**call, "input": decoded(trial.call.arguments, "arguments")}]},
            {"role": "user", "content": [result]},
        ]
    return body


def _whole(body: bytes) -> Seen:
    answer = decoded(body, "the answer")
    _message(answer, "the answer")
    blocks = field(answer, "content", list, "the answer")
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    text = "".join(field(block, "text", str, "a text block") for block in blocks if block.get("type") == "text")
    counts(answer["usage"], "input_tokens", "output_tokens")
    return _checked(text, calls, field(answer, "stop_reason", str, "the answer"))


def _message(value: Any, where: str) -> None:
    same(value, "type", "message", where)
    same(value, "role", "assistant", where)
    for key, kind in (("id", str), ("model", str), ("content", list), ("usage", dict)):
        field(value, key, kind, where)


def _call(block: Any) -> ToolCall:
    for key in ("id", "name"):
        need(field(block, key, str, "a tool_use block"), f"a tool_use block has an empty {key}")
    arguments = field(block, "input", dict, "a tool_use block")
    return ToolCall(block["id"], block["name"], msgspec.json.encode(arguments).decode())


def _checked(text: str, calls: list[ToolCall], reason: str) -> Seen:
    need(reason in _REASONS, f"stop_reason is {reason!r}")
    return seen(text, calls, _REASONS[reason])


def _streamed(body: bytes) -> Seen:
    stream = _Stream()
    for frame in frames(body):
        event = decoded(frame.data, "an event")
        kind = field(event, "type", str, "an event")
        need(frame.event == kind, f"the line event: {frame.event!r} stands before data of type {kind}")
        need(kind != "error", f"the stream reports an error: {event.get('error')}")
        stream.take(kind, event)
    return stream.close()


class _Stream:
    """What was seen so far of one stream."""

    def __init__(self) -> None:
        self.started = False
        self.stopped = False
        self.text = ""
        self.calls: list[ToolCall] = []
        self.blocks = 0
        self.open: Any = None
        self.pieces = ""
        self.reason = ""

    def take(self, kind: str, event: Any) -> None:
        need(not self.stopped, f"{kind} follows message_stop")
        need(self.started or kind in ("message_start", "ping"), f"the stream begins with {kind}, not message_start")
        if kind == "message_start":
            self._start(event)
        elif kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            need(not self.reason, f"{kind} follows message_delta")
            same(event, "index", self.blocks, kind)
            need((self.open is None) == (kind == "content_block_start"), f"{kind}: that block is not open, or still is")
            {"start": self._open, "delta": self._delta, "stop": self._close}[kind.rpartition("_")[2]](event)
        elif kind == "message_delta":
            need(self.open is None, "message_delta comes while a block is open")
            need(not self.reason, "message_delta comes twice")
            self.reason = field(field(event, "delta", dict, kind), "stop_reason", str, kind)
            counts(field(event, "usage", dict, kind), "output_tokens")
        elif kind == "message_stop":
            need(self.reason, "message_stop comes without message_delta")
            self.stopped = True
        else:
            need(kind == "ping", f"an event of the unknown type {kind}")

    def _start(self, event: Any) -> None:
        need(not self.started, "message_start comes twice")
        message = field(event, "message", dict, "message_start")
        _message(message, "message_start")
        counts(message["usage"], "input_tokens", "output_tokens", where="the usage of message_start")
        self.started = True

    def _open(self, event: Any) -> None:
        self.open, self.pieces = field(event, "content_block", dict, "content_block_start"), ""
        if field(self.open, "type", str, "the block") == "tool_use":
            _call(self.open)

    def _delta(self, event: Any) -> None:
        delta = field(event, "delta", dict, "content_block_delta")
        kind = field(delta, "type", str, "the delta")
        need(kind in _DELTAS, f"a delta of the unknown type {kind}")
        block, key = _DELTAS[kind]
        same(self.open, "type", block, f"the block of a {kind}")
        self.pieces += field(delta, key, str, kind)

    def _close(self, event: Any) -> None:
        if self.open["type"] == "text":
            self.text += self.pieces
        elif self.open["type"] == "tool_use":
            arguments = object_text(self.pieces or "{}", "the input of a tool_use block")
            self.calls.append(ToolCall(self.open["id"], self.open["name"], arguments))
        self.open = None
        self.blocks += 1

    def close(self) -> Seen:
        need(self.started, "the stream is empty")
        need(self.stopped, "the stream ends without message_stop")
        return _checked(self.text, self.calls, self.reason)


def _refusal(body: bytes) -> str:
    answer = decoded(body, "the error")
    same(answer, "type", "error", "the error")
    error = field(answer, "error", dict, "the error")
    field(error, "type", str, "the error")
    return str(field(error, "message", str, "the error"))


MESSAGES = Shape(
    name="messages",
    path="/v1/messages",
    stream_type="text/event-stream",
    body=_body,
    whole=_whole,
    streamed=_streamed,
    refusal=_refusal,
)
