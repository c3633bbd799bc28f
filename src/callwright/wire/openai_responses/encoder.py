"""Events as a Responses stream, and as the response at its end: one writer for both.

Every item that is added is done before the one terminal event, which comes last whatever happened before. The exception
is a call that was cut: Codex (0.166, measured) runs what it is told is done, whatever status that has, so half a call
is never done, and not in the response either. All events have an `event:` line and a `sequence_number` that counts
from 0. A delta is written from a prepared prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.wire.base import Ask, Head, Origin, Problem, Style
from callwright.wire.cuts import Cuts
from callwright.wire.framing import DATA, END, comment, quoted
from callwright.wire.openai_responses.output import Answer, Call, CustomCall, Item, Status, Thinking, Told, Words
from callwright.wire.pieces import Pieces
from callwright.wire.problems import told

__all__ = ["ResponsesEncoder"]

_ENDS: dict[FinishReason, dict[str, str]] = {
    "stop": {"status": "completed"},
    "tool_calls": {"status": "completed"},
    "length": {"status": "incomplete", "incomplete": "max_output_tokens"},
    "content_filter": {"status": "incomplete", "incomplete": "content_filter"},
    "error": {"status": "failed", "code": "server_error", "message": "the model's turn ended in an error"},
}
_WHOLE = ("stop", "tool_calls")
_BROKEN_OFF = {"status": "failed", "code": "server_error", "message": "the answer broke off before its end"}

_encode = msgspec.json.Encoder().encode

Spoken = TypeVar("Spoken", bound=Words | Thinking)


class ResponsesEncoder:
    """Writes one answer."""

    def __init__(self, ask: Ask, head: Head, style: Style) -> None:
        self.answer = Answer(ask, head)
        self._head = head
        self._origins = ask.origins
        self._style = style
        self._sequence = 0
        self._out: list[bytes] = []
        self._open: Item | None = None
        self._delta_prefix = b""
        self._added = 0
        self._was_cut = False
        self._counts = {"msg": 0, "rs": 0, "call": 0}
        self._pieces = {Words.prefix: Pieces(), Thinking.prefix: Pieces()}
        self._cuts = Cuts(style.arguments)
        self._finish: dict[str, str] | None = None
        self._over = False

    # ── the client's stream ──────────────────────────────────────────────────────────────────────

    @property
    def holding(self) -> bool:
        """Whether text waits to be joined with what follows."""
        pieces = self._open_pieces()
        return pieces is not None and pieces.holding

    def begin(self) -> bytes:
        """The events before the first item."""
        for kind in ("response.created", "response.in_progress"):
            self._tell(kind, {"response": self.answer.body()})
        return self._take()

    def encode(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """The next events. Those after the turn's end are dropped: the client was told that it is over."""
        for event in events:
            if self._finish is not None or choice:
                break
            self._write(event)
        return self._take()

    def flush(self) -> bytes:
        """The text that was held back."""
        pieces = self._open_pieces()
        if self._open and pieces and (text := pieces.flush()):
            self._tell_delta(self._open, text)
        return self._take()

    def heartbeat(self) -> bytes:
        """A sign of life. Codex counts events only, never comments (github.com/openai/codex/issues/31539), and takes
        any event that it knows; `response.in_progress` changes nothing for anybody."""
        if self._over or self._style.heartbeat == "none":
            return b""
        if self._style.heartbeat == "comment":
            return comment("keep-alive")
        self._tell("response.in_progress", {"response": self.answer.body()})
        return self._take()

    def fail(self, problem: Problem) -> bytes:
        """Say that the turn failed. Codex (0.166) knows some codes and tries again on all others."""
        return self._end({"status": "failed", "code": _code(problem), "message": told(problem)})

    def end(self, note: str = "") -> bytes:
        """The last event, after a comment if there is one."""
        if note and not self._over:
            self._out.append(comment(note))
        return self._end(self._finish or _BROKEN_OFF)

    # ── one event ────────────────────────────────────────────────────────────────────────────────

    def _write(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._speak(Words, event.text)
            case ReasoningDelta():
                self._speak(Thinking, event.text)
            case ReasoningSealed(opaque) if "encrypted_content" in opaque:
                self._begun(Thinking).encrypted = opaque["encrypted_content"]
                self._close("completed")
            case CallStart():
                self._close("completed")
                origin = self._origins.get(event.name, Origin(event.name))
                kind = CustomCall if origin.kind == "custom" else Call
                self._start(kind(self._new_id(kind.prefix, "call"), self._added, event.id, origin))
            case CallDelta() if isinstance(self._open, Call):
                self._tell_arguments(self._open, self._open.read(event.text))
            case CallEnd() if isinstance(self._open, Call):
                if event.complete:
                    self._tell_arguments(self._open, self._open.rest())
                self._close("completed" if event.complete else "incomplete")
            case UsageSeen():
                self.answer.usage = event.usage
            case Finish():
                self._finish = _ENDS["length" if self._was_cut and event.reason in _WHOLE else event.reason]
                self._close("completed" if self._finish["status"] == "completed" else "incomplete")
            case _:  # malformed text is for the journal
                pass

    def _speak(self, kind: type[Words] | type[Thinking], text: str) -> None:
        item: Item = self._begun(kind)
        if piece := self._pieces[kind.prefix].feed(text):
            self._tell_delta(item, piece)

    def _begun(self, kind: type[Spoken]) -> Spoken:
        """The open item if it is of that kind, else a new one."""
        item = self._open
        if type(item) is kind:
            return item
        self._close("completed")
        item = kind(self._new_id(kind.prefix, kind.prefix), self._added)
        self._start(item)
        return item

    def _tell_arguments(self, call: Call, text: str) -> None:
        """Send text of a call, if there is any, cut as the client wants it."""
        for piece in self._cuts.feed(text) if text else ():
            self._tell_delta(call, piece)

    # ── items ────────────────────────────────────────────────────────────────────────────────────

    def _start(self, item: Item) -> Item:
        self._open = item
        self._added += 1
        self._tell("response.output_item.added", {"output_index": item.index, "item": item.body()})
        self._tell_all(item, item.opening())
        fields = _encode({"type": item.delta, "item_id": item.id, "output_index": item.index, **item.place})
        self._delta_prefix = _frame(item.delta) + fields[:-1] + b',"sequence_number":'
        return item

    def _close(self, status: Status) -> None:
        """End the open item, if there is one."""
        item = self._open
        if item is None:
            return
        for text in (self._open_pieces() or self._cuts).drain():
            self._tell_delta(item, text)
        self._open = None
        if isinstance(item, Call) and status == "incomplete":
            self._was_cut = True
            return
        item.close(status)
        self.answer.items.append(item)
        self._tell_all(item, item.closing())
        self._tell("response.output_item.done", {"output_index": item.index, "item": item.body()})

    def _end(self, ending: dict[str, str]) -> bytes:
        if self._over:
            return b""
        self._over = True
        self._close("incomplete")
        self._finish = ending
        self.answer.end(**ending)
        self._tell(f"response.{ending['status']}", {"response": self.answer.body()})
        return self._take()

    def _new_id(self, prefix: str, counted: str) -> str:
        """An id that leads back to this answer: see `conversation`."""
        number = self._counts[counted]
        self._counts[counted] += 1
        return f"{prefix}_{self._head.id}_{number}"

    def _open_pieces(self) -> Pieces | None:
        return self._pieces.get(self._open.prefix) if self._open else None

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────

    def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        body = _encode({"type": kind, "sequence_number": self._sequence, **fields})
        self._sequence += 1
        self._out += (_frame(kind), body, END)

    def _tell_all(self, item: Item, told: Iterable[Told]) -> None:
        for kind, fields in told:
            self._tell(kind, {"item_id": item.id, "output_index": item.index, **fields})

    def _tell_delta(self, item: Item, text: str) -> None:
        item.parts.append(text)
        self._out += (self._delta_prefix, b"%d" % self._sequence, b',"delta":', quoted(text), b"}", END)
        self._sequence += 1

    def _take(self) -> bytes:
        out = b"".join(self._out)
        self._out.clear()
        return out


def _frame(kind: str) -> bytes:
    return b"event: " + kind.encode() + b"\n" + DATA


def _code(problem: Problem) -> str:
    """A code of this API, of which openai-python 3.49 has a closed list, or the one besides that Codex acts on."""
    if problem.code == "context_length_exceeded":
        return problem.code
    if problem.status == 429:
        return "rate_limit_exceeded"
    return "invalid_prompt" if problem.fault == "client" else "server_error"
