"""One answer of a model on its way through the stages, and whether it is usable.

Pure. The pipeline calls `feed` with raw events; the result may be sent to the client at once. The `Finish` event is
held back until the pipeline has accepted the answer, because an unusable answer can be retried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from types import MappingProxyType

import msgspec

from callwright.dialects import Dialect
from callwright.engine.reask import RetryReason
from callwright.engine.response_reader import PassThroughReader, Reader, ResponseReader
from callwright.engine.routing import ModelRoute
from callwright.engine.settings import ToolRules
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.guard.call_limits import CallLimiter, CallLimits
from callwright.guard.call_text_forms import CALL_TEXT_FORMS
from callwright.guard.calls_as_text import CallsAsText
from callwright.guard.final_answer import FinalAnswerAsText
from callwright.guard.required_call import RequiredCallGate
from callwright.guard.restore_names import RestoreToolNames
from callwright.guard.schema_check import SchemaCheckedCalls
from callwright.guard.unusable_calls import UnusableCallDetector
from callwright.model import Reasoning, Request, ToolCall, Usage
from callwright.parser import Parser
from callwright.prompt.final_answer_tool import get_final_answer_mode
from callwright.turn import IdFactory, ReasoningCollector

__all__ = ["AnswerAttempt", "build_call_limits"]

_MAX_STORED_CHARACTERS = 2_000_000
"""Characters of an answer stored for counting: more than any model writes in a turn, unless it never stops."""


_FOREIGN_FINISH_REASONS = ("length", "content_filter", "error")
"""Finish reasons that are not the model's own decision."""


class AnswerAttempt:
    """One answer that is being read."""

    def __init__(
        self,
        request: Request,
        route: ModelRoute,
        rules: ToolRules,
        ids: IdFactory,
        client_tool_names: Mapping[str, str] = MappingProxyType({}),
        *,
        number: int = 1,
    ) -> None:
        self.number = number
        """The number of this answer in the turn, from 1."""
        limits = build_call_limits(request, rules)
        self.allows_parallel_calls = limits.max_calls != 1
        self.limits = CallLimiter(limits)
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.output_parts: list[str] = []
        """The model's output, for counting where the backend does not …"""
        self.unstored_characters = 0
        """… and the number of characters beyond the limit."""
        self._stored_characters = 0
        self._malformed_reason = ""
        """Why text that looked like a call was not a call."""
        self.is_first_turn = not any(message.role == "assistant" for message in request.messages)
        """The conversation has no answer yet."""
        self._visible_parts: list[str] = []
        """The text that was sent to the client."""
        self.reasoning_by_call: dict[str, tuple[Reasoning, ...]] = {}
        """The reasoning before each call, by call id."""
        self._reasoning_parts = ReasoningCollector()
        self._shows_malformed = rules.malformed == "show"
        self._retries_malformed = rules.malformed == "retry"
        self._schema_checked = SchemaCheckedCalls(request.tools) if self._retries_malformed else None
        self._unusable_calls = _build_call_detector(request, rules, number)
        self._reader_factory = partial(self._build_reader, request, route.settings.prefill, rules, ids)
        self.dialect = route.answer_dialect
        self._response_reader: Reader | None = None
        self._required = RequiredCallGate() if request.tools and request.tool_choice not in ("auto", "none") else None
        final_answer_mode = get_final_answer_mode(request, route.prompt)
        self._final_answer = (
            FinalAnswerAsText(calls=final_answer_mode == "call") if final_answer_mode != "off" else None
        )
        self._restore_names = RestoreToolNames(client_tool_names) if client_tool_names else None
        text_form = CALL_TEXT_FORMS.get(rules.output_mode)
        self._calls_as_text = CallsAsText(text_form, rules.tool_block_delimiter) if text_form else None

    @property
    def has_calls(self) -> bool:
        """Whether any part of a call was sent to the client."""
        return bool(self.reasoning_by_call)

    def set_dialect(self, dialect: Dialect) -> None:
        """Set the dialect of the answer, before any of it has arrived."""
        self.dialect = dialect
        self._response_reader = None

    def prepare_reader(self) -> Reader:
        """Create the reader. May be called while the server is still thinking, to save time later."""
        if self._response_reader is None:
            self._response_reader = self._reader_factory(self.dialect)
        return self._response_reader

    def _build_reader(
        self, request: Request, prefill: str, rules: ToolRules, ids: IdFactory, dialect: Dialect
    ) -> Reader:
        if not request.tools and not dialect.frame_indicators:
            return PassThroughReader()
        # With `retry`, a call is held back until it is complete and checked.
        parser = Parser(
            dialect,
            request.tools,
            prefill=prefill,
            ids=ids,
            truncated="drop" if self._retries_malformed else rules.truncated,
            unknown_tool="pass" if self._retries_malformed else rules.unknown_tool,
        )
        # A client without tools cannot run calls, except for old clients that read calls from the text.
        if not request.tools and self._calls_as_text is None:
            parser.turn.accepts_unknown_tools = False
        # Servers that number the calls of each turn from 0 would make a client mix up two results.
        parser.turn.reserve_ids(_iter_call_ids(request))
        return ResponseReader(parser, request.tools, reasoning_calls=rules.reasoning_calls)

    def feed(self, raw_events: list[Event]) -> list[Event]:
        """Process the events of one read, and return what may be sent to the client now."""
        events = (self._response_reader or self.prepare_reader()).feed(raw_events)
        if self._final_answer is not None:
            events = self._final_answer.feed(events)
        if self._schema_checked is not None:
            events = self._schema_checked.feed(events)
        events = self.limits.feed(events)
        if self._unusable_calls is not None and (self._retries_malformed or not _is_cut_off(raw_events)):
            events = self._unusable_calls.feed(events)
        if self._shows_malformed:
            events = [each for event in events for each in _show_malformed(event)]
        if self._required is not None:
            events = self._required.feed(events)
        if self._restore_names is not None:
            events = self._restore_names.feed(events)
        if self._calls_as_text is not None:
            events = self._calls_as_text.feed(events)
        return [event for event in events if self._track_event(event)]

    def finish_early(self) -> list[Event]:
        """End the turn early because of a rule, and return the remaining events."""
        return self.feed([Finish("stop")])

    def flush_text(self) -> list[Event]:
        """Return text that was held back as a possible call, after the backend failed."""
        events = self.feed([Finish("length")])
        return list(takewhile(lambda event: isinstance(event, TextDelta | ReasoningDelta), events))

    def _track_event(self, event: Event) -> bool:
        match event:
            case TextDelta():
                self._store_output(event.text)
                if not self.unstored_characters:
                    self._visible_parts.append(event.text)
            case CallDelta():
                self._store_output(event.text)
            case ReasoningDelta():
                self._store_output(event.text)
                self._reasoning_parts.add_event(event)
            case ReasoningSealed():
                self._reasoning_parts.add_event(event)
            case CallStart():
                self._store_output(event.name)
                self.reasoning_by_call[event.id] = self._reasoning_parts.take_parts()
            case UsageSeen():
                self.usage = event.usage
                return False
            case Finish():
                self.finish = event
                return False
            case Malformed():
                self._malformed_reason = self._malformed_reason or event.reason
            case CallEnd():
                pass
        return True

    def _store_output(self, text: str) -> None:
        if self._stored_characters < _MAX_STORED_CHARACTERS:
            self._stored_characters += len(text)
            self.output_parts.append(text)
        else:
            self.unstored_characters += len(text)

    @property
    def is_done(self) -> bool:
        """Whether a rule ended the turn or the answer is unusable: further output is not needed."""
        return self.limits.is_done or bool(self._call_flaw)

    @property
    def rejection(self) -> tuple[RetryReason, str] | None:
        """Why this answer is unusable; None when it is usable. Only set when no part of a call was sent."""
        if self._call_flaw:
            return "unusable_call", f"its call cannot be used: {self._call_flaw}"
        if self.limits.call_count or self.finish is None or self.finish.reason in _FOREIGN_FINISH_REASONS:
            return None
        if self._required is not None and not self._required.is_met:
            return "missing_call", "it holds no call, and one was required"
        if self.visible_text.strip():
            return None
        if self._malformed_reason:
            return "unusable_call", f"its call cannot be used: {self._malformed_reason}"
        return "empty", "it is empty: no text and no call"

    @property
    def visible_text(self) -> str:
        """The text that the client has received."""
        return "".join(self._visible_parts)

    @property
    def attempted_tool(self) -> str | None:
        """The tool that the answer tried or had to call: empty if unknown, None if no call was needed."""
        tool = (self._schema_checked.rejected_tool if self._schema_checked else "") or (
            self._unusable_calls.tool if self._unusable_calls else ""
        )
        return tool or ("" if self._call_flaw or self._required is not None else None)

    @property
    def _call_flaw(self) -> str:
        """Why a call is unusable, when the model is to be retried."""
        return self._unusable_calls.reason if self._unusable_calls is not None else ""


