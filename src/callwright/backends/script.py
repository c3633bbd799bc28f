"""Script: what a scripted model says when. Pure: a script and a request in, events and pauses out.

A turn is chosen by the conversation, not by counting requests, so that clients may ask twice, leave and come back, or
run side by side. The first turn that fits is played: its conditions hold, and some tool that it wants to call is
offered. docs/scripted.md describes the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import msgspec

from callwright.dialects import get_dialect
from callwright.errors import BackendError, BackendErrorKind, MisuseError
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
from callwright.model import Message, Request, Text, ToolCall, ToolResult, ToolSpec, Usage
from callwright.schema import Schema
from callwright.turn import IdFactory

__all__ = ["Script", "Step", "Wanted", "When", "Words", "perform"]

_EMPTY: dict[str, Any] = {"integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}, "null": None}
_PLACEHOLDER = re.compile(r"\$\{(last_user|result|tool|model)\}")


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a turn fits. What is not set does not matter."""

    results: int | None = None
    """So many tool results have come since the model last answered without a call."""
    results_from: int = 0
    """At least so many."""
    user: str = ""
    """The user's request contains this, in capitals or not."""
    pattern: str = ""
    """The user's request has a match of this regular expression."""
    offers: str = ""
    """A tool of this name is offered; a shell pattern."""
    tools: bool | None = None
    """Whether any tool is offered."""
    model: str = ""
    """The model's name matches this shell pattern."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as wrong:
            raise ValueError(f"{self.pattern!r} is no regular expression: {wrong}") from wrong


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call to make. `name` may be a shell pattern: the first offered tool that matches is called."""

    name: str
    arguments: dict[str, Any] | None = None
    """None: made up from the tool's schema and the script's `values`."""
    anyway: bool = False
    """Call it even when it is not offered."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure of the backend."""

    status: int = 500
    message: str = "the script says so"
    salvage: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a turn does: exactly one of the first seven."""

    text: str | None = None
    reasoning: str | None = None
    chunks: tuple[str, ...] | None = None
    """Text in exactly these pieces."""
    call: Wanted | tuple[Wanted, ...] | None = None
    """A native call: of the first that is offered."""
    say: Wanted | tuple[Wanted, ...] | None = None
    """The same written as text, in a dialect."""
    pause: float | None = None
    error: Fault | None = None
    dialect: str = "hermes"
    repeat: int = 1

    def __post_init__(self) -> None:
        does = (self.text, self.reasoning, self.chunks, self.call, self.say, self.pause, self.error)
        if sum(one is not None for one in does) != 1:
            raise ValueError("a step does exactly one of: text, reasoning, chunks, call, say, pause, error")
        try:
            get_dialect(self.dialect)
        except MisuseError as unknown:
            raise ValueError(str(unknown)) from unknown

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The calls to choose from."""
        calls = self.call or self.say or ()
        return (calls,) if isinstance(calls, Wanted) else calls


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn: when it fits, and what is said."""

    steps: tuple[Step, ...]
    when: When = When()
    finish: FinishReason | None = None
    """None: `tool_calls` after a native call, else `stop`."""
    usage: Usage | None = None
    chunk: int | None = None
    """Characters in a delta; 0 for all at once."""


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    turns: tuple[Words, ...]
    models: tuple[str, ...] = ("scripted",)
    chunk: int = 4
    pace: float = 0.0
    """Seconds before each delta."""
    values: dict[str, Any] = {}
    """For arguments that are made up: what goes into a parameter, by a shell pattern of its name."""


def perform(script: Script, request: Request, ids: IdFactory) -> Iterator[Event | float]:
    """A turn's events, and seconds to wait between them. `BackendError` where the script wants one or has no turn."""
    scene = _Scene(script, request)
    words = next((words for words in script.turns if scene.fits(words)), None)
    if words is None:
        raise BackendError(f"the script has no turn for this conversation: {scene}", kind="refused", status=400)
    chunk = script.chunk if words.chunk is None else words.chunk
    calls = 0
    for step in (one for one in words.steps for _ in range(one.repeat)):
        if step.pause is not None:
            yield step.pause
        elif step.error is not None:
            raise _error(step.error)
        elif step.call is not None:
            call = scene.call(step)
            yield CallStart(calls, ids(), call.name)
            yield from (CallDelta(calls, piece) for piece in _cut(call.arguments, chunk))
            yield CallEnd(calls)
            calls += 1
        elif step.reasoning is not None:
            yield from map(ReasoningDelta, _cut(scene.filled(step.reasoning), chunk))
        elif step.chunks is not None:
            yield from map(TextDelta, filter(None, step.chunks))
        elif step.say is not None:
            yield from map(TextDelta, _cut(get_dialect(step.dialect).render_call(scene.call(step)), chunk))
        else:
            yield from map(TextDelta, _cut(scene.filled(step.text), chunk))
    if words.usage is not None:
        yield UsageSeen(words.usage)
    yield Finish(words.finish or ("tool_calls" if calls else "stop"))


