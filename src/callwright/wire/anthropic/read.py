"""Anthropic Messages, what a server answers: its stream, or its message in one piece, as events.

Each frame is decoded once, into the few fields that matter. Blocks about tools that the server runs itself are passed
over. What the server signed, or thought and does not show, is sealed with what it wants to see again.
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
from callwright.wire.anthropic.decode import OUR_SIGNATURE
from callwright.wire.framing import LIMIT, UNREADABLE, SseReader
from callwright.wire.openai_errors import refusal
from callwright.wire.reading import EventReader
from callwright.wire.shapes import is_object

__all__ = ["AnthropicReader"]

_REASONS: dict[str, FinishReason] = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_STATUSES = {
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
"""The status that an error would have had before the stream began."""


class _Block(msgspec.Struct):
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


class _Details(msgspec.Struct):
    thinking_tokens: int = 0


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _Details | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _Frame(msgspec.Struct):
    """An event of the stream; `content` and `stop_reason` are those of a message in one piece."""

    type: str = ""
    index: int = 0
    content_block: _Block | None = None
    delta: _Delta | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None
    content: list[_Block] = []
    stop_reason: str | None = None


class _Call:
    """A call whose block is open."""

    def __init__(self, index: int, given: str) -> None:
        self.index = index
        self.given = given
        """What its start has for arguments: all of them, or an empty object."""
        self.fragments: list[str] = []


_decode = msgspec.json.Decoder(_Frame).decode


class AnthropicReader(EventReader):
    """One server's stream."""

    def __init__(self) -> None:
        self._frames = SseReader()
        self._begun = False
        self._whole: bytearray | None = None
        """The body, when it is no stream."""
        self._calls: dict[int, _Call] = {}
        self._bare: _Call | None = None
        """A call that ended without arguments: it takes none, or the limit was there. What follows tells."""
        self._signature = ""
        """Of the open block."""
        self._count = 0
        self._usage = _Usage()
        self._reason: str | None = None
        self._over = False

    def _fed(self, data: bytes, out: list[Event]) -> None:
        if not self._begun and data.strip():
            self._begun = True
            if data.lstrip().startswith(b"{"):
                self._whole = bytearray()
        if self._whole is None:
            for _, frame in self._frames.feed(data):
                out += self._frame(frame)
            return
        self._whole += data
        if len(self._whole) > LIMIT:
            raise WireError(f"the server's answer is longer than {LIMIT} bytes")

    def _closed(self, out: list[Event]) -> None:
        frames = self._frames.close() if self._whole is None else [(b"", bytes(self._whole))]
        for _, frame in frames:
            out += self._frame(frame)
        if self._over:
            return
        if self._reason is None:
            raise BackendError("the server closed the stream before the end of its message", retryable=True)
        out += self._finish()

    def _frame(self, data: bytes) -> list[Event]:
        if self._over:
            return []
        try:
            frame = _decode(data)
        except UNREADABLE as problem:
            raise WireError(f"the server sent an event that cannot be read: {problem}") from problem
        if frame.error:
            raise _error(frame.error)
        match frame.type:
            case "content_block_delta" if frame.delta:
                return self._delta(frame.index, frame.delta)
            case "content_block_start" if frame.content_block:
                return self._start(frame.index, frame.content_block)
            case "content_block_stop":
                return self._stop(frame.index)
            case "message_start" if frame.message:
                self._count_tokens(frame.message.usage)
            case "message_delta" if frame.delta:
                self._reason = frame.delta.stop_reason
                self._count_tokens(frame.usage)
            case "message_stop":
                return self._finish()
            case "message":
                return self._message(frame)
            case _:
                pass
        return []

    def _start(self, at: int, block: _Block) -> list[Event]:
        events = self._settle(complete=True)
        if block.type == "redacted_thinking" and block.data:
            return [*events, ReasoningSealed({"redacted": block.data})]
        if block.type != "tool_use":
            self._signature = block.signature or ""
            return events + _said(block.text, block.thinking)
        call = self._calls[at] = _Call(self._count, bytes(block.input).decode("utf-8", "replace"))
        self._count += 1
        return [*events, CallStart(call.index, block.id, block.name)]

    def _delta(self, at: int, delta: _Delta) -> list[Event]:
        if not delta.partial_json:
            self._signature += delta.signature or ""
            return _said(delta.text, delta.thinking)
        call = self._calls.get(at)
        if call is None:
            return []
        call.fragments.append(delta.partial_json)
        return [CallDelta(call.index, delta.partial_json)]

    def _stop(self, at: int) -> list[Event]:
        """A block is over. That its call is whole only its arguments can say: one cut by a limit is stopped as well."""
        signature, self._signature = self._signature, ""
        if signature not in ("", OUR_SIGNATURE):
            return [ReasoningSealed({"signature": signature})]
        call = self._calls.pop(at, None)
        if call is None:
            return []
        if call.fragments:
            return [CallEnd(call.index, is_object("".join(call.fragments)))]
        if is_object(call.given) and call.given != "{}":
            return [CallDelta(call.index, call.given), CallEnd(call.index)]
        self._bare = call
        return []

    def _settle(self, *, complete: bool) -> list[Event]:
        """Say the end of a call without arguments."""
        call, self._bare = self._bare, None
        if call is None:
            return []
        return [CallDelta(call.index, "{}"), CallEnd(call.index)] if complete else [CallEnd(call.index, complete=False)]

    def _message(self, message: _Frame) -> list[Event]:
        """An answer in one piece, from a server that does not stream."""
        self._reason = message.stop_reason
        self._count_tokens(message.usage)
        events: list[Event] = []
        for at, block in enumerate(message.content):
            events += self._start(at, block) + self._stop(at)
        return events + self._finish()

    def _count_tokens(self, usage: _Usage | None) -> None:
        """Counts are of all so far: the last of each is right."""
        for name in _Usage.__struct_fields__:
            if (value := getattr(usage, name, None)) is not None:
                setattr(self._usage, name, value)

    def _finish(self) -> list[Event]:
        self._over = True
        reason = _REASONS.get(self._reason or "", "stop")
        events = self._settle(complete=reason != "length")
        events += [CallEnd(call.index, complete=False) for call in self._calls.values()]
        usage = _usage(self._usage)
        if usage != Usage():
            events.append(UsageSeen(usage))
        return [*events, Finish(reason)]


def _said(text: str | None, thinking: str | None) -> list[Event]:
    if text:
        return [TextDelta(text)]
    return [ReasoningDelta(thinking)] if thinking else []


def _usage(usage: _Usage) -> Usage:
    """Cached tokens are counted beside `input_tokens` here, and among the prompt's everywhere else."""
    cached = usage.cache_read_input_tokens or 0
    return Usage(
        prompt_tokens=(usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached,
        completion_tokens=usage.output_tokens or 0,
        reasoning_tokens=usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0,
        cached_tokens=cached,
    )


def _error(error: Any) -> BackendError:
    kind = error.get("type") if isinstance(error, dict) else None
    return refusal(_STATUSES.get(str(kind), 500), msgspec.json.encode(error))
