"""Events: what a model's turn is made of, and the orders in which they may come.

    turn      := ( text | reasoning | call | malformed | usage )* Finish
    text      := TextDelta+                      never empty
    reasoning := ReasoningDelta* ReasoningSealed?    never nothing at all, deltas never empty
    call      := CallStart CallDelta* CallEnd    one call open at a time, indices 0, 1, 2 …
    malformed := Malformed                       between calls only
    usage     := UsageSeen

The fragments of a complete call join to one JSON object. `check` enforces all of this and is used
by every test that has events in its hands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from callwright.errors import MisuseError
from callwright.model import Repair, Usage

__all__ = [
    "CallDelta",
    "CallEnd",
    "CallStart",
    "Event",
    "Finish",
    "FinishReason",
    "Malformed",
    "ReasoningDelta",
    "ReasoningSealed",
    "TextDelta",
    "UsageSeen",
    "check_events",
    "merge_deltas",
]

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "error"]


class TextDelta(msgspec.Struct, frozen=True, tag="text", gc=False):
    """More of the answer."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning", gc=False):
    """More of the thinking."""

    text: str


class ReasoningSealed(msgspec.Struct, frozen=True, tag="reasoning_sealed"):
    """A stretch of thinking is over, and this is what its server wants to see with it again: a signature, the whole of
    it encrypted. Nobody but the wires looks into it."""

    opaque: dict[str, Any]


class CallStart(msgspec.Struct, frozen=True, tag="call_start", gc=False):
    """A call begins; its name and id are final."""

    index: int
    id: str
    name: str


class CallDelta(msgspec.Struct, frozen=True, tag="call_delta", gc=False):
    """More of a call's arguments: a fragment of JSON text, to be appended."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, tag="call_end"):
    """A call is over. When `complete` is false the output was cut inside it: its arguments are a prefix."""

    index: int
    complete: bool = True
    repairs: tuple[Repair, ...] = ()


class Malformed(msgspec.Struct, frozen=True, tag="malformed", gc=False):
    """Text that began like a call and was none. `shown` says that the reader got it as text too."""

    raw: str
    reason: str
    shown: bool = False


class UsageSeen(msgspec.Struct, frozen=True, tag="usage"):
    """The backend reported its tokens."""

    usage: Usage


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """The turn is over. `repairs` are those that belong to no call; `dialect` and `why` say what was read as what."""

    reason: FinishReason
    repairs: tuple[Repair, ...] = ()
    dialect: str = ""
    why: str = ""


Event = TextDelta | ReasoningDelta | ReasoningSealed | CallStart | CallDelta | CallEnd | Malformed | UsageSeen | Finish


def merge_deltas(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one kind joined: what cutting must not change."""
    out: list[Event] = []
    pieces: list[str] = []  # of the run that the last event began
    running: object = None
    for event in events:
        kind = type(event)
        if kind is TextDelta or kind is ReasoningDelta:
            joins: object = kind
        else:
            joins = event.index if isinstance(event, CallDelta) else None
        if joins is not None and joins == running:
            pieces.append(event.text)  # type: ignore[union-attr]
            continue
        _join_pieces(out, pieces)
        running = joins
        pieces = [] if joins is None else [event.text]  # type: ignore[union-attr]
        out.append(event)
    _join_pieces(out, pieces)
    return out


def _join_pieces(out: list[Event], pieces: list[str]) -> None:
    """Put the pieces of a run into its first event, which is the last one there."""
    if len(pieces) > 1:
        out[-1] = msgspec.structs.replace(out[-1], text="".join(pieces))


def check_events(events: Iterable[Event], *, finished: bool = True) -> None:
    """Raise `MisuseError` at the first event that the grammar does not allow there.

    With `finished=False` the stream may still be going on: no `Finish` is asked for.
    """
    checker = _GrammarChecker()
    for position, event in enumerate(events):
        problem = checker.find_problem(event)
        if problem:
            raise MisuseError(f"event {position} ({type(event).__name__}): {problem}")
    if finished and not checker.finished:
        raise MisuseError("the stream has no Finish")


class _GrammarChecker:
    """The grammar as a machine: where we are, and what was seen of the open call."""

    def __init__(self) -> None:
        self.finished = False
        self.call_count = 0
        self.has_truncated_call = False
        self.open_fragments: list[str] | None = None
        self.ids: set[str] = set()

    def find_problem(self, event: Event) -> str:
        if self.finished:
            return "nothing may follow Finish"
        match event:
            case CallDelta() | CallEnd():
                return self._check_inside_call(event)
            case UsageSeen():
                return ""
            case _ if self.open_fragments is not None:
                return "a call is still open"
            case TextDelta() | ReasoningDelta():
                return "" if event.text else "the delta is empty"
            case ReasoningSealed():
                return "" if event.opaque else "it seals with nothing"
            case CallStart():
                return self._check_start(event)
            case Malformed():
                return "" if event.reason else "it gives no reason"
            case _:
                self.finished = True
                return self._check_finish(event)

    def _check_start(self, event: CallStart) -> str:
        if event.index != self.call_count:
            return f"index {event.index} where {self.call_count} is next"
        if not event.name or not event.id or event.id in self.ids:
            return "a call needs a name and an id of its own"
        self.call_count += 1
        self.ids.add(event.id)
        self.open_fragments = []
        return ""

    def _check_inside_call(self, event: CallDelta | CallEnd) -> str:
        if self.open_fragments is None or event.index != self.call_count - 1:
            return "that call is not open"
        if isinstance(event, CallDelta):
            self.open_fragments.append(event.text)
            return "" if event.text else "the delta is empty"
        arguments, self.open_fragments = "".join(self.open_fragments), None
        self.has_truncated_call = self.has_truncated_call or not event.complete
        return (
            ""
            if not event.complete or _is_json_object(arguments)
            else f"arguments are not a JSON object: {arguments!r}"
        )

    def _check_finish(self, event: Finish) -> str:
        if self.has_truncated_call and event.reason == "tool_calls":
            return "a turn with a cut call does not end on tool_calls"
        if event.reason == "tool_calls" and not self.call_count:
            return "tool_calls without a call"
        return ""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
