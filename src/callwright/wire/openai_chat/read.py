"""Read a chat completions stream, with the variations of the servers that have this API.

Each chunk is decoded once, into a struct of the fields that are used. Content is passed on directly; calls go through
the aggregator, which handles how differently servers split them. `Finish` comes once, at the end of the stream, because
usage may follow the finish reason. A complete answer instead of a stream is read too.
"""

from __future__ import annotations

import json
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
    FinishReason,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Usage
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import JSON_DECODE_ERRORS, MAX_FRAME_BYTES, SseReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["OpenAIChatReader"]

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "error": "error",
    "insufficient_system_resource": "error",  # DeepSeek
}


class _Delta(msgspec.Struct, gc=False):
    """Fields are not typed: a field of the wrong type is skipped, and does not fail the turn."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    thinking: Any = None
    cot_summary: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct, gc=False):
    index: Any = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: Any = None
    usage: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_CHUNK_DECODER = msgspec.json.Decoder(_Chunk)


class OpenAIChatReader(EventReader):
    """Reads one server's stream, from bytes that may be split anywhere."""

    def __init__(self) -> None:
        self._frames = SseReader()
        self._body: bytearray | None = None
        """The body, if it is one JSON object and not a stream."""
        self._has_started = False
        self._calls = Aggregator(str)  # an empty id: the turn that is built from the events makes one
        self._usage: Usage | None = None
        self._finish_reason: FinishReason | None = None
        self._is_over = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        if self._is_over:
            return
        if not self._has_started:
            self._has_started = bool(data.strip())
            if data.lstrip().startswith(b"{"):
                self._body = bytearray()
        if self._body is None:
            for name, payload in self._frames.feed(data):
                self._read_event(name, payload, out)
            return
        self._body += data
        if len(self._body) > MAX_FRAME_BYTES:
            raise WireError(f"the answer is longer than {MAX_FRAME_BYTES} bytes")

    def _process_end(self, out: list[Event]) -> None:
        if self._body is not None:
            self._read_event(b"", bytes(self._body), out)
        for name, payload in self._frames.close():
            self._read_event(name, payload, out)
        if not self._is_over and self._finish_reason is None:
            raise BackendError("the backend closed the stream before the end of the turn", retryable=True)
        self._finish_turn(out)

    def _read_event(self, name: bytes, payload: bytes, out: list[Event]) -> None:
        if self._is_over or not payload:
            return
        if payload == b"[DONE]":
            self._finish_turn(out)
            return
        if name == b"error":
            raise parse_backend_error(0, payload)
        chunk = self._decode_chunk(payload)
        if chunk.error:
            raise parse_backend_error(0, payload)
        if chunk.usage is not None:
            self._usage = _parse_usage(chunk.usage) or self._usage
        for choice in chunk.choices or ():
            # The request has one choice only.
            if choice.index in (0, None):
                self._read_choice(choice, out)

    def _decode_chunk(self, payload: bytes) -> _Chunk:
        try:
            return self._decode_json(payload, _CHUNK_DECODER)
        except JSON_DECODE_ERRORS as problem:
            shown = payload[:200].decode("utf-8", "replace")
            raise WireError(f"the backend sent an invalid chunk ({problem}): {shown}") from problem

    def _read_choice(self, choice: _Choice, out: list[Event]) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            self._read_delta(delta, out)
        if choice.finish_reason:
            self._finish_reason = _FINISH_REASONS.get(str(choice.finish_reason), "stop")
        if choice.usage is not None:  # where Moonshot sends it
            self._usage = _parse_usage(choice.usage) or self._usage

    def _read_delta(self, delta: _Delta, out: list[Event]) -> None:
        # Servers that are renaming the field send both names, with the same text.
        thought = (
            delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.thinking or delta.cot_summary
        )
        if thought and isinstance(thought, str):
            out.append(ReasoningDelta(thought))
        content = delta.content or delta.refusal
        if type(content) is str:
            if content:
                out.append(TextDelta(content))
        elif content:
            _add_content_parts(content, out)
        if delta.tool_calls or delta.function_call:
            _add_seals(delta.tool_calls, out)
            entries = {"tool_calls": delta.tool_calls, "function_call": delta.function_call}
            _add_call_events(self._calls.ingest_delta(entries), out)

    def _finish_turn(self, out: list[Event]) -> None:
        """Write what waited for the end: the ends of calls, usage, the finish reason."""
        if self._is_over:
            return
        self._is_over = True
        _add_call_events(self._calls.finish_turn(), out)
        calls = self._calls.snapshot()
        reason = self._finish_reason or ("tool_calls" if calls else "stop")
        out += [
            CallEnd(index, reason != "length" or _is_json_object(call.arguments)) for index, call in enumerate(calls)
        ]
        if self._usage is not None:
            out.append(UsageSeen(self._usage))
        out.append(Finish(reason))


def _add_content_parts(content: object, out: list[Event]) -> None:
    """Read the list of parts that Mistral's reasoning models send."""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str) and part["text"]:
            out.append(TextDelta(part["text"]))
        for thought in part["thinking"] if isinstance(part.get("thinking"), list) else ():
            if isinstance(thought, dict) and isinstance(thought.get("text"), str) and thought["text"]:
                out.append(ReasoningDelta(thought["text"]))


def _add_seals(entries: object, out: list[Event]) -> None:
    """Read signatures. Gemini signs its reasoning on the call after it, in `extra_content`, which Google and Vertex
    name differently inside, and refuses the call without it (litellm#16893, pi#6733)."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(extra := entry.get("extra_content"), dict) and extra:
            out.append(ReasoningSealed({"extra_content": extra}))


def _add_call_events(deltas: list[ToolCallDelta], out: list[Event]) -> None:
    for delta in deltas:
        if delta.started:
            out.append(CallStart(delta.index, delta.id, delta.name))
        if delta.arguments:
            out.append(CallDelta(delta.index, delta.arguments))


def _parse_usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    cached = _get_count(_get_details(value, "prompt_tokens_details"), "cached_tokens")
    return Usage(
        prompt_tokens=_get_count(value, "prompt_tokens"),
        completion_tokens=_get_count(value, "completion_tokens"),
        reasoning_tokens=_get_count(_get_details(value, "completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=cached or _get_count(value, "prompt_cache_hit_tokens"),  # DeepSeek
    )


def _get_details(usage: dict[str, Any], key: str) -> dict[str, Any]:
    details = usage.get(key)
    return details if isinstance(details, dict) else {}


def _get_count(counts: dict[str, Any], key: str) -> int:
    count = counts.get(key)
    return count if type(count) is int else 0


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
