"""Events: the steps of a model's turn, and the grammar of the orders in which they may occur.

    turn      := ( text | reasoning | call | malformed | usage )* Finish
    text      := TextDelta+                      never empty
    reasoning := ReasoningDelta* ReasoningSealed?    at least one of the two, deltas never empty
    call      := CallStart CallDelta* CallEnd    one call open at a time, indices 0, 1, 2 …
    malformed := Malformed                       between calls only
    usage     := UsageSeen

The fragments of a complete call join to one JSON object. `check_events` enforces the grammar; every test that handles
events uses it.
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
    """The next piece of the answer."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning", gc=False):
    """The next piece of reasoning."""

    text: str


class ReasoningSealed(msgspec.Struct, frozen=True, tag="reasoning_sealed"):
    """The end of a section of reasoning. `opaque` is what the server expects to get back with it: a signature, or the
    reasoning in encrypted form. Only the wires read it."""

    opaque: dict[str, Any]


class CallStart(msgspec.Struct, frozen=True, tag="call_start", gc=False):
    """The start of a call. Its name and id are final."""

    index: int
    id: str
    name: str


class CallDelta(msgspec.Struct, frozen=True, tag="call_delta", gc=False):
    """The next piece of a call's arguments: a fragment of JSON text to append."""

    index: int
    text: str


class CallEnd(msgspec.Struct, frozen=True, tag="call_end"):
    """The end of a call. If `complete` is false, the output ended inside it and its arguments are a prefix."""

    index: int
    complete: bool = True
    repairs: tuple[Repair, ...] = ()


class Malformed(msgspec.Struct, frozen=True, tag="malformed", gc=False):
    """Text that began like a call and was none. `shown` says whether the client received it as text too."""

    raw: str
    reason: str
    shown: bool = False


class UsageSeen(msgspec.Struct, frozen=True, tag="usage"):
    """The token usage that the backend reported."""

    usage: Usage


class Finish(msgspec.Struct, frozen=True, tag="finish"):
    """The end of the turn. `repairs` belong to no call; `dialect` and `why` say how the text was read."""

    reason: FinishReason
    repairs: tuple[Repair, ...] = ()
    dialect: str = ""
    why: str = ""


Event = TextDelta | ReasoningDelta | ReasoningSealed | CallStart | CallDelta | CallEnd | Malformed | UsageSeen | Finish


def merge_deltas(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring deltas of one kind. The result does not depend on how the text was cut into chunks."""
    out: list[Event] = []
    pieces: list[str] = []  # of the run that starts with the last event of `out`
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
    """Join the pieces of a run into its first event, which is the last event of `out`."""
    if len(pieces) > 1:
        out[-1] = msgspec.structs.replace(out[-1], text="".join(pieces))


def check_events(events: Iterable[Event], *, finished: bool = True) -> None:
    """Raise `MisuseError` at the first event that the grammar does not allow at its position.

    With `finished=False` the stream may be incomplete, and no `Finish` is required.
    """
    checker = _GrammarChecker()
    for position, event in enumerate(events):
        problem = checker.find_problem(event)
        if problem:
            raise MisuseError(f"event {position} ({type(event).__name__}): {problem}")
    if finished and not checker.finished:
        raise MisuseError("the stream has no Finish")


class _GrammarChecker:
    """A state machine for the grammar: the current state, and the fragments of the open call."""

    def __init__(self) -> None:
        self.finished = False
        self.call_count = 0
        self.has_complete_call = False
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
                return "" if event.opaque else "the seal is empty"
            case CallStart():
                return self._check_start(event)
            case Malformed():
                return "" if event.reason else "the reason is empty"
            case _:
                self.finished = True
                return self._check_finish(event)

    def _check_start(self, event: CallStart) -> str:
        if event.index != self.call_count:
            return f"the index is {event.index}, expected {self.call_count}"
        if not event.name or not event.id or event.id in self.ids:
            return "a call needs a name and a unique id"
        self.call_count += 1
        self.ids.add(event.id)
        self.open_fragments = []
        return ""

    def _check_inside_call(self, event: CallDelta | CallEnd) -> str:
        if self.open_fragments is None or event.index != self.call_count - 1:
            return "this call is not open"
        if isinstance(event, CallDelta):
            self.open_fragments.append(event.text)
            return "" if event.text else "the delta is empty"
        arguments, self.open_fragments = "".join(self.open_fragments), None
        self.has_complete_call = self.has_complete_call or event.complete
        return (
            ""
            if not event.complete or _is_json_object(arguments)
            else f"the arguments are not a JSON object: {arguments!r}"
        )

    def _check_finish(self, event: Finish) -> str:
        if event.reason == "tool_calls" and not self.has_complete_call:
            return "the finish reason is tool_calls, but there is no complete call"
        return ""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
