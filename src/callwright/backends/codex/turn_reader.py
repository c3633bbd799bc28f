"""Reads the notifications of one Codex turn as events. Pure.

Text and reasoning arrive as deltas. Calls arrive complete, as the provider's own items: Codex parses their arguments,
answers calls that it cannot parse itself, and does not report calls of unknown tools. A response ends with
`rawResponse/completed`, also while its calls are unanswered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from callwright.backends.codex.failures import find_finish_reason, parse_turn_error
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
from callwright.wire.framing import JSON_DECODE_ERRORS, encode_json
from callwright.wire.openai_responses import OpenAIResponsesClientCodec

__all__ = ["CodexClientCodec", "CodexReader", "find_first_failure"]

_DeltaType = type[TextDelta] | type[ReasoningDelta]
_DELTAS: dict[str, _DeltaType] = {
    "item/agentMessage/delta": TextDelta,
    "item/reasoning/summaryTextDelta": ReasoningDelta,
    "item/reasoning/textDelta": ReasoningDelta,
}
_CALL_TYPES = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Calls that Codex runs or answers. Others, such as `web_search_call`, report what a provider did itself."""
_ITEM_DELTAS: dict[str, _DeltaType] = {"message": TextDelta, "reasoning": ReasoningDelta}


class _NotificationParams(msgspec.Struct, rename="camel"):
    delta: str = ""
    summary_index: int = 0
    item: dict[str, Any] = {}
    usage: dict[str, Any] | None = None
    turn: dict[str, Any] = {}


class _Notification(msgspec.Struct):
    method: str
    params: _NotificationParams


_decode = msgspec.json.Decoder(_Notification).decode


class CodexReader(EventReader):
    """Reads one turn from whole lines."""

    def __init__(self) -> None:
        self._calls = 0
        self._delta_sources: dict[_DeltaType, str] = {}
        """For each kind of text, the notification that sent deltas since the last item of that kind."""
        self._finished = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        for line in data.splitlines():
            if self._finished:
                return
            try:
                notification = _decode(line)
            except JSON_DECODE_ERRORS as problem:
                raise WireError(f"codex sent an unreadable notification: {problem}") from problem
            out.extend(self._iter_events(notification.method, notification.params))

    def _process_end(self, out: list[Event]) -> None:
        raise BackendError("the backend ended the turn before the end of its answer", retryable=True)

    def _iter_events(self, method: str, params: _NotificationParams) -> Iterator[Event]:
        match method:
            case "item/reasoning/summaryPartAdded":
                if params.summary_index:
                    yield from self._emit_delta(ReasoningDelta, "\n\n", "item/reasoning/summaryTextDelta")
            case "rawResponseItem/completed":
                yield from self._read_item(params.item)
            case "rawResponse/completed":
                if params.usage:
                    yield UsageSeen(_parse_usage(params.usage))
                yield self._mark_finished(Finish("tool_calls" if self._calls else "stop"))
            case "turn/completed":
                yield self._mark_finished(_parse_turn_end(params.turn))
            case _:
                yield from self._emit_delta(_DELTAS[method], params.delta, method)

    def _emit_delta(self, kind: _DeltaType, text: str, source: str) -> Iterator[Event]:
        """Emit text, unless another notification sends it too: providers send reasoning as a summary, raw, or both."""
        if text and self._delta_sources.setdefault(kind, source) == source:
            yield kind(text)

    def _read_item(self, item: dict[str, Any]) -> Iterator[Event]:
        kind = str(item.get("type"))
        if kind in _CALL_TYPES:
            yield from self._read_call(kind, item)
        elif kind in _ITEM_DELTAS and item.get("role", "assistant") == "assistant":
            delta_type = _ITEM_DELTAS[kind]
            if not self._delta_sources.pop(delta_type, "") and (text := _get_item_text(item)):
                yield delta_type(text)
            if isinstance(seal := item.get("encrypted_content"), str) and seal:
                item_id = {"id": item["id"]} if item.get("id") else {}
                yield ReasoningSealed({**item_id, "encrypted_content": seal})

    def _read_call(self, kind: str, item: dict[str, Any]) -> Iterator[Event]:
        """Emit a call. Any call ends the turn, also one of an unknown tool, which Codex would answer itself."""
        index, self._calls = self._calls, self._calls + 1
        arguments = item.get("arguments")
        if not isinstance(arguments, str):
            arguments = encode_json({"input": item.get("input")}).decode()
        yield CallStart(index, str(item.get("call_id") or ""), str(item.get("name") or kind))
        if arguments:
            yield CallDelta(index, arguments)
        yield CallEnd(index)

    def _mark_finished(self, finish: Finish) -> Finish:
        self._finished = True
        return finish


class CodexClientCodec(OpenAIResponsesClientCodec):
    """The client codec for Codex: interprets the notifications of a turn."""

    name = "codex"

    def create_reader(self) -> CodexReader:
        """Create a reader for one turn."""
        return CodexReader()


def find_first_failure(data: bytes) -> BackendError | None:
    """Find the failure that these lines begin with. Nothing was emitted before it, so it may be retried."""
    try:
        CodexReader().feed(data)
    except BackendError as problem:
        return problem
    return None


def _parse_turn_end(turn: dict[str, Any]) -> Finish:
    """Parse the end of a turn, which follows the end of its response unless the turn failed."""
    error = turn.get("error")
    if not isinstance(error, dict):
        return Finish("stop")
    if reason := find_finish_reason(error):
        return Finish(reason)
    raise parse_turn_error(error)


def _get_item_text(item: dict[str, Any]) -> str:
    """Return the text of an item that arrived without deltas."""
    parts = item.get("content") or item.get("summary")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    gap = "\n\n" if item["type"] == "reasoning" else ""
    return gap.join(text for text in texts if isinstance(text, str))


def _parse_usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        prompt_tokens=usage.get("inputTokens", 0),
        completion_tokens=usage.get("outputTokens", 0),
        reasoning_tokens=usage.get("reasoningOutputTokens", 0),
        cached_tokens=usage.get("cachedInputTokens", 0),
    )
