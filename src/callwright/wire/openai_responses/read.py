"""Read a Responses stream, or a complete response from a server that does not stream.

Servers differ in what they repeat: text arrives as deltas, again in its finished item, again in the last response, and
some send only one of these. Each kind of text is read from the source where it arrives first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from callwright.aggregator import Aggregator, ToolCallDelta
from callwright.errors import BackendError, WireError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Usage
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import JSON_DECODE_ERRORS, MAX_FRAME_BYTES, SseReader, encode_json
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["OpenAIResponsesReader"]

_EVENT_DECODER = msgspec.json.Decoder(Any)
_TextKind = type[TextDelta] | type[ReasoningDelta]
_ITEM_TEXT_KINDS: dict[str, _TextKind] = {"message": TextDelta, "reasoning": ReasoningDelta}
_DELTA_TEXT_KINDS: dict[str, _TextKind] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}
_CALL_EVENTS = frozenset(
    f"response.{kind}.{step}"
    for kind in ("output_item", "function_call_arguments", "custom_tool_call_input")
    for step in ("added", "delta", "done")
)
_RESPONSE_ITEM_EVENT = "response.output.done"
"""Our name for an item of the last response: like an item that is done, but another source."""
_ITEM_DONE_EVENTS = ("response.output_item.done", _RESPONSE_ITEM_EVENT)
_FINAL_EVENTS = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))
_ERROR_STATUSES = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
}


class OpenAIResponsesReader(EventReader):
    """Reads one server's answer, from bytes that may be split anywhere."""

    def __init__(self) -> None:
        self._frames = SseReader()
        self._body: bytearray | None = None
        """The body so far, from a server that does not stream."""
        self._has_started = False
        self._calls = Aggregator(str)  # an empty id: the turn makes an id for the call
        self._open_calls: dict[int, str] = {}
        """The ids of the calls that are not over."""
        self._text_sources: dict[type[Event], str] = {}
        self._seen_seals: set[str] = set()
        self._is_over = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        if not self._has_started:
            data = data.lstrip()
            self._has_started = bool(data)
            if data.startswith(b"{"):
                self._body = bytearray()
        if self._body is None:
            for name, frame in self._frames.feed(data):
                out.extend(self._read_event(frame, name))
            return
        self._body += data
        if len(self._body) > MAX_FRAME_BYTES:
            raise WireError(f"the answer is longer than {MAX_FRAME_BYTES} bytes")

    def _process_end(self, out: list[Event]) -> None:
        frames = self._frames.close() if self._body is None else [(b"", bytes(self._body))]
        with suppress(WireError):  # the stream ended inside an event
            for name, frame in frames:
                out.extend(self._read_event(frame, name))
        if not self._is_over:
            raise BackendError("the backend closed its stream before the end of its answer", retryable=True)

    def _read_event(self, data: bytes, name: bytes) -> Iterator[Event]:
        if self._is_over or data == b"[DONE]":
            return
        try:
            event = self._decode_json(data, _EVENT_DECODER)
        except JSON_DECODE_ERRORS as problem:
            raise WireError(f"the backend sent an event that is not JSON: {problem}") from problem
        if not isinstance(event, dict):
            raise WireError("the backend sent an event that is not an object")
        kind = str(event.get("type", ""))
        if event.get("object") == "response":
            yield from self._finish_response(event)
        elif kind in _DELTA_TEXT_KINDS:
            yield from self._read_text(_DELTA_TEXT_KINDS[kind], event.get("delta"), kind)
        elif kind in _CALL_EVENTS:
            yield from self._read_item(event, kind)
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield from self._read_text(ReasoningDelta, "\n\n", "response.reasoning_summary_text.delta")
        elif kind in _FINAL_EVENTS:
            response = event.get("response")
            yield from self._finish_response(response if isinstance(response, dict) else {}, kind)
        elif kind == "error" or name == b"error" or (not kind and "error" in event):
            raise _parse_stream_error(event.get("error") or event)

    def _read_text(self, kind: _TextKind, text: object, source: str) -> Iterator[Event]:
        """Read text, if it is from the source that is used for its kind."""
        if isinstance(text, str) and text and self._text_sources.setdefault(kind, source) == source:
            yield kind(text)

    def _read_item(self, event: dict[str, Any], kind: str) -> Iterator[Event]:
        yield from self._build_call_events(self._calls.ingest_delta(event))
        item = event.get("item")
        if kind in _ITEM_DONE_EVENTS and isinstance(item, dict):
            yield from self._read_item_text(item, kind)
            yield from self._read_item_seal(item)
            name = item.get("call_id") or item.get("id")
            for index in [index for index, call_id in self._open_calls.items() if call_id == name]:
                del self._open_calls[index]
                yield CallEnd(index, item.get("status") != "incomplete")

    def _read_item_text(self, item: dict[str, Any], source: str) -> Iterator[Event]:
        kind = _ITEM_TEXT_KINDS.get(str(item.get("type")))
        parts = item.get("content") or item.get("summary")
        if kind is None or not isinstance(parts, list):
            return
        texts = [part.get("text") or part.get("refusal") for part in parts if isinstance(part, dict)]
        gap = "\n\n" if kind is ReasoningDelta else ""
        yield from self._read_text(kind, gap.join(text for text in texts if isinstance(text, str)), source)

    def _read_item_seal(self, item: dict[str, Any]) -> Iterator[Event]:
        """Read the encrypted form of reasoning, with the id that it was encrypted for; once."""
        encrypted = item.get("encrypted_content")
        if item.get("type") == "reasoning" and isinstance(encrypted, str) and encrypted not in self._seen_seals:
            self._seen_seals.add(encrypted)
            named = {"id": item["id"]} if isinstance(item.get("id"), str) else {}
            yield ReasoningSealed({**named, "encrypted_content": encrypted})

    def _build_call_events(self, deltas: list[ToolCallDelta]) -> Iterator[Event]:
        for delta in deltas:
            if delta.started:
                self._open_calls[delta.index] = delta.id
                yield CallStart(delta.index, delta.id, delta.name)
            if delta.arguments:
                yield CallDelta(delta.index, delta.arguments)

    def _finish_response(self, response: dict[str, Any], kind: str = "") -> Iterator[Event]:
        """Read the last event: what was not read before, and how the response ended."""
        status = response.get("status") or kind.removeprefix("response.")
        if status not in ("completed", "incomplete"):
            raise _parse_stream_error(response.get("error") or f"the response has the status {status or 'unknown'}")
        items = response.get("output")
        # Without a stream, the place of an item is the only thing that tells two calls with one id apart.
        was_streamed = self._calls.has_calls()
        for at, item in enumerate(items if isinstance(items, list) else ()):
            place = {} if was_streamed else {"output_index": at}
            yield from self._read_item({"type": _RESPONSE_ITEM_EVENT, "item": item, **place}, _RESPONSE_ITEM_EVENT)
        yield from self._build_call_events(self._calls.finish_turn())
        yield from (CallEnd(index, status == "completed") for index in self._open_calls)
        if isinstance(usage := response.get("usage"), dict):
            yield UsageSeen(_parse_usage(usage))
        self._is_over = True
        if status == "completed":
            yield Finish("tool_calls" if self._calls.has_calls() else "stop")
        else:
            filtered = response.get("incomplete_details") == {"reason": "content_filter"}
            yield Finish("content_filter" if filtered else "length")


def _parse_usage(usage: dict[str, Any]) -> Usage:
    def count(value: object, key: str) -> int:
        found = value.get(key) if isinstance(value, dict) else None
        return found if isinstance(found, int) else 0

    return Usage(
        prompt_tokens=count(usage, "input_tokens"),
        completion_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(usage.get("output_tokens_details"), "reasoning_tokens"),
        cached_tokens=count(usage.get("input_tokens_details"), "cached_tokens"),
    )


def _parse_stream_error(error: object) -> BackendError:
    """Return the error. An error in a stream has a code where an answer would have a status."""
    code = error.get("code") if isinstance(error, dict) else None
    return parse_backend_error(_ERROR_STATUSES.get(code, 0) if isinstance(code, str) else 0, encode_json(error))
