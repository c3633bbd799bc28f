"""Call entries: what one delta, message or event says about calls, whatever shape the upstream sends.

The shapes are the chunks, deltas and messages of OpenAI's chat completions (`tool_calls`, its freeform `custom` calls,
the old `function_call`), Responses events and responses, Anthropic's events and messages, Ollama's chunks, and lists of
content parts. Inputs are never changed. Fields of another type than expected are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["CallEntry", "Payload", "iter_bodies", "read_entries", "read_text", "starts_message"]

Payload = Mapping[str, Any] | Sequence[Any]
"""A delta, message or event, or a list of messages or content parts."""

_MAPPINGS = (dict, Mapping)  # `dict` first: to check for an abstract class takes ten times as long
_STRUCTURES = (dict, list, Mapping)
_ITEM_KINDS = ("function_call", "custom_tool_call")
_PART_KINDS = (*_ITEM_KINDS, "tool_use", "tool_call", "tool-call", "toolCall")
_FREEFORM_KINDS = ("custom_tool_call", "custom")
_NAME_KEYS = ("name", "toolName", "tool_name")
_ARGUMENT_KEYS = ("arguments", "input", "args")
_DELTA_EVENTS = ("function_call_arguments.delta", "custom_tool_call_input.delta")
_DONE_EVENTS = ("function_call_arguments.done", "custom_tool_call_input.done")
_BLOCK_EVENTS = ("content_block_start", "content_block_delta", "content_block_stop")
_WRAPPERS = ("message", "delta", "response")


class CallEntry(msgspec.Struct, frozen=True):
    """One mention of a call."""

    name: str = ""
    ids: tuple[str, ...] = ()
    """The ids that the entry has for the call; the first one is the call's own."""
    position: str = ""
    """The place of the call, such as `index:0`; empty if the entry has none."""
    arguments: str = ""
    is_whole: bool = False
    """Whether the arguments are complete, and not a fragment."""
    is_freeform: bool = False
    """Whether the arguments are text for a freeform tool, and not JSON."""
    has_exact_ids: bool = False
    """Whether an unknown id can only mean another call. Chat servers make ids up for each chunk."""


