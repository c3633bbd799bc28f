"""Attempt: one answer of a model on its way through the stages, and whether it will do.

Pure. The pipeline feeds what it hears; `take` gives what may go to the client at once. The ending is kept back until
the pipeline has decided that this answer is the turn, because an answer that will not do can be asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile
from types import MappingProxyType

import msgspec

from callwright.dialects import Dialect
from callwright.engine.again import Reason
from callwright.engine.listener import Listener, Plain, Reading
from callwright.engine.routing import Route
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

__all__ = ["Attempt", "limits_of"]

_KEPT = 2_000_000
"""Characters of an answer that are kept for counting: more than any model writes in a turn, unless it never stops."""


_ENDED = ("length", "content_filter", "error")
"""Reasons to end that are not the model's own."""


class Attempt:
    """One answer being read."""

    def __init__(
        self,
        request: Request,
        route: Route,
        rules: ToolRules,
        ids: IdFactory,
        names: Mapping[str, str] = MappingProxyType({}),
        *,
        number: int = 1,
    ) -> None:
        self.number = number
        """Of the answers in this turn."""
        limits = limits_of(request, rules)
        self.parallel = limits.max_calls != 1
        self.limits = CallLimiter(limits)
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.written: list[str] = []
        """What the model wrote, for counting where the backend does not …"""
        self.unkept = 0
        """… and the characters that came after as much as is kept."""
        self._kept = 0
        self._no_call = ""
        """Why what looked like a call was none."""
        self.first = not any(message.role == "assistant" for message in request.messages)
        """Nothing of the conversation was answered yet."""
        self._words: list[str] = []
        """The text that went to the client."""
        self.thoughts: dict[str, tuple[Reasoning, ...]] = {}
        """What was thought before each call, by its id."""
        self._thoughts = ReasoningCollector()
        self._shows_malformed = rules.malformed == "show"
        self._asks_malformed = rules.malformed == "ask"
        self._fitting = SchemaCheckedCalls(request.tools) if self._asks_malformed else None
        self._flaws = _flaws(request, rules, number)
        self._reader = partial(self._begun, request, route.settings.prefill, rules, ids)
        self.dialect = route.reads
        self._reading: Reading | None = None
        self._required = RequiredCallGate() if request.tools and request.tool_choice not in ("auto", "none") else None
        closes = get_final_answer_mode(request, route.prompt)
        self._final = FinalAnswerAsText(calls=closes == "call") if closes != "off" else None
        self._unaliased = RestoreToolNames(names) if names else None
        form = CALL_TEXT_FORMS.get(rules.output_mode)
        self._echo = CallsAsText(form, rules.tool_block_delimiter) if form else None

    @property
    def called(self) -> bool:
        """Whether anything of a call has gone out."""
        return bool(self.thoughts)

    def read_in(self, dialect: Dialect) -> None:
        """The answer will be in this dialect. Nothing of it has come yet."""
        self.dialect = dialect
        self._reading = None

    def prepare(self) -> Reading:
        """Make what reads the answer. May be called while a server thinks, so that nothing waits for it afterwards."""
        if self._reading is None:
            self._reading = self._reader(self.dialect)
        return self._reading

    def _begun(self, request: Request, prefill: str, rules: ToolRules, ids: IdFactory, dialect: Dialect) -> Reading:
        if not request.tools and not dialect.frame_indicators:
            return Plain()
        # A call that may be asked for again is held back until it is whole and was looked at.
        parser = Parser(
            dialect,
            request.tools,
            prefill=prefill,
            ids=ids,
            truncated="drop" if self._asks_malformed else rules.truncated,
            unknown_tool="pass" if self._asks_malformed else rules.unknown_tool,
        )
        # Who offers nothing can run nothing, but for old clients that read calls in the text and have no other way.
        if not request.tools and self._echo is None:
            parser.turn.accepts_unknown_tools = False
        # Servers and models that number the calls of each turn from 0 would have a client mix up two results.
        parser.turn.reserve_ids(_ids(request))
        return Listener(parser, request.tools, reasoning_calls=rules.reasoning_calls)

    def take(self, heard: list[Event]) -> list[Event]:
        """What may go to the client now, of what the backend just said."""
        events = (self._reading or self.prepare()).hear(heard)
        if self._final is not None:
            events = self._final.feed(events)
        if self._fitting is not None:
            events = self._fitting.feed(events)
        events = self.limits.feed(events)
        if self._flaws is not None and (self._asks_malformed or not _is_cut(heard)):
            events = self._flaws.feed(events)
        if self._shows_malformed:
            events = [each for event in events for each in _shown(event)]
        if self._required is not None:
            events = self._required.feed(events)
        if self._unaliased is not None:
            events = self._unaliased.feed(events)
        if self._echo is not None:
            events = self._echo.feed(events)
        return [event for event in events if self._passes(event)]

    def stop(self) -> list[Event]:
        """A rule ended the turn: what is there already, with an ending."""
        return self.take([Finish("stop")])

    def break_off(self) -> list[Event]:
        """The backend failed: words that were held back, since they might have become a call."""
        events = self.take([Finish("length")])
        return list(takewhile(lambda event: isinstance(event, TextDelta | ReasoningDelta), events))

    def _passes(self, event: Event) -> bool:
        match event:
            case TextDelta():
                self._write(event.text)
                if not self.unkept:
                    self._words.append(event.text)
            case CallDelta():
                self._write(event.text)
            case ReasoningDelta():
                self._write(event.text)
                self._thoughts.add_event(event)
            case ReasoningSealed():
                self._thoughts.add_event(event)
            case CallStart():
                self._write(event.name)
                self.thoughts[event.id] = self._thoughts.take_parts()
            case UsageSeen():
                self.usage = event.usage
                return False
            case Finish():
                self.finish = event
                return False
            case Malformed():
                self._no_call = self._no_call or event.reason
            case CallEnd():
                pass
        return True

    def _write(self, text: str) -> None:
        if self._kept < _KEPT:
            self._kept += len(text)
            self.written.append(text)
        else:
            self.unkept += len(text)

    @property
    def over(self) -> bool:
        """A rule ended the turn, or the answer will not do: whatever the model still says, nobody needs it."""
        return self.limits.is_done or bool(self._flaw)

    @property
    def shortcoming(self) -> tuple[Reason, str] | None:
        """Why this answer will not do; None when it will. Only said when nothing of a call has gone out."""
        if self._flaw:
            return "unusable_call", f"its call cannot be used: {self._flaw}"
        if self.limits.call_count or self.finish is None or self.finish.reason in _ENDED:
            return None
        if self._required is not None and not self._required.is_met:
            return "missing_call", "it holds no call, and one was required"
        if self.said.strip():
            return None
        if self._no_call:
            return "unusable_call", f"its call cannot be used: {self._no_call}"
        return "empty", "it is empty: no text and no call"

    @property
    def said(self) -> str:
        """The words that the client has."""
        return "".join(self._words)

    @property
    def tried(self) -> str | None:
        """The tool that the answer tried or ought to have called: empty if not known, None if it needed none."""
        named = (self._fitting.rejected_tool if self._fitting else "") or (self._flaws.tool if self._flaws else "")
        return named or ("" if self._flaw or self._required is not None else None)

    @property
    def _flaw(self) -> str:
        """Why a call cannot be used, where the model is to be asked for another."""
        return self._flaws.reason if self._flaws is not None else ""


