"""Ollama's API, client side: read a server's lines of JSON as events.

Calls arrive complete, several in a line or one in each, often all with `index: 0` (ollama/ollama#15457): each is a
separate call, in order of arrival. An answer without streaming is a single line of the same kind.
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
from callwright.wire.argument_json import is_json_object
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import JSON_DECODE_ERRORS, LineReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["OllamaReader"]


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _ToolCall(msgspec.Struct):
    function: _Function
    id: str = ""


class _Message(msgspec.Struct):
    content: str | None = ""
    thinking: str | None = ""
    tool_calls: list[_ToolCall] | None = None


class _Line(msgspec.Struct):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = ""
    prompt_eval_count: int = 0
    eval_count: int = 0
    error: Any = None


_LINE_DECODER = msgspec.json.Decoder(_Line)


class OllamaReader(EventReader):
    """Reads one server's stream."""

    def __init__(self) -> None:
        self._lines = LineReader()
        self._call_count = 0
        self._is_over = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        self._read_lines(self._lines.feed(data), out)

    def _process_end(self, out: list[Event]) -> None:
        self._read_lines(self._lines.close(), out)
        if not self._is_over:
            raise BackendError("the server closed the stream before it sent done", retryable=True)

    def _read_lines(self, lines: list[bytes], out: list[Event]) -> None:
        for line in lines:
            if line.strip() and not self._is_over:
                self._read_line(line, out)

    def _read_line(self, data: bytes, events: list[Event]) -> None:
        try:
            line = self._decode_json(data, _LINE_DECODER)
        except JSON_DECODE_ERRORS as problem:
            raise WireError(f"the server sent an invalid line: {problem}") from problem
        if line.error:
            raise parse_backend_error(0, msgspec.json.encode(line.error))
        if message := line.message:
            if message.thinking:
                events.append(ReasoningDelta(message.thinking))
            if message.content:
                events.append(TextDelta(message.content))
            for call in message.tool_calls or ():
                events += self._build_call_events(call)
        if line.done:
            self._is_over = True
            if line.prompt_eval_count or line.eval_count:
                events.append(UsageSeen(Usage(line.prompt_eval_count, line.eval_count)))
            events.append(Finish(self._map_finish_reason(line.done_reason)))

    def _build_call_events(self, call: _ToolCall) -> list[Event]:
        index = self._call_count
        self._call_count += 1
        arguments = bytes(call.function.arguments).decode("utf-8", "replace")
        return [
            CallStart(index, call.id, call.function.name),
            CallDelta(index, arguments),
            CallEnd(index, is_json_object(arguments)),
        ]

    def _map_finish_reason(self, done_reason: str | None) -> FinishReason:
        """Map the reason. `stop` also ends a turn of calls here; `load` and `unload` end turns without text."""
        if done_reason == "length":
            return "length"
        return "tool_calls" if self._call_count else "stop"
