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
    "Frame", "Seen", "Shape", "Trial", "counts", "decoded", "field", "frames", "need", "object_text", "openai_refusal",
    "same", "seen",
]  # fmt: skip

_KINDS = {str: "a string", int: "an integer", list: "a list", dict: "an object", bool: "a boolean"}


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One request: a prompt, perhaps with a tool, perhaps with the call of the round before and its result."""

    model: str
    prompt: str
    stream: bool = False
    tool: ToolSpec | None = None
    call: ToolCall | None = None
    result: str = ""


class Seen(msgspec.Struct, frozen=True):
    """What a well-formed answer says, in the words of chat completions."""

    text: str
    calls: tuple[ToolCall, ...]
    finish: str


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One wire: where to post, what to post, and what must come back."""

    name: str
    path: str
    stream_type: str
    body: Callable[[Trial], dict[str, Any]]
    whole: Callable[[bytes], Seen]
    streamed: Callable[[bytes], Seen]
    refusal: Callable[[bytes], str]
    """The message of an error body."""


class Frame(NamedTuple):
    """One server-sent event."""

    event: str
    data: str


def need(holds: object, reason: str) -> None:
    """Demand something of the answer."""
    if not holds:
        raise WireError(reason)


def field(value: Any, key: str, kind: type, where: str) -> Any:
    """The member of that name and type."""
    need(isinstance(value, dict), f"{where} is not an object")
    need(key in value, f"{where} has no {key}")
    found = value[key]
    fits = isinstance(found, kind) and (kind is bool or not isinstance(found, bool))
    need(fits, f"{where}: {key} is not {_KINDS[kind]} but {_short(found)}")
    return found


def same(value: Any, key: str, expected: Any, where: str) -> None:
    """Demand a member with that value."""
    need(isinstance(value, dict) and key in value, f"{where} has no {key}")
    need(value[key] == expected, f"{where}: {key} is {_short(value[key])}, not {_short(expected)}")


def decoded(text: str | bytes, where: str) -> Any:
    """A JSON value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise WireError(f"{where} is not JSON ({problem}): {_short(text)}") from None


def object_text(arguments: str, where: str) -> str:
    """Arguments that a client can decode: the text of a JSON object."""
    need(isinstance(decoded(arguments, where), dict), f"{where} are not a JSON object: {_short(arguments)}")
    return arguments


def counts(usage: Any, *keys: str, total: str = "", where: str = "usage") -> None:
    """Demand numbers of tokens under these names, and their sum where the wire has one."""
    tokens = sum(field(usage, key, int, where) for key in keys)
    if total:
        same(usage, total, tokens, where)


def seen(text: str, calls: Sequence[ToolCall], finish: str) -> Seen:
    """An answer that agrees with itself."""
    need((finish == "tool_calls") == bool(calls), f"the answer ends with {finish!r} after {len(calls)} calls")
    need(len({call.id for call in calls}) == len(calls), "two calls have the same id")
    return Seen(text, tuple(calls), finish)


def openai_refusal(body: bytes) -> str:
    """The message of an error in OpenAI's form."""
    error = field(decoded(body, "the error"), "error", dict, "the error")
    field(error, "type", str, "the error")
    return str(field(error, "message", str, "the error"))


def frames(body: bytes) -> list[Frame]:
    """The events of an SSE stream. Copilot Chat 0.66 loses events of several data lines, so each has one."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("the stream is not UTF-8") from None
    need(not text or text.endswith("\n\n"), "the stream does not end with an empty line: its last event is lost")
    return [frame for block in text.split("\n\n") if (frame := _frame(block))]


def _frame(block: str) -> Frame | None:
    names: list[str] = []
    data: list[str] = []
    for line in block.split("\n"):
        if not line or line.startswith(":"):
            continue
        key, _, value = line.partition(":")
        need(key in {"event", "data"}, f"a line of the stream is neither event, data nor comment: {_short(line)}")
        (names if key == "event" else data).append(value.removeprefix(" "))
    need(len(data) <= 1, f"an event has {len(data)} data lines; some clients read only one")
    need(data or not names, f"the event {'/'.join(names)} has no data")
    return Frame("".join(names), data[0]) if data else None


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value) if isinstance(value, bytes) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
