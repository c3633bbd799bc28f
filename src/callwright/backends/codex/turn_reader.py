"""Reader: the notices about one turn, read as events. Pure.

Text and reasoning come as deltas, increments that are never compared with what was said before. Calls come whole, as
the provider's own items: Codex parses arguments, answers those that it cannot parse itself, and does not tell of tools
that it does not know. A response is over with `rawResponse/completed`, also where its calls are still waiting.
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
"""Those that Codex runs or answers. Others, as `web_search_call`, tell of what a provider did itself."""
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
    """One turn, from whole lines."""

    def __init__(self) -> None:
        self._calls = 0
        self._delta_sources: dict[_DeltaType, str] = {}
        """The kinds of words that came as deltas since the last item of that kind, and by which notice."""
        self._finished = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        for line in data.splitlines():
            if self._finished:
                return
            try:
                notice = _decode(line)
            except JSON_DECODE_ERRORS as problem:
                raise WireError(f"codex sent a notice that cannot be read: {problem}") from problem
            out.extend(self._iter_events(notice.method, notice.params))

    def _process_end(self, out: list[Event]) -> None:
        raise BackendError("the backend ended its turn before the end of its answer", retryable=True)

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
        """Words, if this is the way in which they come: providers send reasoning as a summary, raw, or both."""
        if text and self._delta_sources.setdefault(kind, source) == source:
            yield kind(text)

    def _read_item(self, item: dict[str, Any]) -> Iterator[Event]:
        kind = str(item.get("type"))
        if kind in _CALL_TYPES:
            yield from self._read_call(kind, item)
        elif kind in _ITEM_DELTAS and item.get("role", "assistant") == "assistant":
            words = _ITEM_DELTAS[kind]
            if not self._delta_sources.pop(words, "") and (text := _get_item_text(item)):
                yield words(text)
            if isinstance(seal := item.get("encrypted_content"), str) and seal:
                named = {"id": item["id"]} if item.get("id") else {}
                yield ReasoningSealed({**named, "encrypted_content": seal})

    def _read_call(self, kind: str, item: dict[str, Any]) -> Iterator[Event]:
        """Any call ends the turn, also one of a tool that nobody offered: Codex would answer it itself, and go on."""
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
    """The wire between Codex and us, as far as it is one: what a turn's notices mean."""

    name = "codex"

    def create_reader(self) -> CodexReader:
        """A reader of one turn."""
        return CodexReader()


def find_first_failure(data: bytes) -> BackendError | None:
    """The failure that these lines begin with: nothing was said before it, so it may be tried again."""
    try:
        CodexReader().feed(data)
    except BackendError as problem:
        return problem
    return None


def _parse_turn_end(turn: dict[str, Any]) -> Finish:
    """A turn's own end comes after that of its response, unless it failed."""
    error = turn.get("error")
    if not isinstance(error, dict):
        return Finish("stop")
    if reason := find_finish_reason(error):
        return Finish(reason)
    raise parse_turn_error(error)


def _get_item_text(item: dict[str, Any]) -> str:
    """The words of an item that came without deltas."""
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
