"""The strict check of Anthropic's Messages: blocks one after the other, then the stop reason, then the stop.

Each rule comes from a measurement. Copilot CLI and the Anthropic SDK need the `event:` lines, and the SDKs need usage
in `message_start` and `message_delta`. Without `message_delta` and `message_stop`, Claude Code reports a lost
connection and opencode retries endlessly.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.cli.wire_checks.base import (
    CheckedAnswer,
    SmokeRequest,
    WireCheck,
    build_checked_answer,
    decode_json,
    parse_sse,
    require,
    require_field,
    require_object_text,
    require_token_counts,
    require_value,
)
from callwright.model import ToolCall

__all__ = ["MESSAGES"]

_DELTA_TYPES = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
_STOP_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


def _build_body(trial: SmokeRequest) -> dict[str, Any]:
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
            {"role": "assistant", "content": [{**call, "input": decode_json(trial.call.arguments, "arguments")}]},
            {"role": "user", "content": [result]},
        ]
    return body


def _read_response(body: bytes) -> CheckedAnswer:
    answer = decode_json(body, "the answer")
    _check_message(answer, "the answer")
    blocks = require_field(answer, "content", list, "the answer")
    calls = [_read_call(block) for block in blocks if block.get("type") == "tool_use"]
    text = "".join(require_field(block, "text", str, "a text block") for block in blocks if block.get("type") == "text")
    require_token_counts(answer["usage"], "input_tokens", "output_tokens")
    return _check_answer(text, calls, require_field(answer, "stop_reason", str, "the answer"))


def _check_message(value: Any, where: str) -> None:
    require_value(value, "type", "message", where)
    require_value(value, "role", "assistant", where)
    for key, kind in (("id", str), ("model", str), ("content", list), ("usage", dict)):
        require_field(value, key, kind, where)


def _read_call(block: Any) -> ToolCall:
    for key in ("id", "name"):
        require(require_field(block, key, str, "a tool_use block"), f"a tool_use block has an empty {key}")
    arguments = require_field(block, "input", dict, "a tool_use block")
    return ToolCall(block["id"], block["name"], msgspec.json.encode(arguments).decode())


def _check_answer(text: str, calls: list[ToolCall], reason: str) -> CheckedAnswer:
    require(reason in _STOP_REASONS, f"stop_reason is {reason!r}")
    return build_checked_answer(text, calls, _STOP_REASONS[reason])


def _read_stream(body: bytes) -> CheckedAnswer:
    stream = _StreamChecker()
    for frame in parse_sse(body):
        event = decode_json(frame.data, "an event")
        kind = require_field(event, "type", str, "an event")
        require(frame.event == kind, f"the line event: {frame.event!r} is followed by data of type {kind}")
        require(kind != "error", f"the stream reports an error: {event.get('error')}")
        stream.feed(kind, event)
    return stream.close()


class _StreamChecker:
    """Checks one stream, event by event."""

    def __init__(self) -> None:
        self.is_started = False
        self.is_stopped = False
        self.text = ""
        self.calls: list[ToolCall] = []
        self.block_count = 0
        self.open_block: Any = None
        self.pieces = ""
        self.reason = ""

    def feed(self, kind: str, event: Any) -> None:
        require(not self.is_stopped, f"{kind} follows message_stop")
        require(
            self.is_started or kind in ("message_start", "ping"), f"the stream begins with {kind}, not message_start"
        )
        if kind == "message_start":
            self._start_message(event)
        elif kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            require(not self.reason, f"{kind} follows message_delta")
            require_value(event, "index", self.block_count, kind)
            require(
                (self.open_block is None) == (kind == "content_block_start"),
                f"{kind}: the block is already open or not open",
            )
            {"start": self._open_block, "delta": self._add_delta, "stop": self._close_block}[kind.rpartition("_")[2]](
                event
            )
        elif kind == "message_delta":
            require(self.open_block is None, "message_delta comes while a block is open")
            require(not self.reason, "message_delta comes twice")
            self.reason = require_field(require_field(event, "delta", dict, kind), "stop_reason", str, kind)
            require_token_counts(require_field(event, "usage", dict, kind), "output_tokens")
        elif kind == "message_stop":
            require(self.reason, "message_stop comes without message_delta")
            self.is_stopped = True
        else:
            require(kind == "ping", f"an event of the unknown type {kind}")

    def _start_message(self, event: Any) -> None:
        require(not self.is_started, "message_start comes twice")
        message = require_field(event, "message", dict, "message_start")
        _check_message(message, "message_start")
        require_token_counts(message["usage"], "input_tokens", "output_tokens", where="the usage of message_start")
        self.is_started = True

    def _open_block(self, event: Any) -> None:
        self.open_block, self.pieces = require_field(event, "content_block", dict, "content_block_start"), ""
        if require_field(self.open_block, "type", str, "the block") == "tool_use":
            _read_call(self.open_block)

    def _add_delta(self, event: Any) -> None:
        delta = require_field(event, "delta", dict, "content_block_delta")
        kind = require_field(delta, "type", str, "the delta")
        require(kind in _DELTA_TYPES, f"a delta of the unknown type {kind}")
        block, key = _DELTA_TYPES[kind]
        require_value(self.open_block, "type", block, f"the block of a {kind}")
        self.pieces += require_field(delta, key, str, kind)

    def _close_block(self, event: Any) -> None:
        if self.open_block["type"] == "text":
            self.text += self.pieces
        elif self.open_block["type"] == "tool_use":
            arguments = require_object_text(self.pieces or "{}", "the input of a tool_use block")
            self.calls.append(ToolCall(self.open_block["id"], self.open_block["name"], arguments))
        self.open_block = None
        self.block_count += 1

    def close(self) -> CheckedAnswer:
        require(self.is_started, "the stream is empty")
        require(self.is_stopped, "the stream ends without message_stop")
        return _check_answer(self.text, self.calls, self.reason)


def _read_error(body: bytes) -> str:
    answer = decode_json(body, "the error")
    require_value(answer, "type", "error", "the error")
    error = require_field(answer, "error", dict, "the error")
    require_field(error, "type", str, "the error")
    return str(require_field(error, "message", str, "the error"))


MESSAGES = WireCheck(
    name="messages",
    path="/v1/messages",
    stream_type="text/event-stream",
    build_body=_build_body,
    read_response=_read_response,
    read_stream=_read_stream,
    read_error=_read_error,
)
