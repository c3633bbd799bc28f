"""What the shapes of all wires share: what is asked, how bytes are split, how a field is demanded.

A shape is a wire seen from the client's side, by a reader that forgives nothing: whatever one of the real clients
trips over is a `WireError` here, with a reason for a person. The readers of `callwright.wire` are made to forgive,
so they could not serve as the test.
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
    """One request: a prompt, perhaps with a tool, perhaps with the call of the round before and its result."""

    model: str
    prompt: str
    stream: bool = False
    tool: ToolSpec | None = None
    call: ToolCall | None = None
    result: str = ""


class CheckedAnswer(msgspec.Struct, frozen=True):
    """What a well-formed answer says, in the words of chat completions."""

    text: str
    calls: tuple[ToolCall, ...]
    finish: str


class WireCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One wire: where to post, what to post, and what must come back."""

    name: str
    path: str
    stream_type: str
    build_body: Callable[[SmokeRequest], dict[str, Any]]
    read_response: Callable[[bytes], CheckedAnswer]
    read_stream: Callable[[bytes], CheckedAnswer]
    read_error: Callable[[bytes], str]
    """The message of an error body."""


class SseEvent(NamedTuple):
    """One server-sent event."""

    event: str
    data: str


def require(holds: object, reason: str) -> None:
    """Demand something of the answer."""
    if not holds:
        raise WireError(reason)


def require_field(value: Any, key: str, kind: type, where: str) -> Any:
    """The member of that name and type."""
    require(isinstance(value, dict), f"{where} is not an object")
    require(key in value, f"{where} has no {key}")
    found = value[key]
    fits = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
    require(fits, f"{where}: {key} is not {_TYPE_NAMES[kind]} but {_shorten_value(found)}")
    return found


def require_value(value: Any, key: str, expected: Any, where: str) -> None:
    """Demand a member with that value."""
    require(isinstance(value, dict) and key in value, f"{where} has no {key}")
    require(value[key] == expected, f"{where}: {key} is {_shorten_value(value[key])}, not {_shorten_value(expected)}")


def decode_json(text: str | bytes, where: str) -> Any:
    """A JSON value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(f"{where} is not JSON ({problem}): {_shorten_value(text)}") from None


def require_object_text(arguments: str, where: str) -> str:
    """Arguments that a client can decode: the text of a JSON object."""
    require(
        isinstance(decode_json(arguments, where), dict), f"{where} are not a JSON object: {_shorten_value(arguments)}"
    )
    return arguments


def require_token_counts(usage: Any, *keys: str, total: str = "", where: str = "usage") -> None:
    """Demand numbers of tokens under these names, and their sum where the wire has one."""
    tokens = sum(require_field(usage, key, int, where) for key in keys)
    if total:
        require_value(usage, total, tokens, where)


def build_checked_answer(text: str, calls: Sequence[ToolCall], finish: str) -> CheckedAnswer:
    """An answer that agrees with itself."""
    require((finish == "tool_calls") == bool(calls), f"the answer ends with {finish!r} after {len(calls)} calls")
    require(len({call.id for call in calls}) == len(calls), "two calls have the same id")
    return CheckedAnswer(text, tuple(calls), finish)


def read_openai_error(body: bytes) -> str:
    """The message of an error in OpenAI's form."""
    error = require_field(decode_json(body, "the error"), "error", dict, "the error")
    require_field(error, "type", str, "the error")
    return str(require_field(error, "message", str, "the error"))


def parse_sse(body: bytes) -> list[SseEvent]:
    """The events of an SSE stream. Copilot Chat 0.66 loses events of several data lines, so each has one."""
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
