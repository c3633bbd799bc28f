"""Anthropic Messages, what clients get: events as the stream of `/v1/messages`, the answer in one piece, and errors.

    message_start ( content_block_start content_block_delta* content_block_stop )* message_delta message_stop

Blocks are numbered and one is open at a time, as calls are in our own events, so each run of text, each run of
reasoning and each call becomes a block. Every event has its `event:` line and both usages are always there: without
them anthropic-py 2.8 and @ai-sdk/anthropic fail or ask again.

A turn that fails ends in `error` and `message_stop`. The SDKs raise at the first; who does not know it sees the end.
There is no `message_delta` then: its stop reason would make the failure look like success (@ai-sdk/anthropic 3.0
reports `stop`). An open call stays open: at its `content_block_stop` that SDK would take the half call for a whole one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

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
from callwright.model import Reasoning, Usage
from callwright.turn import Collected
from callwright.wire.anthropic.decode import OUR_SIGNATURE, decode
from callwright.wire.base import Ask, Encoder, Head, Problem, Style
from callwright.wire.cuts import Cuts
from callwright.wire.framing import comment as remark
from callwright.wire.framing import quoted
from callwright.wire.pieces import Pieces
from callwright.wire.problems import told
from callwright.wire.shapes import on_one_line

__all__ = ["AnthropicEncoder", "ServedAnthropic"]

_encode = msgspec.json.encode

_STOP_REASONS = {"tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_UNFINISHED = Problem(
    status=502, message="the model's turn broke off before its end", fault="backend", kind="api_error"
)

_Block = Literal["text", "thinking", "tool_use"]
_DELTAS: dict[_Block, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
_EMPTY: dict[_Block, dict[str, str]] = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
"""How a block of text begins."""


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, **fields}))


class AnthropicEncoder:
    """One client's stream."""

    def __init__(self, head: Head, style: Style) -> None:
        self._head = head
        self._style = style
        self._pieces = Pieces()
        self._cuts = Cuts(style.arguments)
        self._index = -1
        self._open: _Block | None = None
        self._prefix = b""
        """Of a delta of the open block, up to its text."""
        self._signature = OUR_SIGNATURE
        """Of the open block, if that is thinking."""
        self._usage = Usage()
        self._finish: Finish | None = None
        self._over = False

    @property
    def holding(self) -> bool:
        return self._pieces.holding

    def begin(self) -> bytes:
        return _event("message_start", message=_message(self._head, [], None, Usage()))

    def encode(self, events: Sequence[Event], choice: int = 0) -> bytes:
        return b"" if self._over else b"".join([self._one(event) for event in events])

    def _one(self, event: Event) -> bytes:
        match event:
            case TextDelta(text):
                return self._say("text", text)
            case CallDelta(_, text):
                return self._written(self._cuts.feed(text))
            case ReasoningDelta(text):
                return self._say("thinking", text) if self._style.reasoning_fields else b""
            case ReasoningSealed(opaque):
                return self._seal(opaque) if self._style.reasoning_fields else b""
            case CallStart():
                return self._start("tool_use", id=_raw(event.id), name=_raw(event.name), input={})
            case CallEnd():
                return self._written(self._cuts.drain()) + self._stop()
            case UsageSeen(usage):
                self._usage = usage
            case Finish():
                self._finish = event
            case _:
                pass
        return b""

    def _say(self, kind: _Block, text: str) -> bytes:
        """More text or reasoning."""
        start = b"" if self._open == kind else self._start(kind, **_EMPTY[kind])
        piece = self._pieces.feed(text)
        return start + self._delta(piece) if piece else start

    def _seal(self, opaque: dict[str, Any]) -> bytes:
        """The end of thinking as a server of this API told it. Other seals mean nothing to who speaks it."""
        if "redacted" in opaque:
            out = self._stop()
            self._index += 1
            block = {"type": "redacted_thinking", "data": _raw(opaque["redacted"])}
            start = _event("content_block_start", index=self._index, content_block=block)
            return out + start + _event("content_block_stop", index=self._index)
        if "signature" not in opaque:
            return b""
        start = b"" if self._open == "thinking" else self._start("thinking", **_EMPTY["thinking"])
        self._signature = opaque["signature"]
        return start + self._stop()

    def _written(self, pieces: Iterable[str]) -> bytes:
        return b"".join([self._delta(piece) for piece in pieces])

    def _delta(self, text: str) -> bytes:
        return self._prefix + quoted(text) + b"}}\n\n"

    def _start(self, kind: _Block, **fields: Any) -> bytes:
        """Open a block; what was open is over."""
        out = self._stop()
        self._index += 1
        self._open = kind
        name, field = _DELTAS[kind]
        self._prefix = (
            f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{self._index},'
            f'"delta":{{"type":"{name}","{field}":'
        ).encode()
        return out + _event("content_block_start", index=self._index, content_block={"type": kind, **fields})

    def _stop(self) -> bytes:
        """Close the open block."""
        if self._open is None:
            return b""
        out = self._written(self._pieces.drain())
        if self._open == "thinking":
            signature = {"type": "signature_delta", "signature": _raw(self._signature)}
            out += _event("content_block_delta", index=self._index, delta=signature)
            self._signature = OUR_SIGNATURE
        self._open = None
        return out + _event("content_block_stop", index=self._index)

    def flush(self) -> bytes:
        piece = self._pieces.flush()
        return self._delta(piece) if piece else b""

    def heartbeat(self) -> bytes:
        return b"" if self._over or self._style.heartbeat == "none" else _event("ping")

    def fail(self, problem: Problem) -> bytes:
        if self._over:
            return b""
        out = b"" if self._open == "tool_use" else self._stop()
        self._over = True
        return out + _event("error", error=_error(problem)) + _event("message_stop")

    def end(self, comment: str = "") -> bytes:
        if self._over:
            return b""
        if self._finish is None or self._finish.reason == "error":
            return self.fail(_UNFINISHED)
        out = self._stop()
        self._over = True
        delta = {"stop_reason": _stop_reason(self._finish.reason), "stop_sequence": None}
        last = _event("message_delta", delta=delta, usage=_usage(self._usage))
        return out + last + (remark(comment) if comment else b"") + _event("message_stop")


