"""Scripts of a scripted model. Pure: a script and a request in, events and pauses out.

The conversation selects a turn, not a count of requests, so clients may repeat requests, disconnect and return, or run
in parallel. The first turn that matches is played: its conditions hold, and a tool that it calls is offered.
docs/scripted.md describes the file.
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

__all__ = ["ModelScript", "ScriptStep", "ScriptedCall", "ScriptedTurn", "TurnCondition", "play_turn"]

_EMPTY_VALUES: dict[str, Any] = {"integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}, "null": None}
_PLACEHOLDER = re.compile(r"\$\{(last_user|result|tool|model)\}")


class TurnCondition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a turn matches. Fields that are not set are ignored."""

    results: int | None = None
    """Exact number of tool results since the model last answered without a call."""
    results_from: int = 0
    """Minimum number of tool results."""
    user: str = ""
    """The user's request contains this text, ignoring case."""
    pattern: str = ""
    """The user's request matches this regular expression."""
    offers: str = ""
    """A tool whose name matches this shell pattern is offered."""
    tools: bool | None = None
    """Whether any tool is offered."""
    model: str = ""
    """The model's name matches this shell pattern."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"{self.pattern!r} is not a regular expression: {error}") from error


class ScriptedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call. `name` may be a shell pattern: the first offered tool that matches is called."""

    name: str
    arguments: dict[str, Any] | None = None
    """None = generated from the tool's schema and the script's `values`."""
    anyway: bool = False
    """Call the tool even when it is not offered."""


class ScriptedError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure of the backend."""

    status: int = 500
    message: str = "scripted error"
    salvage: str = ""


class ScriptStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One action of a turn: exactly one of the first seven fields."""

    text: str | None = None
    reasoning: str | None = None
    chunks: tuple[str, ...] | None = None
    """Text in exactly these pieces."""
    call: ScriptedCall | tuple[ScriptedCall, ...] | None = None
    """A native call of the first tool that is offered."""
    say: ScriptedCall | tuple[ScriptedCall, ...] | None = None
    """The same call, written as text in a dialect."""
    pause: float | None = None
    error: ScriptedError | None = None
    dialect: str = "hermes"
    repeat: int = 1

    def __post_init__(self) -> None:
        does = (self.text, self.reasoning, self.chunks, self.call, self.say, self.pause, self.error)
        if sum(one is not None for one in does) != 1:
            raise ValueError("a step must have exactly one of text, reasoning, chunks, call, say, pause, error")
        try:
            get_dialect(self.dialect)
        except MisuseError as unknown:
            raise ValueError(str(unknown)) from unknown

    @property
    def candidate_calls(self) -> tuple[ScriptedCall, ...]:
        """The calls to choose from."""
        calls = self.call or self.say or ()
        return (calls,) if isinstance(calls, ScriptedCall) else calls


class ScriptedTurn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn: its condition and its steps."""

    steps: tuple[ScriptStep, ...]
    when: TurnCondition = TurnCondition()
    finish: FinishReason | None = None
    """None = `tool_calls` after a native call, otherwise `stop`."""
    usage: Usage | None = None
    chunk: int | None = None
    """Characters per delta; 0 = all at once."""


class ModelScript(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole script file."""

    turns: tuple[ScriptedTurn, ...]
    models: tuple[str, ...] = ("scripted",)
    chunk: int = 4
    pace: float = 0.0
    """Seconds before each delta."""
    values: dict[str, Any] = {}
    """Values for generated arguments, by a shell pattern of the parameter's name."""


def play_turn(script: ModelScript, request: Request, ids: IdFactory) -> Iterator[Event | float]:
    """Yield the events of the matching turn, and pauses in seconds. Raises `BackendError` for a scripted error, or when
    no turn matches."""
    context = _ScriptContext(script, request)
    turn = next((turn for turn in script.turns if context.matches_turn(turn)), None)
    if turn is None:
        raise BackendError(f"no turn of the script matches this conversation: {context}", kind="refused", status=400)
    chunk = script.chunk if turn.chunk is None else turn.chunk
    calls = 0
    for step in (one for one in turn.steps for _ in range(one.repeat)):
        if step.pause is not None:
            yield step.pause
        elif step.error is not None:
            raise _build_error(step.error)
        elif step.call is not None:
            call = context.build_call(step)
            yield CallStart(calls, ids(), call.name)
            yield from (CallDelta(calls, piece) for piece in _split_text(call.arguments, chunk))
            yield CallEnd(calls)
            calls += 1
        elif step.reasoning is not None:
            yield from map(ReasoningDelta, _split_text(context.fill_placeholders(step.reasoning), chunk))
        elif step.chunks is not None:
            yield from map(TextDelta, filter(None, step.chunks))
        elif step.say is not None:
            yield from map(
                TextDelta, _split_text(get_dialect(step.dialect).render_call(context.build_call(step)), chunk)
            )
        else:
            yield from map(TextDelta, _split_text(context.fill_placeholders(step.text), chunk))
    if turn.usage is not None:
        yield UsageSeen(turn.usage)
    yield Finish(turn.finish or ("tool_calls" if calls else "stop"))


