"""Build complete tool calls from structured deltas, whatever shape the upstream sends.

The aggregator reads OpenAI chunks and deltas (`tool_calls`, legacy `function_call`), Responses events and Ollama
chunks. It tolerates missing or repeated indices, missing ids, repeated names, whole objects for arguments and
several calls in one chunk. Argument strings are never reformatted, inputs are never changed, results are frozen and
memory is bounded.

Some upstreams send increments, others resend everything so far. The mode is a property of the stream and is decided
once: a fragment that does not start with the previous text proves increments; a sum that cannot be JSON proves
resending. Until then, text that would differ between the two modes is held back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from callwright.errors import BackendError
from callwright.text.source import DEFAULT_LIMIT
from callwright.turn import IdFactory

__all__ = ["Aggregator", "TextPattern", "ToolCallDelta", "ToolCallRecord"]

TextPattern = Callable[[str], Sequence[tuple[str, str]]]
"""A function that finds calls in text and returns pairs of name and arguments."""

MAX_CALLS = 1024
_LEGACY_KEY = "function_call"


class ToolCallDelta(msgspec.Struct, frozen=True):
    """The new part of one call. `id` and `name` are final; append `arguments` to those of earlier deltas."""

    choice: int
    index: int
    id: str
    name: str
    arguments: str
    started: bool = False
    """Whether this is the first delta of its call."""


class ToolCallRecord(msgspec.Struct, frozen=True):
    """One call as far as it is known; `arguments` is the text that the upstream sent."""

    id: str
    name: str
    arguments: str
    type: str = "function"


class _CallBuilder:
    """A call under construction. `parts` holds the fragments; in a cumulative stream the last one is the whole."""

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.keys: set[str] = set()
        self.parts: list[str] = []
        self.emitted_parts = 0
        self.emitted_length = 0
        self.is_final = False
        self.started = False
        """Whether a delta was returned for this call. A call without a name waits for the name."""

    @property
    def has_own_id(self) -> bool:
        """Whether the upstream gave the call an id."""
        return any(key.startswith("id:") for key in self.keys)

    def matches_delta(self, name: str, call_id: str) -> bool:
        """Whether a delta under this call's key continues it. Upstreams that do not count reuse the key for the next
        call, which then has a name, and another id or another name."""
        if not name or not self.name:
            return True
        return name == self.name and not (call_id and self.has_own_id)

    def get_arguments(self, cumulative: bool | None) -> str:
        """Return the arguments so far. While the mode is undecided, return the reading that is JSON."""
        joined = "".join(self.parts)
        if cumulative is None and len(self.parts) > 1:
            cumulative = not _is_json_object(joined)
        return self.parts[-1] if cumulative and self.parts else joined

    def take_new_arguments(self, cumulative: bool | None) -> str:
        """Return the arguments that are decided and were not returned before."""
        if cumulative is None and len(self.parts) > 1:
            return ""
        resent = self.parts and (cumulative or self.is_final)
        text = self.parts[-1][self.emitted_length :] if resent else "".join(self.parts[self.emitted_parts :])
        self.emitted_parts = len(self.parts)
        self.emitted_length += len(text)
        return text


class Aggregator:
    """Collects the calls of a turn, per choice, in order of creation."""

    def __init__(self, ids: IdFactory, *, patterns: Iterable[TextPattern] = (), limit: int = DEFAULT_LIMIT) -> None:
        self._ids = ids
        self._patterns = list(patterns)
        self._limit = limit
        self._calls: dict[int, list[_CallBuilder]] = {}
        self._cumulative: bool | None = None
        self._size = 0

    def register_text_pattern(self, pattern: TextPattern) -> None:
        """Search text with this pattern too; see `ingest_message`."""
        self._patterns.append(pattern)

    def ingest_delta(self, delta: Mapping[str, Any], choice: int = 0) -> list[ToolCallDelta]:
        """Read one chunk, delta or event, and return the new parts of its calls."""
        out: list[ToolCallDelta] = []
        for at, body in _iter_choices(delta, choice):
            kind = body.get("type")
            if isinstance(kind, str) and kind.startswith("response."):
                out += self._ingest_responses_event(at, body)
                continue
            entries = list(_iter_call_entries(body))
            for position, (key, entry) in enumerate(entries):
                out += self._ingest_entry(at, key, entry, alone=len(entries) == 1 or position == 0)
        return out

    def ingest_message(
        self, message: Mapping[str, Any], choice: int = 0, *, emit_if_missing: bool = False
    ) -> list[ToolCallDelta]:
        """Read a final message: add calls that no delta contained, and complete calls that were started.

        With `emit_if_missing`, search a message without calls with the text patterns.
        """
        out: list[ToolCallDelta] = []
        known = len(self._calls.get(choice, ()))
        for order, (key, entry) in enumerate(_iter_call_entries(message)):
            function = _get_function(entry)
            name, arguments = _text_or_empty(function.get("name")), _encode_arguments(function.get("arguments"))
            calls = self._calls.get(choice, [])
            call = self._find_by_id(choice, _build_keys(key, entry))
            if (
                call is None
                and order < known
                and self._is_same_call(calls[order], _get_call_id(entry), name, arguments)
            ):
                call = calls[order]
            if call is None:
                call = self._create_call(choice, name, _get_call_id(entry))
                call.keys |= _build_keys(key, entry)
            out += self._set_arguments(choice, call, arguments)
        out += self._ingest_items(choice, message)
        content = message.get("content")
        if emit_if_missing and isinstance(content, str) and not self.has_calls(choice):
            for pattern in self._patterns:
                for name, arguments in pattern(content):
                    out += self._set_arguments(choice, self._create_call(choice, name, ""), arguments)
                if out:
                    break
        return out

    def finish_turn(self) -> list[ToolCallDelta]:
        """End the stream and return what was held back until the mode was known."""
        out: list[ToolCallDelta] = []
        for choice, calls in self._calls.items():
            for call in calls:
                out += self._set_arguments(choice, call, call.get_arguments(self._cumulative))
        return out

    def snapshot(self, choice: int = 0) -> tuple[ToolCallRecord, ...]:
        """Return the calls of a choice so far, in order of creation."""
        return tuple(
            ToolCallRecord(call.id, call.name, call.get_arguments(self._cumulative))
            for call in self._calls.get(choice, ())
            if call.name
        )

    def has_calls(self, choice: int | None = None) -> bool:
        """Whether a choice has calls; without an argument, whether any choice has."""
        choices = self._calls if choice is None else (choice,)
        return any(self.snapshot(one) for one in choices)

    def reset_turn(self, choice: int | None = None) -> None:
        """Forget the calls of one choice, or of all choices. Text patterns are kept."""
        if choice is None:
            self._calls.clear()
        else:
            self._calls.pop(choice, None)
        if not self._calls:
            self._cumulative = None
            self._size = 0

    # ── finding the call that an entry belongs to ──────────────────────────────────────────────────

    def _ingest_entry(self, choice: int, key: str, entry: Mapping[str, Any], *, alone: bool) -> list[ToolCallDelta]:
        function = _get_function(entry)
        name, call_id = _text_or_empty(function.get("name")), _get_call_id(entry)
        arguments = function.get("arguments")
        call = self._find_call(choice, key, call_id, name, arguments, alone=alone)
        if call is None:
            call = self._create_call(choice, name, call_id)
        call.name = call.name or name
        call.keys |= _build_keys(key, entry)
        if isinstance(arguments, Mapping | list):
            return self._set_arguments(choice, call, _encode_arguments(arguments))
        return self._append_fragment(choice, call, _text_or_empty(arguments))

    def _find_call(
        self, choice: int, key: str, call_id: str, name: str, arguments: Any, *, alone: bool
    ) -> _CallBuilder | None:
        """Return the call that a delta continues, or None if the delta starts a new call."""
        calls = self._calls.get(choice, [])
        if call_id:
            known = self._find_by_id(choice, {f"id:{call_id}"})
            if known is not None or (name and not key):
                return known
        if isinstance(arguments, Mapping | list):
            return None
        if key:
            call = next((call for call in reversed(calls) if key in call.keys), None)
            return call if call is not None and call.matches_delta(name, call_id) else None
        last = calls[-1] if calls and alone else None
        if last is None or not name:
            return last
        return last if name == last.name and not _is_json_object(last.get_arguments(self._cumulative)) else None

    def _is_same_call(self, call: _CallBuilder, call_id: str, name: str, arguments: str) -> bool:
        """Whether a call of the final message is the streamed call at its position: some upstreams change the id."""
        if not (call_id and call.has_own_id):
            return True
        return name == call.name and arguments.startswith(call.get_arguments(self._cumulative))

    def _find_by_id(self, choice: int, keys: set[str]) -> _CallBuilder | None:
        ids = {key for key in keys if key.startswith("id:")}
        return next((call for call in self._calls.get(choice, ()) if call.keys & ids), None)

    def _create_call(self, choice: int, name: str, call_id: str) -> _CallBuilder:
        calls = self._calls.setdefault(choice, [])
        if len(calls) >= MAX_CALLS:
            message = f"the backend sent more than {MAX_CALLS} tool calls in one turn"
            raise BackendError(message, kind="unusable")
        call = _CallBuilder(len(calls), call_id or self._ids(), name)
        calls.append(call)
        return call

    # ── arguments ──────────────────────────────────────────────────────────────────────────────────

    def _append_fragment(self, choice: int, call: _CallBuilder, fragment: str) -> list[ToolCallDelta]:
        """Append a fragment, and decide the mode of the stream if it is still undecided."""
        if fragment and not call.is_final:
            self._track_size(len(fragment))
            if call.parts and self._cumulative is None:
                self._cumulative = _detect_cumulative(call, fragment)
            call.parts.append(fragment)
        if not call.name:
            return []
        new_text = call.take_new_arguments(self._cumulative)
        if not new_text and call.started:
            return []
        started, call.started = not call.started, True
        return [ToolCallDelta(choice, call.index, call.id, call.name, new_text, started)]

    def _set_arguments(self, choice: int, call: _CallBuilder, arguments: str) -> list[ToolCallDelta]:
        """Set the complete arguments. If they contradict what was already returned, keep what was returned."""
        emitted = call.get_arguments(self._cumulative)[: call.emitted_length]
        if not call.is_final and arguments.startswith(emitted):
            self._track_size(len(arguments))
            call.parts, call.is_final = [arguments], True
        return self._append_fragment(choice, call, "")

    def _track_size(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            message = f"the backend sent more than {self._limit} characters of tool arguments in one turn"
            raise BackendError(message, kind="unusable")

    # ── Responses events ───────────────────────────────────────────────────────────────────────────

    def _ingest_responses_event(self, choice: int, event: Mapping[str, Any]) -> list[ToolCallDelta]:
        kind = event["type"]
        item, response = event.get("item"), event.get("response")
        if isinstance(item, Mapping):
            return self._ingest_item(choice, item, done=kind.endswith("done"))
        if isinstance(response, Mapping):
            return self._ingest_items(choice, response)
        call = self._find_by_id(choice, {f"id:{event.get('item_id')}"})
        if call is None:
            return []
        if kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            return self._append_fragment(choice, call, _text_or_empty(event.get("delta")))
        if kind in ("response.function_call_arguments.done", "response.custom_tool_call_input.done"):
            return self._set_arguments(choice, call, _text_or_empty(event.get("arguments") or event.get("input")))
        return []

    def _ingest_items(self, choice: int, response: Mapping[str, Any]) -> list[ToolCallDelta]:
        """Read the calls of a complete response."""
        items = response.get("output")
        objects = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
        return [delta for item in objects for delta in self._ingest_item(choice, item, done=True)]

    def _ingest_item(self, choice: int, item: Mapping[str, Any], *, done: bool) -> list[ToolCallDelta]:
        if item.get("type") not in ("function_call", "custom_tool_call"):
            return []
        keys = {f"id:{item[key]}" for key in ("id", "call_id") if item.get(key)}
        call = self._find_by_id(choice, keys)
        if call is None:
            call = self._create_call(
                choice,
                _text_or_empty(item.get("name")),
                _text_or_empty(item.get("call_id")) or _text_or_empty(item.get("id")),
            )
        call.keys |= keys
        arguments = _text_or_empty(item.get("arguments") or item.get("input"))
        return self._set_arguments(choice, call, arguments) if done else self._append_fragment(choice, call, arguments)


def _detect_cumulative(call: _CallBuilder, fragment: str) -> bool | None:
    """Detect whether the stream resends everything: False, True, or None while both are possible."""
    if not fragment.startswith(call.parts[-1]):
        return False
    return None if _is_json_prefix("".join(call.parts) + fragment) else True


def _iter_choices(delta: Mapping[str, Any], choice: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the deltas inside a chunk, each with its choice; a bare delta has the given choice."""
    choices = delta.get("choices")
    if not isinstance(choices, list):
        inner = delta.get("message", delta)
        yield choice, inner if isinstance(inner, Mapping) else delta
        return
    for at, body in enumerate(choices):
        inner = body.get("delta", body.get("message")) if isinstance(body, Mapping) else None
        if isinstance(inner, Mapping):
            index = body.get("index")
            yield index if isinstance(index, int) else at, inner


def _iter_call_entries(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the call entries of a delta or message, each with the key of its position, or an empty key."""
    entries = body.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping):
            index = entry.get("index", _get_function(entry).get("index"))
            yield (f"index:{index}" if isinstance(index, int) else ""), entry
    legacy = body.get(_LEGACY_KEY)
    if isinstance(legacy, Mapping):
        yield _LEGACY_KEY, {"function": legacy}


def _build_keys(key: str, entry: Mapping[str, Any]) -> set[str]:
    call_id = _get_call_id(entry)
    return {one for one in (key, f"id:{call_id}" if call_id else "") if one}


def _get_function(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    function = entry.get("function", entry)
    return function if isinstance(function, Mapping) else {}


def _get_call_id(entry: Mapping[str, Any]) -> str:
    return _text_or_empty(entry.get("id") or entry.get("call_id") or entry.get("toolCallId"))


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _encode_arguments(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_json_prefix(text: str) -> bool:
    """Whether a text is JSON so far: it parses, or is incomplete only at its end."""
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        rest = text[problem.pos :].strip()
        literals = ("true", "false", "null", "-")
        return problem.msg.startswith("Unterminated string") or any(word.startswith(rest) for word in literals)
    except RecursionError:
        return True
    return True
