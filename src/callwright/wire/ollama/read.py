"""Ollama's own API, what a server answers: its lines of JSON as events.

Calls come whole, several in a line or one in each, often all with `index: 0` (ollama/ollama#15457): each is a call of
its own, in the order in which it comes. An answer that is not streamed is a single line of the same kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import BackendError, WireError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from callwright.model import Usage
from callwright.wire.framing import UNREADABLE, LineReader
from callwright.wire.openai_errors import refusal
from callwright.wire.reading import EventReader
from callwright.wire.shapes import is_object

__all__ = ["OllamaReader"]


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct):
    function: _Function
    id: str = ""


class _Message(msgspec.Struct):
    content: str | None = ""
    thinking: str | None = ""
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = ""
    prompt_eval_count: int = 0
    eval_count: int = 0
    error: Any = None


_decode = msgspec.json.Decoder(_Line).decode


class OllamaReader(EventReader):
    """One server's stream."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._count = 0
        self._over = False

    def _fed(self, data: bytes, out: list[Event]) -> None:
        self._read(self._lines.feed(data), out)

    def _closed(self, out: list[Event]) -> None:
        self._read(self._lines.close(), out)
        if not self._over:
            raise BackendError("the server closed the stream before it said that it was done", retryable=True)

    def _read(self, lines: list[bytes], out: list[Event]) -> None:
        for line in lines:
            if line.strip() and not self._over:
                self._line(line, out)

    def _line(self, data: bytes, events: list[Event]) -> None:
        try:
            line = _decode(data)
        except UNREADABLE as problem:
            raise WireError(f"the server sent a line that cannot be read: {problem}") from problem
        if line.error:
            raise refusal(0, msgspec.json.encode(line.error))
        if message := line.message:
            if message.thinking:
                events.append(ReasoningDelta(message.thinking))
            if message.content:
                events.append(TextDelta(message.content))
            for call in message.tool_calls or ():
                events += self._call(call)
        if line.done:
            self._over = True
            if line.prompt_eval_count or line.eval_count:
                events.append(UsageSeen(Usage(line.prompt_eval_count, line.eval_count)))
            events.append(Finish(self._reason(line.done_reason)))

    def _call(self, call: _Call) -> list[Event]:
        index = self._count
        self._count += 1
        arguments = bytes(call.function.arguments).decode("utf-8", "replace")
        return [
            CallStart(index, call.id, call.function.name),
            CallDelta(index, arguments),
            CallEnd(index, is_object(arguments)),
        ]

    def _reason(self, done_reason: str | None) -> FinishReason:
        """`stop` is also how a turn of calls ends here; `load` and `unload` are the ends of turns without words."""
        if done_reason == "length":
            return "length"
        return "tool_calls" if self._count else "stop"
