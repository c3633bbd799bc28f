"""Ollama's own API, what clients get: events as lines of JSON, the answer in one piece, and errors.

    {"model": …, "created_at": …, "message": {"role": "assistant", "content": "Hello"}, "done": false}
    {"model": …, "created_at": …, "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": …}

This API has no parts of a call: each goes out whole, when it ends, and one that was cut does not go out at all. The
last line, and no other, says that it is done. A turn that fails has a line with `error` before it: ollama-py 0.6 and
ollama-js 0.6 raise there, and who does not look for it sees the end all the same, with a reason that is no success.

`/api/generate` is the same under other names, and without calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from callwright.errors import RequestError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import ToolCall, Usage
from callwright.turn import Collected
from callwright.wire.base import Ask, Encoder, Head, Problem, Style
from callwright.wire.framing import quoted
from callwright.wire.ollama.decode import decode_chat, decode_generate
from callwright.wire.pieces import Pieces
from callwright.wire.problems import told
from callwright.wire.shapes import on_one_line

__all__ = ["OLLAMA", "OLLAMA_GENERATE", "OllamaEncoder", "ServedOllama"]

_encode = msgspec.json.encode
_Kind = Literal["content", "thinking"]
_Say = Callable[[dict[str, Any]], dict[str, Any]]
"""Where a path puts what the model says, which comes as the fields of a chat's message."""

_UNFINISHED = Problem(status=502, message="the model's turn broke off before its end", fault="backend")


def _chat(said: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": "", **said}}


def _generate(said: dict[str, Any]) -> dict[str, Any]:
    thinking = {"thinking": said["thinking"]} if "thinking" in said else {}
    return {"response": said.get("content", ""), **thinking}


class OllamaEncoder:
    """One client's stream."""

    def __init__(self, head: Head, style: Style, say: _Say) -> None:
        self._head = head
        self._style = style
        self._say = say
        self._pieces = Pieces()
        self._kind: _Kind = "content"
        self._frames = {kind: _frame(head, say, kind) for kind in ("content", "thinking")}
        """What stands before and after the text of a line."""
        self._call = CallStart(0, "", "")
        self._fragments: list[str] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None
        self._over = False

    @property
    def holding(self) -> bool:
        return self._pieces.holding

    def begin(self) -> bytes:
        """Nothing: this stream has no head."""
        return b""

    def encode(self, events: Sequence[Event], choice: int = 0) -> bytes:
        return b"" if self._over else b"".join([self._one(event) for event in events])

    def _one(self, event: Event) -> bytes:
        match event:
            case TextDelta(text):
                return self._text("content", text)
            case CallDelta(_, text):
                self._fragments.append(text)
            case ReasoningDelta(text):
                return self._text("thinking", text) if self._style.reasoning_fields else b""
            case CallStart():
                self._call = event
                self._fragments.clear()
            case CallEnd(_, True):
                call = ToolCall(self._call.id, self._call.name, "".join(self._fragments))
                return self._drain() + _line(self._head, self._say(_calls([call], event.index)))
            case UsageSeen(usage):
                self._usage = usage
            case Finish():
                self._finish = event
            case _:
                pass
        return b""

    def _text(self, kind: _Kind, text: str) -> bytes:
        before = b"" if kind == self._kind else self._drain()
        self._kind = kind
        piece = self._pieces.feed(text)
        return before + self._piece(piece) if piece else before

    def _piece(self, piece: str) -> bytes:
        start, end = self._frames[self._kind]
        return start + quoted(piece) + end

    def _drain(self) -> bytes:
        return b"".join([self._piece(piece) for piece in self._pieces.drain()])

    def flush(self) -> bytes:
        piece = self._pieces.flush()
        return self._piece(piece) if piece else b""

    def heartbeat(self) -> bytes:
        """Lines of JSON have no comments; an empty piece of text is as near as it gets, for who asks for events."""
        if self._over or self._style.heartbeat != "event":
            return b""
        return _line(self._head, self._say({}))

    def fail(self, problem: Problem) -> bytes:
        if self._over:
            return b""
        self._over = True
        return self._drain() + _error(problem) + b"\n" + _line(self._head, self._say({}), _ending("error", self._usage))

    def end(self, comment: str = "") -> bytes:
        if self._over:
            return b""
        if self._finish is None or self._finish.reason == "error":
            return self.fail(_UNFINISHED)
        self._over = True
        return self._drain() + _line(self._head, self._say({}), _ending(_done_reason(self._finish.reason), self._usage))


class ServedOllama:
    """The serving half of this wire, for one of its two paths."""

    content_type = "application/x-ndjson"

    def __init__(self, name: str, decode: Callable[[bytes], Ask], say: _Say) -> None:
        self.name = name
        self._decode = decode
        self._say = say

    def decode(self, body: bytes) -> Ask:
        try:
            return self._decode(body)
        except (RecursionError, UnicodeDecodeError) as problem:
            raise RequestError(f"the body cannot be read: {problem}") from problem

    def encoder(self, ask: Ask, head: Head, style: Style) -> Encoder:
        return OllamaEncoder(head, style, self._say)

    def whole(self, ask: Ask, head: Head, style: Style, turns: Sequence[Collected]) -> bytes:
        turn = turns[0]
        said: dict[str, Any] = {"content": _raw(turn.text)}
        if turn.reasoning and style.reasoning_fields:
            said["thinking"] = _raw(turn.reasoning)
        if calls := [call for call in turn.tool_calls if call.complete]:
            said |= _calls(calls)
        return _line(head, self._say(said), _ending(_done_reason(turn.finish_reason), turn.usage))

    def problem(self, problem: Problem) -> bytes:
        return _error(problem)


def _error(problem: Problem) -> bytes:
    return b'{"error":' + quoted(told(problem)) + b"}"


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(quoted(text))


def _line(head: Head, said: dict[str, Any], ending: dict[str, Any] | None = None) -> bytes:
    created = datetime.fromtimestamp(head.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    top = {"model": _raw(head.model), "created_at": created}
    return _encode({**top, **said, **(ending or {"done": False})}) + b"\n"


def _frame(head: Head, say: _Say, kind: str) -> tuple[bytes, bytes]:
    """A line with a hole where its text goes."""
    hole = b'"\0"'
    start, _, end = _line(head, say({kind: msgspec.Raw(hole)})).partition(hole)
    return start, end


def _calls(calls: Sequence[ToolCall], first: int = 0) -> dict[str, Any]:
    return {
        "tool_calls": [
            {
                "id": _raw(call.id),
                "function": {"index": index, "name": _raw(call.name), "arguments": on_one_line(call.arguments)},
            }
            for index, call in enumerate(calls, first)
        ]
    }


def _done_reason(reason: str | None) -> str:
    return "length" if reason == "length" else "stop"


def _ending(reason: str, usage: Usage | None) -> dict[str, Any]:
    """The last line's own fields. Nobody here has a clock: a duration of 0 says that it is not known."""
    usage = usage or Usage()
    return {
        "done": True,
        "done_reason": reason,
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": 0,
        "eval_count": usage.completion_tokens,
        "eval_duration": 0,
    }


OLLAMA = ServedOllama("ollama", decode_chat, _chat)
OLLAMA_GENERATE = ServedOllama("ollama_generate", decode_generate, _generate)
