"""Ollama's API, server side: events as lines of JSON, the complete answer, and errors.

    {"model": …, "created_at": …, "message": {"role": "assistant", "content": "Hello"}, "done": false}
    {"model": …, "created_at": …, "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": …}

This API has no partial calls: each call is sent when it ends, and a truncated one is not sent. Only the last line has
`done: true`. A turn that fails has a line with `error` before it: ollama-py 0.6 and ollama-js 0.6 raise there; other
clients see the end all the same, with a reason that is not success.

`/api/generate` has the same content under other names, and no calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import ToolCall, Usage
from callwright.turn import Collected
from callwright.wire.argument_json import to_single_line
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle
from callwright.wire.framing import encode_json_string
from callwright.wire.ollama.decode import decode_chat_request, decode_generate_request
from callwright.wire.text_batching import TextBatcher

__all__ = ["OLLAMA_CHAT_CODEC", "OLLAMA_GENERATE_CODEC", "OllamaEncoder", "OllamaServerCodec"]

_encode_json = msgspec.json.encode
_TextField = Literal["content", "thinking"]
_FieldsBuilder = Callable[[dict[str, Any]], dict[str, Any]]
"""Maps the fields of a chat message to the fields of a path."""

_UNFINISHED_TURN = ErrorResponse(status=502, message="the model's turn ended early", fault="backend")


def _build_chat_fields(message_fields: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", **message_fields}}


def _build_generate_fields(message_fields: dict[str, Any]) -> dict[str, Any]:
    thinking = {"thinking": message_fields["thinking"]} if "thinking" in message_fields else {}
    return {"response": message_fields.get("content", ""), **thinking}


class OllamaEncoder:
    """Encodes one client's stream."""

    def __init__(self, head: ResponseHead, style: StreamStyle, build_fields: _FieldsBuilder) -> None:
        self._head = head
        self._style = style
        self._build_fields = build_fields
        self._text_batcher = TextBatcher()
        self._text_field: _TextField = "content"
        self._line_frames = {kind: _split_line(head, build_fields, kind) for kind in ("content", "thinking")}
        """The bytes before and after the text of a line."""
        self._call_start = CallStart(0, "", "")
        self._fragments: list[str] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None
        self._is_over = False

    @property
    def has_pending(self) -> bool:
        return self._text_batcher.has_pending

    def begin_stream(self) -> bytes:
        """Return nothing: this stream has no head."""
        return b""

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        return b"" if self._is_over else b"".join([self._encode_event(event) for event in events])

    def _encode_event(self, event: Event) -> bytes:
        match event:
            case TextDelta(text):
                return self._write_text("content", text)
            case CallDelta(_, text):
                self._fragments.append(text)
            case ReasoningDelta(text):
                return self._write_text("thinking", text) if self._style.reasoning_fields else b""
            case CallStart():
                self._call_start = event
                self._fragments.clear()
            case CallEnd(_, True):
                call = ToolCall(self._call_start.id, self._call_start.name, "".join(self._fragments))
                return self._drain_text() + _format_line(
                    self._head, self._build_fields(_build_calls([call], event.index))
                )
            case UsageSeen(usage):
                self._usage = usage
            case Finish():
                self._finish = event
            case _:
                pass
        return b""

    def _write_text(self, kind: _TextField, text: str) -> bytes:
        before = b"" if kind == self._text_field else self._drain_text()
        self._text_field = kind
        piece = self._text_batcher.feed(text)
        return before + self._format_text_line(piece) if piece else before

    def _format_text_line(self, piece: str) -> bytes:
        start, end = self._line_frames[self._text_field]
        return start + encode_json_string(piece) + end

    def _drain_text(self) -> bytes:
        return b"".join([self._format_text_line(piece) for piece in self._text_batcher.drain()])

    def flush(self) -> bytes:
        piece = self._text_batcher.flush()
        return self._format_text_line(piece) if piece else b""

    def encode_heartbeat(self) -> bytes:
        """Return an empty piece of text, if the client expects events: lines of JSON have no comments."""
        if self._is_over or self._style.heartbeat != "event":
            return b""
        return _format_line(self._head, self._build_fields({}))

    def fail_stream(self, error: ErrorResponse) -> bytes:
        if self._is_over:
            return b""
        self._is_over = True
        return (
            self._drain_text()
            + _format_error(error)
            + b"\n"
            + _format_line(self._head, self._build_fields({}), _build_ending("error", self._usage))
        )

    def end_stream(self, comment: str = "") -> bytes:
        if self._is_over:
            return b""
        if self._finish is None or self._finish.reason == "error":
            return self.fail_stream(_UNFINISHED_TURN)
        self._is_over = True
        return self._drain_text() + _format_line(
            self._head, self._build_fields({}), _build_ending(_map_done_reason(self._finish.reason), self._usage)
        )