def iter_bodies(payload: Payload, choice: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the deltas and messages in a payload, each with its choice; a bare one has the given choice."""
    if not isinstance(payload, _MAPPINGS):
        for body in payload:
            if isinstance(body, _MAPPINGS):
                yield from iter_bodies(body if _is_wrapped(body) else {"content": [body]}, choice)
        return
    choices = payload.get("choices")
    if not isinstance(choices, list):
        yield choice, _unwrap(payload)
        return
    for at, body in enumerate(choices):
        if isinstance(body, _MAPPINGS):
            index = body.get("index")
            inner = next((body[key] for key in ("delta", "message") if _is_filled(body.get(key))), None)
            if inner is not None:
                yield index if isinstance(index, int) else at, inner


def read_entries(body: Mapping[str, Any], *, is_message: bool = False) -> list[CallEntry]:
    """Read the calls in a delta or event, or in a final message, whose arguments are complete."""
    kind = body.get("type")
    if isinstance(kind, str):
        if kind in _BLOCK_EVENTS:
            return list(_read_block_event(body))
        event = kind.removeprefix("response.")
        if event != kind or event in (*_DELTA_EVENTS, *_DONE_EVENTS):
            return list(_read_responses_event(body, event))
        if kind in _PART_KINDS:
            return [_read_part(body)]
    entries = [*_read_chat_entries(body, is_message)]
    for key in ("content", "parts"):
        if isinstance(parts := body.get(key), list):
            entries += [_read_part(part) for part in _iter_mappings(parts) if _is_call_part(part)]
    return [*entries, *_read_items(body["output"])] if "output" in body else entries


def read_text(body: Mapping[str, Any]) -> str:
    """Return the text of a message, which may be a list of parts."""
    content = body.get("content", body.get("parts"))
    if isinstance(content, str):
        return content
    if isinstance(body.get("output"), list):
        return "".join(read_text(item) for item in _iter_mappings(body["output"]))
    parts = content if isinstance(content, list) else ()
    return "".join(part if isinstance(part, str) else _get_text(part, "text") for part in parts)


def starts_message(body: Mapping[str, Any]) -> bool:
    """Whether this event begins another message: positions that follow are not those of earlier calls."""
    return body.get("type") in ("response.created", "message_start")


# ── chat completions and Ollama ────────────────────────────────────────────────────────────────────


def _read_chat_entries(body: Mapping[str, Any], is_message: bool) -> Iterator[CallEntry]:
    entries = body.get("tool_calls")
    for entry in _iter_mappings([entries] if isinstance(entries, _MAPPINGS) else entries):
        custom = entry.get("custom")
        function = custom if isinstance(custom, _MAPPINGS) else entry.get("function", entry)
        if not isinstance(function, _MAPPINGS):
            function = {}
        arguments = _find_arguments(function)
        index = entry.get("index", function.get("index"))
        yield CallEntry(
            _find_text(function, _NAME_KEYS),
            _list_ids(entry, ("id", "call_id", "toolCallId")),
            f"index:{index}" if isinstance(index, int) else "",
            _encode_arguments(arguments),
            is_message or isinstance(arguments, _STRUCTURES),
            function is custom or entry.get("type") in _FREEFORM_KINDS,
        )
    legacy = body.get("function_call")
    if isinstance(legacy, _MAPPINGS):
        arguments = legacy.get("arguments")
        is_whole = is_message or isinstance(arguments, _STRUCTURES)
        name = _find_text(legacy, _NAME_KEYS)
        yield CallEntry(name, (), "function_call", _encode_arguments(arguments), is_whole)


# ── Responses ──────────────────────────────────────────────────────────────────────────────────────


def _read_responses_event(event: Mapping[str, Any], kind: str) -> Iterator[CallEntry]:
    item, response = event.get("item"), event.get("response")
    position = _build_position("output", event.get("output_index"))
    if isinstance(item, _MAPPINGS):
        if item.get("type") in _ITEM_KINDS:
            yield _read_item(item, position, is_whole=kind.endswith("done"))
    elif isinstance(response, _MAPPINGS):
        yield from _read_items(response.get("output"))
    elif kind in (*_DELTA_EVENTS, *_DONE_EVENTS):
        is_whole = kind in _DONE_EVENTS
        yield CallEntry(
            _get_text(event, "name"),
            _list_ids(event, ("call_id", "item_id")),
            position,
            _encode_arguments(_find_arguments(event) if is_whole else event.get("delta")),
            is_whole,
            kind.startswith("custom"),
            has_exact_ids=True,
        )


def _read_items(items: object) -> Iterator[CallEntry]:
    """Read the calls of a complete response. Where they have ids, their places may differ from those in the stream."""
    for at, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, _MAPPINGS) and item.get("type") in _ITEM_KINDS:
            entry = _read_item(item, "", is_whole=True)
            yield entry if entry.ids else _read_item(item, f"output:{at}", is_whole=True)


def _read_item(item: Mapping[str, Any], position: str, *, is_whole: bool) -> CallEntry:
    return CallEntry(
        _find_text(item, _NAME_KEYS),
        _list_ids(item, ("call_id", "id")),
        position,
        _encode_arguments(_find_arguments(item)),
        is_whole,
        item.get("type") in _FREEFORM_KINDS,
        has_exact_ids=True,
    )


# ── Anthropic, and lists of parts ──────────────────────────────────────────────────────────────────


def _read_block_event(event: Mapping[str, Any]) -> Iterator[CallEntry]:
    position = _build_position("block", event.get("index"))
    block, delta = event.get("content_block"), event.get("delta")
    if isinstance(block, _MAPPINGS) and block.get("type") == "tool_use":
        given = _find_arguments(block)
        # The object is empty where the arguments follow.
        arguments = "" if given == {} else _encode_arguments(given)
        yield CallEntry(_find_text(block, _NAME_KEYS), _list_ids(block, ("id",)), position, arguments)
    elif isinstance(delta, _MAPPINGS) and isinstance(delta.get("partial_json"), str):
        yield CallEntry(position=position, arguments=delta["partial_json"])


def _is_call_part(part: Mapping[str, Any]) -> bool:
    return part.get("type") in _PART_KINDS or any(_is_filled(part.get(key)) for key in ("functionCall", "tool_call"))


def _read_part(part: Mapping[str, Any]) -> CallEntry:
    inner = next((part[key] for key in ("functionCall", "tool_call", "function") if _is_filled(part.get(key))), part)
    ids = _list_ids(part, ("call_id", "id", "toolCallId")) or _list_ids(inner, ("id",))
    is_freeform = part.get("type") in _FREEFORM_KINDS
    return CallEntry(
        _find_text(inner, _NAME_KEYS), ids, "", _encode_arguments(_find_arguments(inner)), True, is_freeform
    )


# ── fields ─────────────────────────────────────────────────────────────────────────────────────────


def _encode_arguments(value: object) -> str:
    """Return arguments as text. Text is not changed, and null is no text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _unwrap(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message inside an object that only wraps it. Events have a type, and are not unwrapped."""
    if not isinstance(body.get("type"), str):
        for key in _WRAPPERS:
            if isinstance(inner := body.get(key), _MAPPINGS):
                return inner
    return body


def _is_wrapped(body: Mapping[str, Any]) -> bool:
    """Whether an object of a list is a message, chunk or event, and not a content part."""
    return any(key in body for key in (*_WRAPPERS, "choices", "role", "tool_calls", "content", "output", "item"))


def _is_filled(value: object) -> bool:
    return isinstance(value, _MAPPINGS) and bool(value)


def _iter_mappings(values: object) -> Iterable[Mapping[str, Any]]:
    return [value for value in values if isinstance(value, _MAPPINGS)] if isinstance(values, list | tuple) else []


def _find_arguments(owner: Mapping[str, Any]) -> Any:
    return next((owner[key] for key in _ARGUMENT_KEYS if owner.get(key) is not None), None)


def _find_text(owner: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((owner[key] for key in keys if isinstance(owner.get(key), str)), "")


def _get_text(owner: object, key: str) -> str:
    value = owner.get(key) if isinstance(owner, _MAPPINGS) else None
    return value if isinstance(value, str) else ""


def _list_ids(owner: Mapping[str, Any], keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(owner[key] for key in keys if isinstance(owner.get(key), str) and owner[key]))


def _build_position(kind: str, index: object) -> str:
    return f"{kind}:{index}" if isinstance(index, int) else ""
