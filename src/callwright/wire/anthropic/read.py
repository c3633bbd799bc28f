"""Anthropic Messages, client side: read a server's stream, or its complete message, as events.

Each frame is decoded once, into the few fields that are used. Blocks about tools that the server runs itself are
skipped. Reasoning that the server signed or redacted is sealed with the data that it expects back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import BackendError, WireError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Usage
from callwright.wire.anthropic.decode import GATEWAY_SIGNATURE
from callwright.wire.argument_json import is_json_object
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import JSON_DECODE_ERRORS, MAX_FRAME_BYTES, SseReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["AnthropicReader"]

_FINISH_REASONS: dict[str, FinishReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_ERROR_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status for each error type in a stream."""


class _ContentBlock(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    data: str | None = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _Delta(msgspec.Struct):
    text: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    partial_json: str | None = ""
    stop_reason: str | None = None


class _OutputTokenDetails(msgspec.Struct):
    thinking_tokens: int = 0


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputTokenDetails | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _StreamEvent(msgspec.Struct):
    """An event of the stream; `content` and `stop_reason` are those of a complete message."""

    type: str = ""
    index: int = 0
    content_block: _ContentBlock | None = None
    delta: _Delta | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None
    content: list[_ContentBlock] = []
    stop_reason: str | None = None


class _OpenCall:
    """A call whose block is open."""

    def __init__(self, index: int, initial_arguments: str) -> None:
        self.index = index
        self.initial_arguments = initial_arguments
        """The arguments in its start event: all of them, or an empty object."""
        self.fragments: list[str] = []


_EVENT_DECODER = msgspec.json.Decoder(_StreamEvent)


class AnthropicReader(EventReader):
    """Reads one server's stream."""

    def __init__(self) -> None:
        self._frames = SseReader()
        self._has_started = False
        self._body: bytearray | None = None
        """The body, if it is not a stream."""
        self._calls: dict[int, _OpenCall] = {}
        self._bare_call: _OpenCall | None = None
        """A call that ended without arguments: it has none, or the output was truncated. The next event decides."""
        self._signature = ""
        """The signature of the open block."""
        self._call_count = 0
        self._usage = _Usage()
        self._stop_reason: str | None = None
        self._is_over = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        if not self._has_started and data.strip():
            self._has_started = True
            if data.lstrip().startswith(b"{"):
                self._body = bytearray()
        if self._body is None:
            for _, frame in self._frames.feed(data):
                out += self._read_event(frame)
            return
        self._body += data
        if len(self._body) > MAX_FRAME_BYTES:
            raise WireError(f"the server's answer is longer than {MAX_FRAME_BYTES} bytes")

    def _process_end(self, out: list[Event]) -> None:
        frames = self._frames.close() if self._body is None else [(b"", bytes(self._body))]
        for _, frame in frames:
            out += self._read_event(frame)
        if self._is_over:
            return
        if self._stop_reason is None:
            raise BackendError("the server closed the stream before the end of its message", retryable=True)
        out += self._finish_turn()

    def _read_event(self, data: bytes) -> list[Event]:
        if self._is_over:
            return []
        try:
            frame = self._decode_json(data, _EVENT_DECODER)
        except JSON_DECODE_ERRORS as problem:
            raise WireError(f"the server sent an invalid event: {problem}") from problem
        if frame.error:
            raise _parse_stream_error(frame.error)
        match frame.type:
            case "content_block_delta" if frame.delta:
                return self._read_delta(frame.index, frame.delta)
            case "content_block_start" if frame.content_block:
                return self._start_block(frame.index, frame.content_block)
            case "content_block_stop":
                return self._stop_block(frame.index)
            case "message_start" if frame.message:
                self._update_usage(frame.message.usage)
            case "message_delta" if frame.delta:
                self._stop_reason = frame.delta.stop_reason
                self._update_usage(frame.usage)
            case "message_stop":
                return self._finish_turn()
            case "message":
                return self._read_message(frame)
            case _:
                pass
        return []

    def _start_block(self, at: int, block: _ContentBlock) -> list[Event]:
        events = self._end_bare_call(complete=True)
        if block.type == "redacted_thinking" and block.data:
            return [*events, ReasoningSealed({"redacted": block.data})]
        if block.type != "tool_use":
            self._signature = block.signature or ""
            return events + _build_text_events(block.text, block.thinking)
        call = self._calls[at] = _OpenCall(self._call_count, bytes(block.input).decode("utf-8", "replace"))
        self._call_count += 1
        return [*events, CallStart(call.index, block.id, block.name)]

    def _read_delta(self, at: int, delta: _Delta) -> list[Event]:
        if not delta.partial_json:
            self._signature += delta.signature or ""
            return _build_text_events(delta.text, delta.thinking)
        call = self._calls.get(at)
        if call is None:
            return []
        call.fragments.append(delta.partial_json)
        return [CallDelta(call.index, delta.partial_json)]

    def _stop_block(self, at: int) -> list[Event]:
        """End a block. Only its arguments show whether a call is complete: a truncated one is stopped as well."""
        signature, self._signature = self._signature, ""
        if signature not in ("", GATEWAY_SIGNATURE):
            return [ReasoningSealed({"signature": signature})]
        call = self._calls.pop(at, None)
        if call is None:
            return []
        if call.fragments:
            return [CallEnd(call.index, is_json_object("".join(call.fragments)))]
        if is_json_object(call.initial_arguments) and call.initial_arguments != "{}":
            return [CallDelta(call.index, call.initial_arguments), CallEnd(call.index)]
        self._bare_call = call
        return []

    def _end_bare_call(self, *, complete: bool) -> list[Event]:
        """Write the end of a call without arguments."""
        call, self._bare_call = self._bare_call, None
        if call is None:
            return []
        return [CallDelta(call.index, "{}"), CallEnd(call.index)] if complete else [CallEnd(call.index, complete=False)]

    def _read_message(self, message: _StreamEvent) -> list[Event]:
        """Read a complete message, from a server that does not stream."""
        self._stop_reason = message.stop_reason
        self._update_usage(message.usage)
        events: list[Event] = []
        for at, block in enumerate(message.content):
            events += self._start_block(at, block) + self._stop_block(at)
        return events + self._finish_turn()

    def _update_usage(self, usage: _Usage | None) -> None:
        """Update the token counts. They are totals: the last of each is right."""
        for name in _Usage.__struct_fields__:
            if (value := getattr(usage, name, None)) is not None:
                setattr(self._usage, name, value)

    def _finish_turn(self) -> list[Event]:
        self._is_over = True
        reason = _FINISH_REASONS.get(self._stop_reason or "", "stop")
        events = self._end_bare_call(complete=reason != "length")
        events += [CallEnd(call.index, complete=False) for call in self._calls.values()]
        usage = _parse_usage(self._usage)
        if usage != Usage():
            events.append(UsageSeen(usage))
        return [*events, Finish(reason)]


def _build_text_events(text: str | None, thinking: str | None) -> list[Event]:
    if text:
        return [TextDelta(text)]
    return [ReasoningDelta(thinking)] if thinking else []


def _parse_usage(usage: _Usage) -> Usage:
    """Return the usage. This API counts cached tokens separately from `input_tokens`; all others include them."""
    cached = usage.cache_read_input_tokens or 0
    return Usage(
        prompt_tokens=(usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached,
        completion_tokens=usage.output_tokens or 0,
        reasoning_tokens=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
        cached_tokens=cached,
    )


def _parse_stream_error(error: Any) -> BackendError:
    kind = error.get("type") if isinstance(error, dict) else None
    return parse_backend_error(_ERROR_STATUSES.get(str(kind), 500), msgspec.json.encode(error))