class OllamaServerCodec:
    """The server half of this wire, for one of its two paths."""

    content_type = "application/x-ndjson"

    def __init__(self, name: str, decode: Callable[[bytes], ClientRequest], build_fields: _FieldsBuilder) -> None:
        self.name = name
        self._decode_body = decode
        self._build_fields = build_fields

    def decode_request(self, body: bytes) -> ClientRequest:
        return self._decode_body(body)

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        return OllamaEncoder(head, style, self._build_fields)

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        turn = turns[0]
        message_fields: dict[str, Any] = {"content": _to_raw(turn.text)}
        if turn.reasoning and style.reasoning_fields:
            message_fields["thinking"] = _to_raw(turn.reasoning)
        if calls := [call for call in turn.tool_calls if call.complete]:
            message_fields |= _build_calls(calls)
        return _format_line(
            head, self._build_fields(message_fields), _build_ending(_map_done_reason(turn.finish_reason), turn.usage)
        )

    def encode_error(self, error: ErrorResponse) -> bytes:
        return _format_error(error)


def _format_error(error: ErrorResponse) -> bytes:
    return b'{"error":' + encode_json_string(error.text) + b"}"


def _to_raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(encode_json_string(text))


def _format_line(head: ResponseHead, fields: dict[str, Any], ending: dict[str, Any] | None = None) -> bytes:
    created = datetime.fromtimestamp(head.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    top = {"model": _to_raw(head.model), "created_at": created}
    return _encode_json({**top, **fields, **(ending or {"done": False})}) + b"\n"


def _split_line(head: ResponseHead, build_fields: _FieldsBuilder, kind: str) -> tuple[bytes, bytes]:
    """Split a line at the position of its text."""
    hole = b'"\0"'
    start, _, end = _format_line(head, build_fields({kind: msgspec.Raw(hole)})).partition(hole)
    return start, end


def _build_calls(calls: Sequence[ToolCall], first: int = 0) -> dict[str, Any]:
    return {
        "tool_calls": [
            {
                "id": _to_raw(call.id),
                "function": {"index": index, "name": _to_raw(call.name), "arguments": to_single_line(call.arguments)},
            }
            for index, call in enumerate(calls, first)
        ]
    }


def _map_done_reason(reason: str | None) -> str:
    return "length" if reason == "length" else "stop"


def _build_ending(reason: str, usage: Usage | None) -> dict[str, Any]:
    """Build the fields of the last line. Wires have no clock: durations are 0, which means unknown."""
    usage = usage or Usage()
    return {
        "done": True,
        "done_reason": reason,
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": 0,
        "eval_count": usage.completion_tokens,
        "eval_duration": 0,
    }


OLLAMA_CHAT_CODEC = OllamaServerCodec("ollama", decode_chat_request, _build_chat_fields)
OLLAMA_GENERATE_CODEC = OllamaServerCodec("ollama_generate", decode_generate_request, _build_generate_fields)
