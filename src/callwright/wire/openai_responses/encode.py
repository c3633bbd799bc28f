"""Encode events as a Responses stream, and as the response at its end, with one writer for both.

Every item that is added is completed before the one terminal event, which always comes last. The exception is a
truncated call: Codex (0.166, measured) runs every call that is reported as done, whatever its status, so a partial call
is never completed, and is not in the response. All events have an `event:` line and a `sequence_number` that counts
from 0. A delta is written with a prepared prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

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
from callwright.wire.argument_chunks import ArgumentChunker
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamStyle, ToolOrigin
from callwright.wire.framing import SSE_DATA, SSE_END, encode_comment, encode_json_string
from callwright.wire.openai_responses.output_items import (
    CustomCallItem,
    FunctionCallItem,
    ItemEvent,
    ItemStatus,
    MessageItem,
    OutputItem,
    ReasoningItem,
    ResponseObject,
)
from callwright.wire.text_batching import TextBatcher

__all__ = ["OpenAIResponsesEncoder"]

_ENDINGS: dict[FinishReason, dict[str, str]] = {
    "stop": {"status": "completed"},
    "tool_calls": {"status": "completed"},
    "length": {"status": "incomplete", "incomplete": "max_output_tokens"},
    "content_filter": {"status": "incomplete", "incomplete": "content_filter"},
    "error": {"status": "failed", "code": "server_error", "message": "the model's turn ended in an error"},
}
_COMPLETE_REASONS = ("stop", "tool_calls")
_UNFINISHED_TURN = {"status": "failed", "code": "server_error", "message": "the answer ended early"}

_encode_json = msgspec.json.Encoder().encode

TextItemT = TypeVar("TextItemT", bound=MessageItem | ReasoningItem)


class OpenAIResponsesEncoder:
    """Encodes one answer."""

    def __init__(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> None:
        self.response = ResponseObject(client_request, head)
        self._head = head
        self._origins = client_request.origins
        self._style = style
        self._sequence = 0
        self._out: list[bytes] = []
        self._open_item: OutputItem | None = None
        self._delta_prefix = b""
        self._item_count = 0
        self._has_cut_call = False
        self._counts = {"msg": 0, "rs": 0, "call": 0}
        self._text_batchers = {MessageItem.prefix: TextBatcher(), ReasoningItem.prefix: TextBatcher()}
        self._argument_chunker = ArgumentChunker(style.arguments)
        self._finish: dict[str, str] | None = None
        self._is_over = False

    # ── the client's stream ──────────────────────────────────────────────────────────────────────

    @property
    def has_pending(self) -> bool:
        """Whether text waits to be joined with what follows."""
        pieces = self._get_open_batcher()
        return pieces is not None and pieces.has_pending

    def begin_stream(self) -> bytes:
        """Return the events before the first item."""
        for kind in ("response.created", "response.in_progress"):
            self._emit_event(kind, {"response": self.response.build_body()})
        return self._take_output()

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """Encode the next events. Those after the turn's end are dropped: the client has seen the last event."""
        for event in events:
            if self._finish is not None or choice:
                break
            self._write_event(event)
        return self._take_output()

    def flush(self) -> bytes:
        """Return the text that was held back."""
        pieces = self._get_open_batcher()
        if self._open_item and pieces and (text := pieces.flush()):
            self._emit_delta(self._open_item, text)
        return self._take_output()

    def encode_heartbeat(self) -> bytes:
        """Return an event that keeps the connection alive. Codex counts only events, never comments
        (github.com/openai/codex/issues/31539), and accepts any known event; `response.in_progress` has no other
        effect."""
        if self._is_over or self._style.heartbeat == "none":
            return b""
        if self._style.heartbeat == "comment":
            return encode_comment("keep-alive")
        self._emit_event("response.in_progress", {"response": self.response.build_body()})
        return self._take_output()

    def fail_stream(self, error: ErrorResponse) -> bytes:
        """Encode the failure of the turn. Codex (0.166) handles some codes and retries on all others."""
        return self._finish_response({"status": "failed", "code": _map_error_code(error), "message": error.text})

    def end_stream(self, note: str = "") -> bytes:
        """Return the last event, after a comment if there is one."""
        if note and not self._is_over:
            self._out.append(encode_comment(note))
        return self._finish_response(self._finish or _UNFINISHED_TURN)

    # ── one event ────────────────────────────────────────────────────────────────────────────────

    def _write_event(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._write_text(MessageItem, event.text)
            case ReasoningDelta():
                self._write_text(ReasoningItem, event.text)
            case ReasoningSealed(opaque) if "encrypted_content" in opaque:
                self._ensure_item(ReasoningItem).encrypted = opaque["encrypted_content"]
                self._close_item("completed")
            case CallStart():
                self._close_item("completed")
                origin = self._origins.get(event.name, ToolOrigin(event.name))
                kind = CustomCallItem if origin.kind == "custom" else FunctionCallItem
                self._start_item(kind(self._make_item_id(kind.prefix, "call"), self._item_count, event.id, origin))
            case CallDelta() if isinstance(self._open_item, FunctionCallItem):
                self._write_arguments(self._open_item, self._open_item.read_fragment(event.text))
            case CallEnd() if isinstance(self._open_item, FunctionCallItem):
                if event.complete:
                    self._write_arguments(self._open_item, self._open_item.take_rest())
                self._close_item("completed" if event.complete else "incomplete")
            case UsageSeen():
                self.response.usage = event.usage
            case Finish():
                self._finish = _ENDINGS[
                    "length" if self._has_cut_call and event.reason in _COMPLETE_REASONS else event.reason
                ]
                self._close_item("completed" if self._finish["status"] == "completed" else "incomplete")
            case _:  # malformed text goes only to the journal
                pass

    def _write_text(self, kind: type[MessageItem] | type[ReasoningItem], text: str) -> None:
        item: OutputItem = self._ensure_item(kind)
        if piece := self._text_batchers[kind.prefix].feed(text):
            self._emit_delta(item, piece)

    def _ensure_item(self, kind: type[TextItemT]) -> TextItemT:
        """Return the open item if it is of that kind, otherwise a new one."""
        item = self._open_item
        if type(item) is kind:
            return item
        self._close_item("completed")
        item = kind(self._make_item_id(kind.prefix, kind.prefix), self._item_count)
        self._start_item(item)
        return item

    def _write_arguments(self, call: FunctionCallItem, text: str) -> None:
        """Write text of a call, if there is any, in the chunks that the client expects."""
        for piece in self._argument_chunker.feed(text) if text else ():
            self._emit_delta(call, piece)

    # ── items ────────────────────────────────────────────────────────────────────────────────────

    def _start_item(self, item: OutputItem) -> OutputItem:
        self._open_item = item
        self._item_count += 1
        self._emit_event("response.output_item.added", {"output_index": item.index, "item": item.build_body()})
        self._emit_item_events(item, item.iter_opening_events())
        fields = _encode_json(
            {"type": item.delta_event, "item_id": item.id, "output_index": item.index, **item.location}
        )
        self._delta_prefix = _format_event_prefix(item.delta_event) + fields[:-1] + b',"sequence_number":'
        return item

    def _close_item(self, status: ItemStatus) -> None:
        """End the open item, if there is one."""
        item = self._open_item
        if item is None:
            return
        for text in (self._get_open_batcher() or self._argument_chunker).drain():
            self._emit_delta(item, text)
        self._open_item = None
        if isinstance(item, FunctionCallItem) and status == "incomplete":
            self._has_cut_call = True
            return
        item.close(status)
        self.response.items.append(item)
        self._emit_item_events(item, item.iter_closing_events())
        self._emit_event("response.output_item.done", {"output_index": item.index, "item": item.build_body()})

    def _finish_response(self, ending: dict[str, str]) -> bytes:
        if self._is_over:
            return b""
        self._is_over = True
        self._close_item("incomplete")
        self._finish = ending
        self.response.end_response(**ending)
        self._emit_event(f"response.{ending['status']}", {"response": self.response.build_body()})
        return self._take_output()

    def _make_item_id(self, prefix: str, counted: str) -> str:
        """Make an id that contains the id of this answer: see `previous_response`."""
        number = self._counts[counted]
        self._counts[counted] += 1
        return f"{prefix}_{self._head.id}_{number}"

    def _get_open_batcher(self) -> TextBatcher | None:
        return self._text_batchers.get(self._open_item.prefix) if self._open_item else None

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────

    def _emit_event(self, kind: str, fields: dict[str, Any]) -> None:
        body = _encode_json({"type": kind, "sequence_number": self._sequence, **fields})
        self._sequence += 1
        self._out += (_format_event_prefix(kind), body, SSE_END)

    def _emit_item_events(self, item: OutputItem, events: Iterable[ItemEvent]) -> None:
        for kind, fields in events:
            self._emit_event(kind, {"item_id": item.id, "output_index": item.index, **fields})

    def _emit_delta(self, item: OutputItem, text: str) -> None:
        item.parts.append(text)
        self._out += (self._delta_prefix, b"%d" % self._sequence, b',"delta":', encode_json_string(text), b"}", SSE_END)
        self._sequence += 1

    def _take_output(self) -> bytes:
        out = b"".join(self._out)
        self._out.clear()
        return out


def _format_event_prefix(kind: str) -> bytes:
    return b"event: " + kind.encode() + b"\n" + SSE_DATA


def _map_error_code(error: ErrorResponse) -> str:
    """Map to a code of this API (openai-python 3.49 has a closed list), or to the other one that Codex handles."""
    if error.code == "context_length_exceeded":
        return error.code
    if error.status == 429:
        return "rate_limit_exceeded"
    return "invalid_prompt" if error.fault == "client" else "server_error"
