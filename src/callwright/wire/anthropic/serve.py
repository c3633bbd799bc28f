"""Anthropic Messages, server side: events as the stream of `/v1/messages`, the complete message, and errors.

    message_start ( content_block_start content_block_delta* content_block_stop )* message_delta message_stop

Blocks are numbered and one is open at a time, like calls in our own events, so each run of text, each run of reasoning
and each call becomes a block. Every event has its `event:` line, and both usages are always present: without them
anthropic-py 2.8 and @ai-sdk/anthropic fail or retry.

A turn that fails ends in `error` and `message_stop`. The SDKs raise at the first; other clients see the end. There is
no `message_delta` then: its stop reason would make the failure look like success (@ai-sdk/anthropic 3.0 reports
`stop`). An open call stays open: at its `content_block_stop` that SDK would take the partial call for a complete one.
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
from callwright.wire.anthropic.decode import GATEWAY_SIGNATURE, decode_request
from callwright.wire.argument_chunks import ArgumentChunker
from callwright.wire.argument_json import to_single_line
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle
from callwright.wire.framing import encode_comment as remark
from callwright.wire.framing import encode_json_string
from callwright.wire.text_batching import TextBatcher

__all__ = ["AnthropicEncoder", "AnthropicServerCodec"]

_encode_json = msgspec.json.encode

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
_UNFINISHED_TURN = ErrorResponse(status=502, message="the model's turn ended early", fault="backend", kind="api_error")

_BlockKind = Literal["text", "thinking", "tool_use"]
_DELTA_FIELDS: dict[_BlockKind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
_EMPTY_BLOCKS: dict[_BlockKind, dict[str, str]] = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}
"""The content of a block of text when it starts."""


def _format_event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode_json({"type": kind, **fields}))


class AnthropicEncoder:
    """Encodes one client's stream."""

    def __init__(self, head: ResponseHead, style: StreamStyle) -> None:
        self._head = head
        self._style = style
        self._text_batcher = TextBatcher()
        self._argument_chunker = ArgumentChunker(style.arguments)
        self._index = -1
        self._open_kind: _BlockKind | None = None
        self._delta_prefix = b""
        """A delta event of the open block, up to its text."""
        self._signature = GATEWAY_SIGNATURE
        """The signature of the open block, if it is reasoning."""
        self._usage = Usage()
        self._finish: Finish | None = None
        self._is_over = False

    @property
    def has_pending(self) -> bool:
        return self._text_batcher.has_pending

    def begin_stream(self) -> bytes:
        return _format_event("message_start", message=_build_message(self._head, [], None, Usage()))

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        return b"" if self._is_over else b"".join([self._encode_event(event) for event in events])

    def _encode_event(self, event: Event) -> bytes:
        match event:
            case TextDelta(text):
                return self._write_text("text", text)
            case CallDelta(_, text):
                return self._write_pieces(self._argument_chunker.feed(text))
            case ReasoningDelta(text):
                return self._write_text("thinking", text) if self._style.reasoning_fields else b""
            case ReasoningSealed(opaque):
                return self._write_seal(opaque) if self._style.reasoning_fields else b""
            case CallStart():
                return self._open_block("tool_use", id=_to_raw(event.id), name=_to_raw(event.name), input={})
            case CallEnd():
                return self._write_pieces(self._argument_chunker.drain()) + self._close_block()
            case UsageSeen(usage):
                self._usage = usage
            case Finish():
                self._finish = event
            case _:
                pass
        return b""

    def _write_text(self, kind: _BlockKind, text: str) -> bytes:
        """Write more text or reasoning."""
        start = b"" if self._open_kind == kind else self._open_block(kind, **_EMPTY_BLOCKS[kind])
        piece = self._text_batcher.feed(text)
        return start + self._format_delta(piece) if piece else start

    def _write_seal(self, opaque: dict[str, Any]) -> bytes:
        """Write the end of reasoning as a server of this API sealed it. Seals of other APIs are ignored."""
        if "redacted" in opaque:
            out = self._close_block()
            self._index += 1
            block = {"type": "redacted_thinking", "data": _to_raw(opaque["redacted"])}
            start = _format_event("content_block_start", index=self._index, content_block=block)
            return out + start + _format_event("content_block_stop", index=self._index)
        if "signature" not in opaque:
            return b""
        start = b"" if self._open_kind == "thinking" else self._open_block("thinking", **_EMPTY_BLOCKS["thinking"])
        self._signature = opaque["signature"]
        return start + self._close_block()

    def _write_pieces(self, pieces: Iterable[str]) -> bytes:
        return b"".join([self._format_delta(piece) for piece in pieces])

    def _format_delta(self, text: str) -> bytes:
        return self._delta_prefix + encode_json_string(text) + b"}}\n\n"

    def _open_block(self, kind: _BlockKind, **fields: Any) -> bytes:
        """Open a block and close the previous one."""
        out = self._close_block()
        self._index += 1
        self._open_kind = kind
        name, field = _DELTA_FIELDS[kind]
        self._delta_prefix = (
            f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{self._index},'
            f'"delta":{{"type":"{name}","{field}":'
        ).encode()
        return out + _format_event("content_block_start", index=self._index, content_block={"type": kind, **fields})

    def _close_block(self) -> bytes:
        """Close the open block."""
        if self._open_kind is None:
            return b""
        out = self._write_pieces(self._text_batcher.drain())
        if self._open_kind == "thinking":
            signature = {"type": "signature_delta", "signature": _to_raw(self._signature)}
            out += _format_event("content_block_delta", index=self._index, delta=signature)
            self._signature = GATEWAY_SIGNATURE
        self._open_kind = None
        return out + _format_event("content_block_stop", index=self._index)

    def flush(self) -> bytes:
        piece = self._text_batcher.flush()
        return self._format_delta(piece) if piece else b""

    def encode_heartbeat(self) -> bytes:
        return b"" if self._is_over or self._style.heartbeat == "none" else _format_event("ping")

    def fail_stream(self, error: ErrorResponse) -> bytes:
        if self._is_over:
            return b""
        out = b"" if self._open_kind == "tool_use" else self._close_block()
        self._is_over = True
        return out + _format_event("error", error=_build_error(error)) + _format_event("message_stop")

    def end_stream(self, comment: str = "") -> bytes:
        if self._is_over:
            return b""
        if self._finish is None or self._finish.reason == "error":
            return self.fail_stream(_UNFINISHED_TURN)
        out = self._close_block()
        self._is_over = True
        delta = {"stop_reason": _map_stop_reason(self._finish.reason), "stop_sequence": None}
        last = _format_event("message_delta", delta=delta, usage=_build_usage(self._usage))
        return out + last + (remark(comment) if comment else b"") + _format_event("message_stop")


