"""What the checks of all wires share: the request, SSE parsing, and helpers that require a field.

A check reads a wire from the client's side and forgives nothing: anything that one of the real clients cannot handle
is a `WireError` with a readable reason. The readers of `callwright.wire` are lenient, so they cannot be used for this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from callwright.errors import WireError
from callwright.model import ToolCall, ToolSpec

__all__ = [
    "CheckedAnswer", "SmokeRequest", "SseEvent", "WireCheck", "build_checked_answer", "decode_json", "parse_sse",
    "read_openai_error", "require", "require_field", "require_object_text", "require_token_counts", "require_value",
]  # fmt: skip

_TYPE_NAMES = {str: "a string", int: "an integer", list: "a list", dict: "an object", bool: "a boolean"}


class SmokeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request: a prompt, optionally with a tool, and with the call and result of the round before."""

    model: str
    prompt: str
    stream: bool = False
    tool: ToolSpec | None = None
    call: ToolCall | None = None
    result: str = ""


class CheckedAnswer(msgspec.Struct, frozen=True):
    """A well-formed answer, with the finish reasons of Chat Completions."""

    text: str
    calls: tuple[ToolCall, ...]
    finish: str


class WireCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One wire: its path, how to build a request, and how to read and check the responses."""

    name: str
    path: str
    stream_type: str
    build_body: Callable[[SmokeRequest], dict[str, Any]]
    read_response: Callable[[bytes], CheckedAnswer]
    read_stream: Callable[[bytes], CheckedAnswer]
    read_error: Callable[[bytes], str]
    """Returns the message of an error body."""


class SseEvent(NamedTuple):
    """One server-sent event."""

    event: str
    data: str


def require(holds: object, reason: str) -> None:
    """Raise `WireError` unless the condition holds."""
    if not holds:
        raise WireError(reason)


def require_field(value: Any, key: str, kind: type, where: str) -> Any:
    """Return the member of this name, which must have this type."""
    require(isinstance(value, dict), f"{where} is not an object")
    require(key in value, f"{where} has no {key}")
    found = value[key]
    fits = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
    require(fits, f"{where}: {key} is not {_TYPE_NAMES[kind]} but {_shorten_value(found)}")
    return found


def require_value(value: Any, key: str, expected: Any, where: str) -> None:
    """Require a member with this value."""
    require(isinstance(value, dict) and key in value, f"{where} has no {key}")
    require(value[key] == expected, f"{where}: {key} is {_shorten_value(value[key])}, not {_shorten_value(expected)}")


def decode_json(text: str | bytes, where: str) -> Any:
    """Decode a JSON value. Raises `WireError`."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(f"{where} is not JSON ({problem}): {_shorten_value(text)}") from None


def require_object_text(arguments: str, where: str) -> str:
    """Return the arguments, which must be the text of a JSON object."""
    require(
        isinstance(decode_json(arguments, where), dict), f"{where} are not a JSON object: {_shorten_value(arguments)}"
    )
    return arguments


def require_token_counts(usage: Any, *keys: str, total: str = "", where: str = "usage") -> None:
    """Require token counts under these names, and their sum if the wire has one."""
    tokens = sum(require_field(usage, key, int, where) for key in keys)
    if total:
        require_value(usage, total, tokens, where)


def build_checked_answer(text: str, calls: Sequence[ToolCall], finish: str) -> CheckedAnswer:
    """Build an answer whose finish reason and calls are consistent."""
    require((finish == "tool_calls") == bool(calls), f"the answer ends with {finish!r} after {len(calls)} calls")
    require(len({call.id for call in calls}) == len(calls), "two calls have the same id")
    return CheckedAnswer(text, tuple(calls), finish)


def read_openai_error(body: bytes) -> str:
    """Return the message of an error in OpenAI's format."""
    error = require_field(decode_json(body, "the error"), "error", dict, "the error")
    require_field(error, "type", str, "the error")
    return str(require_field(error, "message", str, "the error"))


def parse_sse(body: bytes) -> list[SseEvent]:
    """Parse an SSE stream. Each event has one data line, because Copilot Chat 0.66 loses events with several."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("the stream is not UTF-8") from None
    require(not text or text.endswith("\n\n"), "the stream does not end with an empty line: its last event is lost")
    return [frame for block in text.split("\n\n") if (frame := _parse_sse_event(block))]


def _parse_sse_event(block: str) -> SseEvent | None:
    names: list[str] = []
    data: list[str] = []
    for line in block.split("\n"):
        if not line or line.startswith(":"):
            continue
        key, _, value = line.partition(":")
        require(
            key in {"event", "data"}, f"a line of the stream is neither event, data nor comment: {_shorten_value(line)}"
        )
        (names if key == "event" else data).append(value.removeprefix(" "))
    require(len(data) <= 1, f"an event has {len(data)} data lines; some clients read only one")
    require(data or not names, f"the event {'/'.join(names)} has no data")
    return SseEvent("".join(names), data[0]) if data else None


def _shorten_value(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value) if isinstance(value, bytes) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