def _build_call_detector(request: Request, rules: ToolRules, number: int) -> UnusableCallDetector | None:
    """Create the detector of unusable calls. Unless `malformed` is `retry`, the last attempt is accepted as it is."""
    strict, last = rules.malformed == "retry", number > rules.max_retries
    lenient = rules.malformed == "repair" and request.tool_choice != "none" and not last
    if not request.tools or not (strict or lenient):
        return None
    return UnusableCallDetector(
        [tool.name for tool in request.tools], strict=strict, allow_unknown=rules.unknown_tool == "pass"
    )


def _is_cut_off(raw_events: list[Event]) -> bool:
    """Whether the backend ended the answer before the model did. A retry would end the same way."""
    return any(isinstance(event, Finish) and event.reason in _FOREIGN_FINISH_REASONS for event in raw_events)


def _show_malformed(event: Event) -> tuple[Event, ...]:
    """Show an unreadable call as text."""
    if isinstance(event, Malformed) and not event.shown and event.raw:
        return TextDelta(event.raw), msgspec.structs.replace(event, shown=True)
    return (event,)


def _iter_call_ids(request: Request) -> Iterator[str]:
    """Yield the ids of all calls in the history."""
    parts = (part for message in request.messages for part in message.parts)
    return (part.id for part in parts if isinstance(part, ToolCall))


def build_call_limits(request: Request, rules: ToolRules) -> CallLimits:
    """Build the limits for the calls of one turn: what the client asks for, within the settings."""
    choice = request.tool_choice
    allowed: set[str] | None = None
    if choice == "none":
        allowed = set()
    elif choice not in ("auto", "required"):
        allowed = {choice}
    single = not (request.parallel_tool_calls and rules.enable_parallel_tool_calls)
    stop = rules.stop_after_tools_mode if rules.stop_after_tools else ""
    return CallLimits(
        allowed_tools=allowed,
        max_calls=1 if single else rules.tool_block_max,
        stop_rule=stop,
        drop_tail=rules.suppress_tail_after_tools,
        drop_repeats=rules.tool_block_dedup,
    )