class _ScriptContext:
    """The parts of a request that a script can refer to."""

    def __init__(self, script: ModelScript, request: Request) -> None:
        self._values = script.values
        self._model = request.model
        self._tools = request.tools
        current = _get_current_messages(request.messages)
        parts = [part for message in current for part in message.parts]
        self._results = [part.content for part in parts if isinstance(part, ToolResult)]
        names = [part.name for part in parts if isinstance(part, ToolCall)]
        self._placeholders = {
            "last_user": _get_user_request(current),
            "result": self._results[-1] if self._results else "",
            "tool": names[-1] if names else "",
            "model": request.model,
        }

    def __str__(self) -> str:
        names = ", ".join(tool.name for tool in self._tools) or "none"
        return f"user {self._placeholders['last_user'][:200]!r}, {len(self._results)} results, tools: {names}"

    def matches_turn(self, turn: ScriptedTurn) -> bool:
        when, user_request = turn.when, self._placeholders["last_user"]
        conditions = (
            when.results is None or len(self._results) == when.results,
            len(self._results) >= when.results_from,
            when.user.lower() in user_request.lower(),
            not when.pattern or re.search(when.pattern, user_request),
            not when.offers or self._find_tool(when.offers),
            when.tools is None or when.tools == bool(self._tools),
            not when.model or fnmatchcase(self._model, when.model),
            all(any(self._iter_possible_calls(step.candidate_calls)) for step in turn.steps if step.candidate_calls),
        )
        return all(conditions)

    def build_call(self, step: ScriptStep) -> ToolCall:
        """Build the call of a step."""
        call, tool = next(self._iter_possible_calls(step.candidate_calls))
        arguments = self._generate_arguments(tool) if call.arguments is None else self.fill_placeholders(call.arguments)
        return ToolCall(
            get_dialect(step.dialect).make_call_id(tool.name, 0), tool.name, json.dumps(arguments, ensure_ascii=False)
        )

    def fill_placeholders(self, value: Any) -> Any:
        """Fill in the placeholders of a value, at any depth."""
        match value:
            case str():
                return _PLACEHOLDER.sub(lambda hit: self._placeholders[hit[1]], value)
            case dict():
                return {key: self.fill_placeholders(one) for key, one in value.items()}
            case list():
                return [self.fill_placeholders(one) for one in value]
            case _:
                return value

    def _find_tool(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self._tools if fnmatchcase(tool.name, name)), None)

    def _iter_possible_calls(self, wanted: Sequence[ScriptedCall]) -> Iterator[tuple[ScriptedCall, ToolSpec]]:
        """Yield the calls that can be made."""
        for one in wanted:
            if tool := self._find_tool(one.name) or (ToolSpec(one.name) if one.anyway else None):
                yield one, tool

    def _generate_arguments(self, tool: ToolSpec) -> dict[str, Any]:
        """Generate the required arguments of a tool: by the parameter's name, otherwise by its type."""
        schema = Schema(tool.parameters)
        return {
            name: self._generate_value(name, one) for name, one in schema.properties.items() if name in schema.required
        }

    def _generate_value(self, name: str, schema: Schema) -> Any:
        if schema.choices:
            return schema.choices[0]
        given = (value for pattern, value in self._values.items() if fnmatchcase(name.lower(), pattern))
        empty = (
            value for kind, value in _EMPTY_VALUES.items() if kind in schema.types and "string" not in schema.types
        )
        # A value of another type would only be refused.
        fitting = (self.fill_placeholders(value) for value in given if schema.matches_type(json.dumps(value)))
        return next(chain(fitting, empty), self._placeholders["last_user"])


def _get_current_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the model's last turn without a call. The last user message would be the wrong start:
    Claude Code adds reminders as user text beside its results, which are not a new request."""
    for index in range(len(messages), 0, -1):
        message = messages[index - 1]
        if message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts):
            return messages[index:]
    return messages


def _get_user_request(messages: Sequence[Message]) -> str:
    """Return the user's request: the last user message before the model's first call."""
    text = ""
    for message in messages:
        if message.role == "assistant":
            break
        if message.role == "user":
            text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    return text


def _split_text(text: str, size: int) -> Iterator[str]:
    size = size or max(1, len(text))
    return (text[at : at + size] for at in range(0, len(text), size))


def _build_error(error: ScriptedError) -> BackendError:
    kinds: dict[int, BackendErrorKind] = {
        401: "auth",
        403: "auth",
        408: "timeout",
        429: "rate_limit",
        503: "overloaded",
    }
    kind = kinds.get(error.status, "unavailable" if error.status >= 500 else "refused")
    retryable = error.status in (408, 429) or error.status >= 500
    return BackendError(error.message, kind=kind, retryable=retryable, status=error.status, salvage=error.salvage)