class _Scene:
    """What a script can see of a request."""

    def __init__(self, script: Script, request: Request) -> None:
        self._values = script.values
        self._model = request.model
        self._tools = request.tools
        since = _since_last_answer(request.messages)
        parts = [part for message in since for part in message.parts]
        self._results = [part.content for part in parts if isinstance(part, ToolResult)]
        names = [part.name for part in parts if isinstance(part, ToolCall)]
        self._last = {
            "last_user": _asked(since),
            "result": self._results[-1] if self._results else "",
            "tool": names[-1] if names else "",
            "model": request.model,
        }

    def __str__(self) -> str:
        names = ", ".join(tool.name for tool in self._tools) or "none"
        return f"the user said {self._last['last_user'][:200]!r}, {len(self._results)} results, tools: {names}"

    def fits(self, words: Words) -> bool:
        when, asked = words.when, self._last["last_user"]
        conditions = (
            when.results is None or len(self._results) == when.results,
            len(self._results) >= when.results_from,
            when.user.lower() in asked.lower(),
            not when.pattern or re.search(when.pattern, asked),
            not when.offers or self._offered(when.offers),
            when.tools is None or when.tools == bool(self._tools),
            not when.model or fnmatchcase(self._model, when.model),
            all(any(self._choices(step.wanted)) for step in words.steps if step.wanted),
        )
        return all(conditions)

    def call(self, step: Step) -> ToolCall:
        """The call that a step makes."""
        wanted, tool = next(self._choices(step.wanted))
        made = self._made_up(tool) if wanted.arguments is None else self.filled(wanted.arguments)
        return ToolCall(
            get_dialect(step.dialect).make_call_id(tool.name, 0), tool.name, json.dumps(made, ensure_ascii=False)
        )

    def filled(self, value: Any) -> Any:
        """A value with its placeholders filled in, however deep."""
        match value:
            case str():
                return _PLACEHOLDER.sub(lambda hit: self._last[hit[1]], value)
            case dict():
                return {key: self.filled(one) for key, one in value.items()}
            case list():
                return [self.filled(one) for one in value]
            case _:
                return value

    def _offered(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self._tools if fnmatchcase(tool.name, name)), None)

    def _choices(self, wanted: Sequence[Wanted]) -> Iterator[tuple[Wanted, ToolSpec]]:
        """The calls that can be made."""
        for one in wanted:
            if tool := self._offered(one.name) or (ToolSpec(one.name) if one.anyway else None):
                yield one, tool

    def _made_up(self, tool: ToolSpec) -> dict[str, Any]:
        """Arguments for what a tool requires: by the parameter's name, else by its type."""
        schema = Schema(tool.parameters)
        return {name: self._value(name, one) for name, one in schema.properties.items() if name in schema.required}

    def _value(self, name: str, schema: Schema) -> Any:
        if schema.choices:
            return schema.choices[0]
        given = (value for pattern, value in self._values.items() if fnmatchcase(name.lower(), pattern))
        empty = (value for kind, value in _EMPTY.items() if kind in schema.types and "string" not in schema.types)
        # A value of another type than the parameter's would only be refused.
        fitting = (self.filled(value) for value in given if schema.matches_type(json.dumps(value)))
        return next(chain(fitting, empty), self._last["last_user"])


def _since_last_answer(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages after the model's last turn without a call. Counting from the last user message would not do: Claude
    Code adds reminders as user text beside its results, and they are not a new request."""
    for at in range(len(messages), 0, -1):
        message = messages[at - 1]
        if message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts):
            return messages[at:]
    return messages


def _asked(since: Sequence[Message]) -> str:
    """What the user asked for: the last that was said before the model's first call."""
    asked = ""
    for message in since:
        if message.role == "assistant":
            break
        if message.role == "user":
            asked = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    return asked


def _cut(text: str, size: int) -> Iterator[str]:
    size = size or max(1, len(text))
    return (text[at : at + size] for at in range(0, len(text), size))


def _error(fault: Fault) -> BackendError:
    kinds: dict[int, BackendErrorKind] = {
        401: "auth",
        403: "auth",
        408: "timeout",
        429: "rate_limit",
        503: "overloaded",
    }
    kind = kinds.get(fault.status, "unavailable" if fault.status >= 500 else "refused")
    retryable = fault.status in (408, 429) or fault.status >= 500
    return BackendError(fault.message, kind=kind, retryable=retryable, status=fault.status, salvage=fault.salvage)
