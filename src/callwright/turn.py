"""Turn: the only writer of events. Collected: the result of a complete turn.

Every reader (a dialect's grammar, a backend's structured deltas) writes to a `Turn`, and the turn enforces the event
grammar: one call open at a time, deltas of one kind joined within a feed, unique ids, one `Finish`. White space that
stands alone next to a call is framing, not text; all other text is passed on unchanged and in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

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
from callwright.schema import ANY_SCHEMA, Schema, Toolbox
from callwright.text.repair import repair_json
from callwright.text.repair_log import RepairLog

__all__ = [
    "CallWriter",
    "Collected",
    "IdFactory",
    "ReasoningCollector",
    "TruncationMode",
    "Turn",
    "UnknownToolMode",
    "collect",
]

IdFactory = Callable[[], str]
TruncationMode = Literal["partial", "drop", "repair"]
"""What happens to a call if the output ended inside it: `partial` passes on what was read, marked as incomplete;
`drop` turns it into `Malformed`; `repair` closes its JSON, records a repair and still marks it. The last two hold
every call back until it ends."""
UnknownToolMode = Literal["text", "pass"]
"""What happens to a call of a tool that the request does not have."""

_TEXT, _REASONING, _NOTHING = -1, -2, -3


class CallWriter:
    """One open call. `write` appends JSON text to its arguments; call `end` or `end_truncated` exactly once."""

    __slots__ = ("_buffer", "_turn", "describe_pending", "id", "index", "name", "repairs", "schema")

    def __init__(self, turn: Turn, index: int, name: str, call_id: str) -> None:
        self._turn = turn
        self.index = index
        self.name = name
        self.id = call_id
        tool = turn.tools.get(name)
        self.schema: Schema = tool.schema if tool else ANY_SCHEMA
        self.repairs = RepairLog()
        self.describe_pending: Callable[[], str] = str
        """Returns the text of arguments that were read but not written yet."""
        self._buffer: list[str] | None = None
        if turn.truncated != "partial":
            self._buffer = []

    def has_tool(self, name: str) -> bool:
        """Whether the request has a tool of this name."""
        return name in self._turn.tools

    def write(self, text: str) -> None:
        """Append a fragment of JSON text to the arguments."""
        if self._buffer is None:
            self._turn.append_delta(self.index, text)
        else:
            self._buffer.append(text)

    def add_repair(self, kind: str, detail: str = "") -> None:
        """Record a repair: each kind once, with its first detail; all details where something was dropped."""
        self.repairs.add_repair(kind, detail)

    def end(self) -> None:
        """End a complete call."""
        self._end_call(complete=True)

    def end_truncated(self, tail: str = "") -> None:
        """End a call that the output ended inside of. Record text that was read but not written, and `tail`."""
        self._turn.is_truncated = True
        self._end_incomplete(tail)

    def end_broken(self) -> None:
        """End a call that is incomplete, although the output goes on after it."""
        self._turn.has_broken_call = True
        self._end_incomplete("")

    def _end_incomplete(self, tail: str) -> None:
        if unwritten := ", ".join(filter(None, (self.describe_pending(), tail.strip()))):
            self.add_repair("unwritten_value", unwritten)
        if self._buffer is not None and self._turn.truncated == "repair":
            repaired = repair_json("".join(self._buffer))
            self._buffer = [repaired.text if repaired else "{}"]
            self.add_repair("closed_cut_call", "this call is incomplete; its JSON was closed")
        self._end_call(complete=False)

    def _end_call(self, *, complete: bool) -> None:
        end = CallEnd(self.index, complete, self.repairs.build_repairs())
        self._turn.end_call(self, "".join(self._buffer or ()), end)


_Writer = TypeVar("_Writer", bound=CallWriter)


class Turn:
    """Collects the events of a turn; `drain_events` returns those since the last time."""

    def __init__(
        self,
        tools: Toolbox,
        ids: IdFactory,
        *,
        truncated: TruncationMode = "partial",
        unknown_tool: UnknownToolMode = "text",
    ) -> None:
        self.tools = tools
        self.truncated = truncated
        self.unknown_tool = unknown_tool
        self.is_truncated = False
        """Whether the output ended inside a call."""
        self.has_broken_call = False
        """Whether a call is incomplete, although the output went on after it."""
        self.accepts_unknown_tools = True
        """Set to False where only tools of the request may count, whatever `unknown_tool` says."""
        self._in_prefill = False
        self._prefill_text: list[str] = []
        self.dialect = ""
        self.why = ""
        self._ids = ids
        self._used_ids: set[str] = set()
        self._events: list[Event] = []
        self._delta_kind = _NOTHING
        self._delta_parts: list[str] = []
        self._pending_space: list[str] | None = []
        self._is_empty = True
        self.has_text = False
        """Whether text other than white space was written."""
        self._call_count = 0
        self._has_complete_call = False
        self.is_last_call_complete = False
        """Whether the call that ended last is complete."""
        self._open_call: CallWriter | None = None
        self._repairs: dict[Repair, None] = {}
        self._finished = False

    # ── for readers ──────────────────────────────────────────────────────────────────────────────

    def add_text(self, text: str) -> None:
        """Append text of the answer."""
        if self._pending_space is not None:
            if text.isspace():
                self._pending_space.append(text)
                return
            text = "".join(self._pending_space) + text
            self._pending_space = None
            self._is_empty = False
            self.has_text = True
        if self._delta_kind == _TEXT:
            self._delta_parts.append(text)
        else:
            self.append_delta(_TEXT, text)

    def add_reasoning(self, text: str) -> None:
        """Append reasoning."""
        if self._delta_kind != _REASONING:
            self._pending_space = []
            self._is_empty = False
        self.append_delta(_REASONING, text)

    def seal_reasoning(self, opaque: dict[str, Any]) -> None:
        """End the current section of reasoning with the data that its server expects to get back."""
        self._pending_space = []
        self._is_empty = False
        self._append_event(ReasoningSealed(opaque))

    def can_call(self, name: str) -> bool:
        """Whether a call with this name counts: the request has the tool, or it has no list of tools."""
        return name in self.tools or (
            bool(name) and self.accepts_unknown_tools and (not len(self.tools) or self.unknown_tool == "pass")
        )

    def reserve_ids(self, ids: Iterable[str]) -> None:
        """Reserve the ids of earlier turns: a call that has one of them gets another."""
        self._used_ids.update(ids)

    def start_call(self, name: str, call_id: str = "") -> CallWriter:
        """Open a call. An id that the model wrote is used unless it is already taken."""
        return self.start_call_with(CallWriter, name, call_id)

    def start_call_with(self, writer: type[_Writer], name: str, call_id: str = "") -> _Writer:
        """Open a call like `start_call`, with another class of writer."""
        if self._open_call is not None:
            raise MisuseError(f"call {self._open_call.name!r} is still open")
        while not call_id or call_id in self._used_ids:
            call_id = self._ids()
        self._used_ids.add(call_id)
        self._pending_space = []
        self._is_empty = False
        call = self._open_call = writer(self, self._call_count, name, call_id)
        self._call_count += 1
        if self.truncated == "partial":
            self._append_event(CallStart(call.index, call_id, name))
        return call

    def add_malformed(self, raw: str, reason: str, *, shown: bool = False) -> None:
        """Record text that began like a call and was none."""
        self._append_event(Malformed(raw, reason, shown))

    def add_truncated(self, raw: str, where: str = "a call") -> None:
        """Record text that the output ended inside of before it was a call."""
        self.is_truncated = True
        self.add_malformed(raw, f"the output ended inside {where}")

    def add_usage(self, usage: Usage) -> None:
        """Record the token usage that the backend reported."""
        self._append_event(UsageSeen(usage))

    def add_repair(self, kind: str, detail: str = "") -> None:
        """Record a repair that belongs to no call. Repairs of the prefill are not recorded."""
        if not self._in_prefill:
            self._repairs[Repair(kind, detail)] = None

    def finish(self, reason: FinishReason | None = None) -> None:
        """End the turn. A truncated call sets the reason to `length`; otherwise calls set it to `tool_calls`."""
        if self._open_call is not None:
            self._open_call.end_truncated()
        if self._pending_space and self._is_empty:
            # A turn of nothing but white space: pass it on, so that the answer is not empty.
            self.append_delta(_TEXT, "".join(self._pending_space))
        if self.is_truncated or (self.has_broken_call and not self._has_complete_call):
            reason = "length"
        elif self._call_count and reason not in ("content_filter", "error"):
            reason = "tool_calls"
        elif reason == "tool_calls":
            reason = "stop"
        self._append_event(Finish(reason or "stop", tuple(self._repairs), self.dialect, self.why))
        self._finished = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written yet: no text, no reasoning, no call. The prefill does not count."""
        return self._is_empty or self._in_prefill

    @property
    def has_open_call(self) -> bool:
        """Whether a call is open."""
        return self._open_call is not None

    @property
    def call_count(self) -> int:
        """How many calls were opened so far."""
        return self._call_count

    @property
    def is_after_call(self) -> bool:
        """Whether a call was the last thing written, white space aside."""
        return self._call_count > 0 and self._pending_space is not None

    # ── for the parser ───────────────────────────────────────────────────────────────────────────

    def drain_events(self) -> list[Event]:
        """Return the events since the last time."""
        if self._delta_parts:
            self._flush_delta()
        events, self._events = self._events, []
        return events

    def begin_prefill(self) -> None:
        """Write no events until `end_prefill`: what is read next is the prefill, which the client knows."""
        self._in_prefill = True

    def end_prefill(self) -> str:
        """End the prefill and return the text that was read in it."""
        if self._delta_parts:
            self._flush_delta()
        self._in_prefill = False
        self._pending_space = []
        self._is_empty = not self._call_count
        self.has_text = False
        return "".join(self._prefill_text)

    # ── for CallWriter ───────────────────────────────────────────────────────────────────────────

    def append_delta(self, kind: int, text: str) -> None:
        """Append to the current delta: of text, of reasoning, or of the call with that index."""
        if kind != self._delta_kind:
            if self._delta_parts:
                self._flush_delta()
            self._delta_kind = kind
        self._delta_parts.append(text)

    def end_call(self, call: CallWriter, arguments: str, end: CallEnd) -> None:
        """Write the end of a call, and all of the call if it was held back."""
        self._open_call = None
        self.is_last_call_complete = end.complete
        self._has_complete_call = self._has_complete_call or end.complete
        if self.truncated == "drop" and not end.complete:
            self._call_count -= 1
            self.add_malformed(f"{call.name} {arguments}", "cut")
            return
        if self.truncated != "partial":
            self._append_event(CallStart(call.index, call.id, call.name))
            self.append_delta(call.index, arguments)
        self._append_event(end)

    # ── private ──────────────────────────────────────────────────────────────────────────────────

    def _flush_delta(self) -> None:
        text = "".join(self._delta_parts)
        self._delta_parts.clear()
        kind = self._delta_kind
        if not text or (self._in_prefill and kind < 0):
            if kind == _TEXT:
                self._prefill_text.append(text)
            return
        if kind >= 0:
            self._events.append(CallDelta(kind, text))
        else:
            self._events.append(TextDelta(text) if kind == _TEXT else ReasoningDelta(text))

    def _append_event(self, event: Event) -> None:
        if self._finished:
            raise MisuseError("the turn is finished")
        if self._delta_parts:
            self._flush_delta()
        self._delta_kind = _NOTHING
        self._events.append(event)


