"""Turn: the only writer of events. Collected: what a whole turn comes to.

Whatever is read (a dialect's text, a backend's structured deltas), it is said here, and this is
where the event grammar is kept: one call open at a time, deltas of one kind joined within a feed,
ids unique, one `Finish`. White space that stands alone next to a call is framing, not text; all
other text goes out as it came, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from callwright.errors import MisuseError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    FinishReason,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Reasoning, Repair, ToolCall, Usage
from callwright.schema import ANYTHING, Schema, Toolbox
from callwright.text.repair import repair_json

__all__ = ["Call", "Collected", "IdSource", "Thoughts", "Truncated", "Turn", "UnknownTool", "collect"]

IdSource = Callable[[], str]
Truncated = Literal["partial", "drop", "repair"]
"""What becomes of a call that the output was cut in: `partial` hands on what came, marked incomplete;
`drop` turns it into `Malformed`; `repair` closes its JSON, named and still marked. The last two hold
every call back until it ends."""
UnknownTool = Literal["text", "pass"]
"""What becomes of a call of a tool that was not offered."""

_TEXT, _REASONING, _NOTHING = -1, -2, -3


class Call:
    """One open call. `write` appends JSON text to its arguments; `end` is called exactly once."""

    __slots__ = ("_held", "_turn", "id", "index", "name", "repairs", "schema", "unsaid")

    def __init__(self, turn: Turn, index: int, name: str, call_id: str) -> None:
        self._turn = turn
        self.index = index
        self.name = name
        self.id = call_id
        tool = turn.tools.get(name)
        self.schema: Schema = tool.schema if tool else ANYTHING
        self.repairs: dict[str, str] = {}
        self.unsaid: Callable[[], str] = str
        """What was read of the arguments and waits to be written."""
        self._held: list[str] | None = None
        if turn.truncated != "partial":
            self._held = []

    def write(self, text: str) -> None:
        """Append a fragment of JSON text to the arguments."""
        if self._held is None:
            self._turn.put(self.index, text)
        else:
            self._held.append(text)

    def note(self, kind: str, detail: str = "") -> None:
        """Record a repair; each kind once, with its first detail, or all of them where something was dropped."""
        known = self.repairs.setdefault(kind, detail)
        if kind.startswith("dropped") and detail not in known:
            self.repairs[kind] = f"{known}; {detail}"

    def end(self) -> None:
        """The call is whole."""
        self._finish(complete=True)

    def cut(self, tail: str = "") -> None:
        """The output ended inside the call. What was read and not written yet is noted, and so is the `tail` of it."""
        self._turn.was_cut = True
        if unsaid := ", ".join(filter(None, (self.unsaid(), tail.strip()))):
            self.note("unsaid_value", unsaid)
        if self._held is not None and self._turn.truncated == "repair":
            mended = repair_json("".join(self._held))
            self._held = [mended.text if mended else "{}"]
            self.note("closed_cut_call", "the output ended inside this call; its JSON was closed")
        self._finish(complete=False)

    def _finish(self, *, complete: bool) -> None:
        repairs = tuple(Repair(kind, detail) for kind, detail in self.repairs.items())
        self._turn.end_call(self, "".join(self._held or ()), CallEnd(self.index, complete, repairs))


class Turn:
    """Collects what is said in a turn as events; `drain` hands over those since the last time."""

    def __init__(
        self,
        tools: Toolbox,
        ids: IdSource,
        *,
        truncated: Truncated = "partial",
        unknown_tool: UnknownTool = "text",
    ) -> None:
        self.tools = tools
        self.truncated = truncated
        self.unknown_tool = unknown_tool
        self.was_cut = False
        self.takes_any = True
        """Cleared where only offered tools may count, whatever else was asked for."""
        self._muted = False
        self._unheard: list[str] = []
        self.dialect = ""
        self.why = ""
        self._ids = ids
        self._used_ids: set[str] = set()
        self._events: list[Event] = []
        self._kind = _NOTHING
        self._parts: list[str] = []
        self._gap: list[str] | None = []
        self._silent = True
        self.has_text = False
        """Whether words were said to the reader, white space aside."""
        self._calls = 0
        self._open: Call | None = None
        self._repairs: list[Repair] = []
        self._finished = False

    # ── what readers say ─────────────────────────────────────────────────────────────────────────

    def text(self, text: str) -> None:
        """Words for the reader."""
        if self._gap is not None:
            if text.isspace():
                self._gap.append(text)
                return
            text = "".join(self._gap) + text
            self._gap = None
            self._silent = False
            self.has_text = True
        if self._kind == _TEXT:
            self._parts.append(text)
        else:
            self.put(_TEXT, text)

    def reasoning(self, text: str) -> None:
        """Thinking."""
        if self._kind != _REASONING:
            self._gap = []
            self._silent = False
        self.put(_REASONING, text)

    def seal(self, opaque: dict[str, Any]) -> None:
        """The thinking so far is over; its server wants to see this with it again."""
        self._gap = []
        self._silent = False
        self._say(ReasoningSealed(opaque))

    def accepts(self, name: str) -> bool:
        """Whether a call of that name counts as one: offered, or nobody said what is offered."""
        return name in self.tools or (
            bool(name) and self.takes_any and (not len(self.tools) or self.unknown_tool == "pass")
        )

    def reserve(self, ids: Iterable[str]) -> None:
        """These ids are taken, by earlier turns: a call that brings one of them gets another."""
        self._used_ids.update(ids)

    def call(self, name: str, call_id: str = "") -> Call:
        """Open a call. An id that the model wrote is kept unless it is taken."""
        if self._open is not None:
            raise MisuseError(f"call {self._open.name!r} is still open")
        while not call_id or call_id in self._used_ids:
            call_id = self._ids()
        self._used_ids.add(call_id)
        self._gap = []
        self._silent = False
        call = self._open = Call(self, self._calls, name, call_id)
        self._calls += 1
        if self.truncated == "partial":
            self._say(CallStart(call.index, call_id, name))
        return call

    def malformed(self, raw: str, reason: str, *, shown: bool = False) -> None:
        """Something began like a call and was none."""
        self._say(Malformed(raw, reason, shown))

    def cut(self, raw: str, where: str = "a call") -> None:
        """The output ended inside what was to become a call, before it was one."""
        self.was_cut = True
        self.malformed(raw, f"the output ended inside {where}")

    def usage(self, usage: Usage) -> None:
        """The backend counted."""
        self._say(UsageSeen(usage))

    def note(self, kind: str, detail: str = "") -> None:
        """Record a repair that belongs to no call. What the prompt wrote needs none."""
        repair = Repair(kind, detail)
        if not self._muted and repair not in self._repairs:
            self._repairs.append(repair)

    def finish(self, reason: FinishReason | None = None) -> None:
        """End the turn. A cut call makes it `length`; calls make it `tool_calls` whatever the backend said."""
        if self._open is not None:
            self._open.cut()
        if self._gap and self._silent:
            # A turn of nothing but white space: say it, rather than pretend that nothing came.
            self.put(_TEXT, "".join(self._gap))
        if self.was_cut:
            reason = "length"
        elif self._calls and reason not in ("content_filter", "error"):
            reason = "tool_calls"
        elif reason == "tool_calls":
            reason = "stop"
        self._say(Finish(reason or "stop", tuple(self._repairs), self.dialect, self.why))
        self._finished = True

    @property
    def silent(self) -> bool:
        """Whether nothing was said yet: no word, no reasoning, no call. A prefill says nothing."""
        return self._silent or self._muted

    @property
    def is_open(self) -> bool:
        """Whether a call is being written."""
        return self._open is not None

    @property
    def call_count(self) -> int:
        """How many calls were opened so far."""
        return self._calls

    @property
    def after_call(self) -> bool:
        """Whether a call was the last that was said, white space aside."""
        return self._calls > 0 and self._gap is not None

    # ── the driver's side ────────────────────────────────────────────────────────────────────────

    def drain(self) -> list[Event]:
        """The events since the last time."""
        if self._parts:
            self._flush()
        events, self._events = self._events, []
        return events

    def mute(self) -> None:
        """Say and note nothing until `unmute`: what is read next is a prefill that the client knows."""
        self._muted = True

    def unmute(self) -> str:
        """The prefill is read; what comes now is new. Returns the text that was said meanwhile."""
        if self._parts:
            self._flush()
        self._muted = False
        self._gap = []
        self._silent = not self._calls
        self.has_text = False
        return "".join(self._unheard)

    # ── for Call ─────────────────────────────────────────────────────────────────────────────────

    def put(self, kind: int, text: str) -> None:
        """Append to the delta being built: of text, of reasoning, or of the call with that index."""
        if kind != self._kind:
            if self._parts:
                self._flush()
            self._kind = kind
        self._parts.append(text)

    def end_call(self, call: Call, held: str, end: CallEnd) -> None:
        """Say a call's end, and all of it if it was held back."""
        self._open = None
        if self.truncated == "drop" and not end.complete:
            self._calls -= 1
            self.malformed(f"{call.name} {held}", "cut")
            return
        if self.truncated != "partial":
            self._say(CallStart(call.index, call.id, call.name))
            self.put(call.index, held)
        self._say(end)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────

    def _flush(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        kind = self._kind
        if not text or (self._muted and kind < 0):
            if kind == _TEXT:
                self._unheard.append(text)
            return
        if kind >= 0:
            self._events.append(CallDelta(kind, text))
        else:
            self._events.append(TextDelta(text) if kind == _TEXT else ReasoningDelta(text))

    def _say(self, event: Event) -> None:
        if self._finished:
            raise MisuseError("the turn is finished")
        if self._parts:
            self._flush()
        self._kind = _NOTHING
        self._events.append(event)


class Collected(msgspec.Struct, frozen=True):
    """A whole turn: the answer a non-streaming client gets."""

    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason | None
    repairs: tuple[Repair, ...] = ()
    malformed: tuple[Malformed, ...] = ()
    usage: Usage | None = None
    dialect: str = ""
    why: str = ""
    thoughts: tuple[Reasoning, ...] = ()
    """The reasoning in its stretches, each with its seal if it has one."""


def collect(events: Iterable[Event]) -> Collected:
    """All of a turn's events as one value. Without a `Finish` the reason is None."""
    thoughts = Thoughts()
    text: list[str] = []
    reasoning: list[str] = []
    starts: list[CallStart] = []
    fragments: dict[int, list[str]] = {}
    whole: set[int] = set()
    repairs: list[Repair] = []
    malformed: list[Malformed] = []
    usage: Usage | None = None
    finish: Finish | None = None
    for event in events:
        thoughts.see(event)
        match event:
            case TextDelta():
                text.append(event.text)
            case ReasoningDelta():
                reasoning.append(event.text)
            case ReasoningSealed():
                pass
            case CallStart():
                starts.append(event)
                fragments[event.index] = []
            case CallDelta():
                if event.index not in fragments:
                    raise MisuseError(f"call {event.index} has no start here: collect takes all the events of a turn")
                fragments[event.index].append(event.text)
            case CallEnd():
                repairs.extend(event.repairs)
                if event.complete:
                    whole.add(event.index)
            case Malformed():
                malformed.append(event)
            case UsageSeen():
                usage = event.usage
            case _:
                finish = event
                repairs.extend(event.repairs)
    return Collected(
        "".join(text),
        "".join(reasoning),
        tuple(
            ToolCall(start.id, start.name, "".join(fragments[start.index]), start.index in whole) for start in starts
        ),
        finish.reason if finish else None,
        tuple(repairs),
        tuple(malformed),
        usage,
        finish.dialect if finish else "",
        finish.why if finish else "",
        thoughts.taken(),
    )


class Thoughts:
    """Reasoning while it is told, in stretches: one ends with its seal, or where something else is said."""

    def __init__(self) -> None:
        self._whole: list[Reasoning] = []
        self._pieces: list[str] = []

    def see(self, event: Event) -> None:
        """Take note of an event of the turn."""
        if isinstance(event, ReasoningDelta):
            self._pieces.append(event.text)
        elif isinstance(event, ReasoningSealed):
            self._end(event.opaque)
        elif self._pieces and isinstance(event, TextDelta | CallStart):
            self._end()

    def taken(self) -> tuple[Reasoning, ...]:
        """What was thought since the last time."""
        if self._pieces:
            self._end()
        whole, self._whole = tuple(self._whole), []
        return whole

    def _end(self, opaque: dict[str, Any] | None = None) -> None:
        self._whole.append(Reasoning("".join(self._pieces), opaque))
        self._pieces = []