class ServedAnthropic:
    """The serving half of this wire."""

    name = "anthropic"
    content_type = "text/event-stream"

    def decode(self, body: bytes) -> Ask:
        return decode(body)

    def encoder(self, ask: Ask, head: Head, style: Style) -> Encoder:
        return AnthropicEncoder(head, style)

    def whole(self, ask: Ask, head: Head, style: Style, turns: Sequence[Collected]) -> bytes:
        """The message. A call that was cut is left out: nobody may run half a call."""
        turn = turns[0]
        content = [block for each in turn.thoughts for block in _thinking(each)] if style.reasoning_fields else []
        if turn.text:
            content.append({"type": "text", "text": _raw(turn.text)})
        content += [
            {"type": "tool_use", "id": _raw(call.id), "name": _raw(call.name), "input": on_one_line(call.arguments)}
            for call in turn.tool_calls
            if call.complete
        ]
        return _encode(_message(head, content, _stop_reason(turn.finish_reason), turn.usage or Usage()))

    def problem(self, problem: Problem) -> bytes:
        return _encode({"type": "error", "error": _error(problem)})


def _thinking(thought: Reasoning) -> Iterator[dict[str, Any]]:
    """A stretch of reasoning as blocks; none for the seal alone of another API."""
    opaque = thought.opaque or {}
    if thought.text or "signature" in opaque:
        signature = _raw(opaque.get("signature", OUR_SIGNATURE))
        yield {"type": "thinking", "thinking": _raw(thought.text), "signature": signature}
    if "redacted" in opaque:
        yield {"type": "redacted_thinking", "data": _raw(opaque["redacted"])}


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(quoted(text))


def _stop_reason(reason: FinishReason | None) -> str:
    return _STOP_REASONS.get(reason or "", "end_turn")


def _message(head: Head, content: list[dict[str, Any]], stop_reason: str | None, usage: Usage) -> dict[str, Any]:
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": _raw(head.model),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _usage(usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    """This API counts cached tokens beside `input_tokens`, not among them."""
    counts: dict[str, Any] = {
        "input_tokens": max(usage.prompt_tokens - usage.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def _error(problem: Problem) -> dict[str, Any]:
    kind = "api_error" if problem.status >= 500 else "invalid_request_error"
    return {"type": _ERROR_TYPES.get(problem.status, kind), "message": _raw(told(problem))}