class AnthropicServerCodec:
    """The server half of this wire."""

    name = "anthropic"
    content_type = "text/event-stream"

    def decode_request(self, body: bytes) -> ClientRequest:
        return decode_request(body)

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        return AnthropicEncoder(head, style)

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        """Encode the message. A truncated call is omitted: a client must not run it."""
        turn = turns[0]
        content = (
            [block for each in turn.thoughts for block in _build_thinking_blocks(each)]
            if style.reasoning_fields
            else []
        )
        if turn.text:
            content.append({"type": "text", "text": _to_raw(turn.text)})
        content += [
            {
                "type": "tool_use",
                "id": _to_raw(call.id),
                "name": _to_raw(call.name),
                "input": to_single_line(call.arguments),
            }
            for call in turn.tool_calls
            if call.complete
        ]
        return _encode_json(_build_message(head, content, _map_stop_reason(turn.finish_reason), turn.usage or Usage()))

    def encode_error(self, error: ErrorResponse) -> bytes:
        return _encode_json({"type": "error", "error": _build_error(error)})


def _build_thinking_blocks(thought: Reasoning) -> Iterator[dict[str, Any]]:
    """Yield a section of reasoning as blocks; none for a seal of another API without text."""
    opaque = thought.opaque or {}
    if thought.text or "signature" in opaque:
        signature = _to_raw(opaque.get("signature", GATEWAY_SIGNATURE))
        yield {"type": "thinking", "thinking": _to_raw(thought.text), "signature": signature}
    if "redacted" in opaque:
        yield {"type": "redacted_thinking", "data": _to_raw(opaque["redacted"])}


def _to_raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(encode_json_string(text))


def _map_stop_reason(reason: FinishReason | None) -> str:
    return _STOP_REASONS.get(reason or "", "end_turn")


def _build_message(
    head: ResponseHead, content: list[dict[str, Any]], stop_reason: str | None, usage: Usage
) -> dict[str, Any]:
    return {
        "id": f"msg_{head.id}",
        "type": "message",
        "role": "assistant",
        "model": _to_raw(head.model),
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _build_usage(usage),
    }


def _build_usage(usage: Usage) -> dict[str, Any]:
    """Encode the usage. This API counts cached tokens separately from `input_tokens`."""
    counts: dict[str, Any] = {
        "input_tokens": max(usage.prompt_tokens - usage.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def _build_error(error: ErrorResponse) -> dict[str, Any]:
    kind = "api_error" if error.status >= 500 else "invalid_request_error"
    return {"type": _ERROR_TYPES.get(error.status, kind), "message": _to_raw(error.text)}