class Collected(msgspec.Struct, frozen=True):
    """A complete turn: the answer that a client without streaming gets."""

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
    """The reasoning in sections, each with its seal if it has one."""


def collect(events: Iterable[Event]) -> Collected:
    """Collect the events of a complete turn into one value. Without a `Finish` the reason is None."""
    thoughts = ReasoningCollector()
    text: list[str] = []
    reasoning: list[str] = []
    starts: list[CallStart] = []
    fragments: dict[int, list[str]] = {}
    complete_calls: set[int] = set()
    repairs: list[Repair] = []
    malformed: list[Malformed] = []
    usage: Usage | None = None
    finish: Finish | None = None
    for event in events:
        thoughts.add_event(event)
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
                    raise MisuseError(f"call {event.index} has no CallStart; collect needs all events of a turn")
                fragments[event.index].append(event.text)
            case CallEnd():
                repairs.extend(event.repairs)
                if event.complete:
                    complete_calls.add(event.index)
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
            ToolCall(start.id, start.name, "".join(fragments[start.index]), start.index in complete_calls)
            for start in starts
        ),
        finish.reason if finish else None,
        tuple(repairs),
        tuple(malformed),
        usage,
        finish.dialect if finish else "",
        finish.why if finish else "",
        thoughts.take_parts(),
    )


class ReasoningCollector:
    """Collects reasoning in sections: a section ends with its seal, or where other output follows."""

    def __init__(self) -> None:
        self._finished_parts: list[Reasoning] = []
        self._pieces: list[str] = []

    def add_event(self, event: Event) -> None:
        """Add an event of the turn."""
        if isinstance(event, ReasoningDelta):
            self._pieces.append(event.text)
        elif isinstance(event, ReasoningSealed):
            self._end_part(event.opaque)
        elif self._pieces and isinstance(event, TextDelta | CallStart):
            self._end_part()

    def take_parts(self) -> tuple[Reasoning, ...]:
        """Return the sections since the last time."""
        if self._pieces:
            self._end_part()
        parts, self._finished_parts = tuple(self._finished_parts), []
        return parts

    def _end_part(self, opaque: dict[str, Any] | None = None) -> None:
        self._finished_parts.append(Reasoning("".join(self._pieces), opaque))
        self._pieces = []