def _flaws(request: Request, rules: ToolRules, number: int) -> UnusableCallDetector | None:
    """Looks for calls that cannot be used. Where that is no error, the budget's last answer is taken as it is."""
    strict, last = rules.malformed == "ask", number > rules.ask_again
    lenient = rules.malformed == "repair" and request.tool_choice != "none" and not last
    if not request.tools or not (strict or lenient):
        return None
    return UnusableCallDetector(
        [tool.name for tool in request.tools], strict=strict, strangers=rules.unknown_tool == "pass"
    )


def _is_cut(heard: list[Event]) -> bool:
    """Whether the backend ended the answer before the model did: the next one would fare no better."""
    return any(isinstance(event, Finish) and event.reason in _ENDED for event in heard)


def _shown(event: Event) -> tuple[Event, ...]:
    """A call that could not be read, as text."""
    if isinstance(event, Malformed) and not event.shown and event.raw:
        return TextDelta(event.raw), msgspec.structs.replace(event, shown=True)
    return (event,)


def _ids(request: Request) -> Iterator[str]:
    """Those of the calls so far."""
    parts = (part for message in request.messages for part in message.parts)
    return (part.id for part in parts if isinstance(part, ToolCall))


def limits_of(request: Request, rules: ToolRules) -> CallLimits:
    """The rules for calls of one turn: the client's wishes within the settings."""
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
