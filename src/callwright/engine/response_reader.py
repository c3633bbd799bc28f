"""Reads everything that a backend sends in one turn.

Text goes through the parser of the model's dialect, native calls through the schema guard, and reasoning is passed on.
One `Turn` writes all of it, so that any mixture results in valid events. A call that a backend sends both as text and
natively counts once. A call made in the reasoning is recovered at the end, if the turn has nothing else. In a dialect
that frames its output, reasoning is parsed as it arrives, since servers whose own parser fails send the rest of the
turn as reasoning (vLLM #28139, ai-dynamo #10366).

Without tools nothing is parsed, unless the dialect frames its output: `PassThroughReader` passes text on unchanged.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from callwright.dialects import Dialect
from callwright.errors import BackendError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
    merge_deltas,
)
from callwright.guard.native_calls import NativeCallWriter
from callwright.model import Repair, ToolSpec
from callwright.parser import Parser
from callwright.text.source import DEFAULT_LIMIT
from callwright.turn import Turn, collect

__all__ = ["PassThroughReader", "Reader", "ResponseReader"]

TextualEvent = TextDelta | ReasoningDelta | ReasoningSealed

REASONING_SEARCH_LIMIT = 262_144
"""Characters of reasoning that are searched for a call. A call further in is not recovered."""


class Reader(Protocol):
    """Turns a backend's raw events into valid events."""

    def feed(self, raw_events: Iterable[Event]) -> list[Event]:
        """Process the events of one read, and return the resulting events."""
        ...


class PassThroughReader:
    """Passes text and reasoning on unchanged, for requests without tools."""

    def feed(self, raw_events: Iterable[Event]) -> list[Event]:
        return [
            _normalize_finish(event) for event in raw_events if not isinstance(event, CallStart | CallDelta | CallEnd)
        ]


class ResponseReader:
    """Reads one turn of a model that was offered tools, or whose dialect frames its output."""

    def __init__(self, parser: Parser, tools: Sequence[ToolSpec], *, reasoning_calls: bool = True) -> None:
        self._parser = parser
        self._turn: Turn = parser.turn
        self._dialect: Dialect = parser.dialect
        self._tools = tools
        self._tool_names = _ToolNameIndex(tools)
        self._native = NativeCallWriter(self._turn)
        self._reasoning_calls = reasoning_calls
        self._reasoning: list[str] = []
        self._reasoning_length = 0
        self._queued_text: deque[TextualEvent] = deque()
        self._queued_length = 0
        self._pending_calls: dict[int, list[CallStart | CallDelta]] = {}
        """Native calls that may repeat a call from the text. They are held until they are complete."""
        self._text_calls: list[Event] = []
        """The calls from the text, for comparison with native calls."""
        self._frame = parser.dialect.reasoning_prefill if reasoning_calls else ""
        self._in_frame = False
        """Whether reasoning is being parsed in the dialect's frame."""

    def feed(self, raw_events: Iterable[Event]) -> list[Event]:
        """Process the events of one read, and return the resulting events."""
        out: list[Event] = []
        # Deltas of one read are joined first: that costs a tenth of processing them one by one.
        for event in merge_deltas(raw_events):
            match event:
                case TextDelta() | ReasoningDelta() | ReasoningSealed():
                    out += self._feed_text(event)
                case CallStart() | CallDelta() | CallEnd():
                    out += self._feed_call(event)
                case UsageSeen():
                    self._turn.add_usage(event.usage)
                case Finish():
                    out += self._finish_turn(event)
                case _:
                    self._turn.add_malformed(event.raw, event.reason, shown=event.shown)
        return out

    def _feed_text(self, event: TextualEvent) -> list[Event]:
        if self._native.is_open:
            self._queue_text(event)
            return []
        if isinstance(event, TextDelta):
            if self._in_frame:
                self._switch_frame()
            events = self._parse_text(event.text)
            if self._frame:
                self._collect_reasoning("".join(each.text for each in events if isinstance(each, ReasoningDelta)))
            return events
        if isinstance(event, ReasoningSealed):
            self._switch_frame()
            self._turn.seal_reasoning(event.opaque)
            return self._turn.drain_events()
        if not self._in_frame:
            self._switch_frame(self._frame)
        self._collect_reasoning(event.text)
        if self._in_frame:
            return self._parse_text(event.text)
        self._turn.add_reasoning(event.text)
        return self._turn.drain_events()

    def _collect_reasoning(self, text: str) -> None:
        """Store reasoning that may contain a call."""
        if text and self._reasoning_length < REASONING_SEARCH_LIMIT:
            self._reasoning_length += len(text)
            self._reasoning.append(text)

    def _switch_frame(self, frame: str = "") -> None:
        """End the current segment. What follows is plain output, or reasoning in its dialect's frame."""
        self._in_frame = bool(frame)
        self._parser.end_segment(frame)

    def _parse_text(self, text: str) -> list[Event]:
        events = self._parser.feed(text)
        if self._turn.call_count:
            self._text_calls += [each for each in events if isinstance(each, CallStart | CallDelta | CallEnd)]
        return events

    def _queue_text(self, event: TextualEvent) -> None:
        """Hold text inside a native call: events do not allow it before the call's end."""
        self._queued_text.append(event)
        self._queued_length += 0 if isinstance(event, ReasoningSealed) else len(event.text)
        if self._queued_length > DEFAULT_LIMIT:
            message = f"the backend sent more than {DEFAULT_LIMIT} characters of text inside a tool call"
            raise BackendError(message, kind="unusable")

    # ── native calls ─────────────────────────────────────────────────────────────────────────────

    def _feed_call(self, event: CallStart | CallDelta | CallEnd) -> list[Event]:
        if isinstance(event, CallEnd):
            if event.index in self._pending_calls:
                self._release_call(event.index)
            else:
                self._native.end_calls(event.index, is_cut=not event.complete)
        elif isinstance(event, CallStart) and self._text_calls:
            self._switch_frame()
            self._pending_calls[event.index] = [event]
        elif event.index in self._pending_calls:
            self._pending_calls[event.index].append(event)
        else:
            self._forward_call(event)
        return [*self._turn.drain_events(), *self._drain_queue()]

    def _forward_call(self, event: CallStart | CallDelta) -> None:
        if isinstance(event, CallDelta):
            self._native.feed(event.index, event.text)
            return
        self._switch_frame()
        name = self._resolve_tool_name(event.name)
        if name != event.name:
            self._turn.add_repair("renamed_tool", f"{event.name} was read as {name}")
        self._native.start_call(event.index, name, event.id)

    def _resolve_tool_name(self, name: str) -> str:
        """Find the offered tool that a name means. Servers leave parts of gpt-oss's header on it: markers (vLLM #32587,
        ollama #11704), or a type without a separator (llama.cpp #15158). No tool has a marker in its name."""
        clean = name.partition("<|")[0].strip()
        match = self._dialect.resolve_tool_name(clean, self._turn.tools) or self._tool_names.find_nearest(clean)
        return match if match in self._turn.tools else name

    def _release_call(self, index: int) -> None:
        """Emit a held call that is complete, unless the text already contained it."""
        start, *rest = self._pending_calls.pop(index)
        arguments = "".join(event.text for event in rest if isinstance(event, CallDelta))
        name = self._resolve_tool_name(start.name) if isinstance(start, CallStart) else ""
        if any(
            call.name == name and _is_same_json(call.arguments, arguments)
            for call in collect(self._text_calls).tool_calls
        ):
            self._turn.add_repair("repeated_call", f"the backend sent the call of {name} as text and natively")
            return
        for event in (start, *rest):
            self._forward_call(event)
        self._native.end_calls(index)

    def _drain_queue(self) -> list[Event]:
        """Emit text that arrived while a native call was open."""
        out: list[Event] = []
        while self._queued_text and not self._native.is_open:
            out += self._feed_text(self._queued_text.popleft())
        if not self._queued_text:
            self._queued_length = 0
        return out

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def _finish_turn(self, finish: Finish) -> list[Event]:
        for index in list(self._pending_calls):
            self._release_call(index)
        if finish.reason == "length":
            self._native.mark_cut()
        self._native.end_calls()
        out = [*self._turn.drain_events(), *self._drain_queue()]
        self._switch_frame()
        out += self._turn.drain_events()
        if self._reasoning_calls and not self._turn.call_count and not self._turn.has_text:
            self._recover_reasoning_calls()
        for repair in finish.repairs:
            self._turn.add_repair(repair.kind, repair.detail)
        return out + self._parser.close(finish.reason)

    def _recover_reasoning_calls(self) -> None:
        """Recover calls from the reasoning, in a turn that has nothing else."""
        parser = Parser(self._dialect, self._tools)
        turn = collect([*parser.feed("".join(self._reasoning)), *parser.close()])
        for call in turn.tool_calls:
            if call.complete and call.name in self._turn.tools:
                self._turn.add_repair("call_in_reasoning", f"{call.name} was called in the reasoning")
                writer = self._turn.start_call(call.name, call.id)
                writer.write(call.arguments)
                writer.end()


class _ToolNameIndex:
    """Finds tools by names that are almost right: other case, other separators, a prefix such as `functions.`"""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._exact = {tool.name for tool in tools}
        self._by_normalized_name: dict[str, str] = {}
        for name in self._exact:
            # When two names are equal after normalization, neither is guessed.
            self._by_normalized_name[_normalize_name(name)] = (
                "" if _normalize_name(name) in self._by_normalized_name else name
            )

    def find_nearest(self, name: str) -> str:
        """Find the offered name that is meant; the name itself when there is none."""
        if name in self._exact:
            return name
        return (
            self._by_normalized_name.get(_normalize_name(name))
            or self._by_normalized_name.get(_normalize_name(name.rpartition(".")[2]))
            or name
        )


def _normalize_name(name: str) -> str:
    return name.strip().casefold().replace("-", "").replace("_", "").replace(" ", "")


def _is_same_json(left: str, right: str) -> bool:
    return bool(_parse_json(left) == _parse_json(right))


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def _normalize_finish(event: Event) -> Event:
    """Change the finish reason of a turn without tools, which cannot end in calls."""
    if isinstance(event, Finish) and event.reason == "tool_calls":
        return Finish("stop", (*event.repairs, Repair("dropped_calls", "no tools were offered")))
    return event
