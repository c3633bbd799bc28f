"""ReAct: thought, action and input, each after a label at the start of a line.

    Thought: I need the weather.
    Action: get_weather
    Action Input: {"city": "Oslo"}
    Observation:

Defined by the prompts of LangChain's ReAct agents, after Yao et al. 2022. The caller should have stopped the model at
`Observation:`; what the model writes after it is invented.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import FENCE, open_call
from callwright.dialects.call_object import emit_complete_call, read_call_object, read_json_arguments
from callwright.dialects.line_calls import PROMPT_CALL_KEYS, LineCalls, copy_rest
from callwright.model import ToolCall
from callwright.schema import ANY_SCHEMA, Schema
from callwright.text.repair import is_json, parse_json
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["REACT", "React"]

_THOUGHT, _ACTION, _INPUT, _OBSERVATION, _ANSWER = (
    "Thought:",
    "Action:",
    "Action Input:",
    "Observation:",
    "Final Answer:",
)
_LABELS = {
    form: label
    for label in (_THOUGHT, _ACTION, _INPUT, _OBSERVATION, _ANSWER)
    for form in (label, f"**{label}**", f"**{label[:-1]}**:")
}
"""Every spelling of a label, including bold ones."""

_LABEL_MARKS = compile_markers(*_LABELS)
_INPUT_MARKS = compile_markers(*(form for form, label in _LABELS.items() if label in (_INPUT, _OBSERVATION)))
_LINE_LABELS = tuple(f"\n{form}" for form in _LABELS)
_FENCE_MARKS = compile_markers(FENCE)
_BRACKET_MARKS = compile_markers("}", "]")
_FENCE_INFO = re.compile(r"\w*[ \t]*")
_LINE = re.compile(r"[^\n]*")
_MAY_BE_JSON = re.compile(r"""["\[]|(?:n|nu|nul|null\s*)?\Z""").match
_LIST = re.compile(r"\[\s*(?:\{.*\}\s*)?\]\Z", re.DOTALL).match
"""A list of objects, or an empty one."""
_MAX_NAME_LENGTH = 256
_AROUND_NAME = " \t\r`*\"'[]"
_NO_INPUT = ("", "None", "null", "N/A", "{}")


@dataclass(frozen=True, kw_only=True)
class React(LineCalls):
    """The labels of ReAct."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (_ACTION,)

    @property
    def markers(self) -> tuple[str, ...]:
        return (_THOUGHT, _ACTION, _INPUT, _OBSERVATION, _ANSWER)

    @property
    def last_brackets(self) -> int:
        return 1

    def read_line(self, source: Source, turn: Turn, lead: str, emit: TextSink) -> ParseStep[TextSink]:
        form = yield from source.peek_marker(_LABEL_MARKS)
        label = _LABELS.get(form, _INPUT)
        if label == _INPUT or (label == _OBSERVATION and not turn.call_count):
            # No label, or one that belongs to no action: the current text continues.
            if lead:
                emit(lead)
            return emit
        space, _ = yield from source.take_to(compile_markers(form))
        if label == _ACTION:
            called = yield from self.try_read_calls(source, turn, f"{lead}{space}{form}", emit)
            return turn.add_text if called else emit
        if label == _OBSERVATION:
            invented: list[str] = []
            yield from copy_rest(source, invented.append)
            if "".join(invented).strip():
                turn.add_malformed("".join((form, *invented)), "the model continued after its stop word")
            return turn.add_text
        yield from source.skip_space()
        if label == _THOUGHT:
            return turn.add_reasoning
        yield from copy_rest(source, turn.add_text)
        return turn.add_text

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        first = yield from source.skip_space()
        fence = yield from self._open_fence(source, turn)
        if fence or first == "{":
            return (yield from self._read_action_object(source, turn, fence))
        name = (yield from source.take_while(_LINE, _MAX_NAME_LENGTH)).strip(_AROUND_NAME)
        line_ends = bool((yield from source.peek()))
        if not turn.can_call(name):
            return f"unknown tool {name!r}"
        form = yield from source.peek_marker(_INPUT_MARKS)
        if not form and line_ends and (yield from _is_input_missing(source)):
            return _read_empty_input(source, turn, name)
        if not form:
            return f"no {_INPUT} follows"
        if _LABELS[form] == _OBSERVATION:
            open_call(source, turn, name).close()
            return ""
        yield from source.take_to(compile_markers(form))
        return (yield from self._read_input(source, turn, name))

    def _read_action_object(self, source: Source, turn: Turn, fence: str) -> ParseStep[str]:
        """Read the action as one JSON object, the form of LangChain's structured chat."""
        if (yield from source.skip_space()) != "{":
            return "no JSON follows"
        problem = yield from read_call_object(source, turn, PROMPT_CALL_KEYS)
        if not problem:
            yield from self._read_call_end(source, turn, fence)
        return problem

    def _read_input(self, source: Source, turn: Turn, name: str) -> ParseStep[str]:
        if (yield from source.peek_marker(_LABEL_MARKS)):
            open_call(source, turn, name).close()
            return ""
        yield from source.skip_space()
        fence = yield from self._open_fence(source, turn)
        if (yield from source.peek()) != "{":
            line = yield from _take_json_line(source, _find_target(turn, name))
            if line is not None:
                return (yield from self._read_json_line(source, turn, name, line))
            return (yield from self._read_bare_input(source, turn, name, fence))
        if (yield from read_json_arguments(source, turn, open_call(source, turn, name))):
            yield from self._read_call_end(source, turn, fence)
        return ""

    def _read_json_line(self, source: Source, turn: Turn, name: str, line: str) -> ParseStep[str]:
        """Read an input of one line that is JSON, but no object: a list around it, a string with it, or nothing."""
        value = parse_json(line)
        key = _find_target(turn, name)[0]
        if not isinstance(value, str) or not value.strip() or value.lstrip().startswith("{"):
            problem = yield from emit_complete_call(source, turn, name, line)
            if not problem or not key:
                return problem
        arguments = open_call(source, turn, name)
        arguments.call.add_repair("bare_input", f"the input became {key!r}")
        arguments.write_json(key, line)
        arguments.close()
        return ""

    def _read_bare_input(self, source: Source, turn: Turn, name: str, fence: str) -> ParseStep[str]:
        """Read an input that is not an object: the value of the tool's only parameter."""
        if not (yield from source.peek()):
            return _read_empty_input(source, turn, name)
        tool = turn.tools.get(name)
        key = _find_only_parameter(tool.schema) if tool else "input"
        if tool and not key and tool.schema.properties:
            return "the input is not a JSON object"
        arguments = open_call(source, turn, name)
        end = yield from _copy_bare_input(
            source, arguments, key, compile_markers(*_LINE_LABELS, *((f"\n{FENCE}",) if fence else ()))
        )
        if end in _LINE_LABELS:
            # The label is read again at the start of its line; nothing was fed since it was found.
            source.position -= len(end)
        return ""

    def _open_fence(self, source: Source, turn: Turn) -> ParseStep[str]:
        fence = yield from source.accept(_FENCE_MARKS)
        if fence:
            info = yield from source.take_while(_FENCE_INFO, _MAX_NAME_LENGTH)
            if info.strip().lower() not in ("", "json"):
                turn.add_repair("dropped_header", f"{fence}{info}")
            yield from source.skip_newlines(1)
        return fence

    def _read_call_end(self, source: Source, turn: Turn, fence: str) -> ParseStep[None]:
        """Read what may follow an object: an extra bracket, and the end of the fence around it."""
        if bracket := (yield from source.accept_next(_BRACKET_MARKS)):
            turn.add_repair("extra_bracket", f"unexpected {bracket!r} after a call")
        if fence and not (yield from source.accept_next(_FENCE_MARKS)):
            turn.add_repair("missing_close", f"{FENCE} was missing after a call")

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(f"{_ACTION} {call.name}\n{_INPUT} {call.arguments}" for call in calls)

    def describe_call_format(self) -> str:
        return (
            "To call one, write these lines and stop:\n"
            f"{_THOUGHT} why you call it\n{_ACTION} the tool's name\n{_INPUT} a JSON object of its parameters\n"
            f"The result comes back as:\n{_OBSERVATION} the result\n"
            f"When you know the answer, write:\n{_ANSWER} the answer"
        )


def _is_input_missing(source: Source) -> ParseStep[bool]:
    """Whether the text ends before a label, or inside one."""
    return (yield from source.is_truncated_inside(_INPUT_MARKS)) or not source.text[source.position :].strip()


def _read_empty_input(source: Source, turn: Turn, name: str) -> str:
    """Handle output that ends before the input: it is a call if the tool needs none."""
    tool = turn.tools.get(name)
    if tool is None or tool.schema.properties:
        return "no input follows"
    source.take_rest()
    open_call(source, turn, name).close()
    return ""


def _find_target(turn: Turn, name: str) -> tuple[str, Schema]:
    """Return the parameter that a bare input is meant for, and its schema; an empty key if there is none."""
    tool = turn.tools.get(name)
    key = _find_only_parameter(tool.schema) if tool else "input"
    return key, tool.schema.get_member(key) if tool else ANY_SCHEMA


def _take_json_line(source: Source, target: tuple[str, Schema]) -> ParseStep[str | None]:
    """Consume and return the rest of the line if it is JSON other than an object, and no value of the tool's only
    parameter is written like that."""
    key, schema = target
    while True:
        text, start = source.text, source.position
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        if not _MAY_BE_JSON(line) or "array" in schema.types or (line[:1] == '"' and not key):
            return None
        if end >= 0 or source.closed:
            break
        yield
    raw = line.strip()
    if not is_json(raw) or (raw == "null" and "null" in schema.types) or (raw[0] == "[" and not _LIST(raw)):
        return None
    source.position += len(line)
    return raw


def _find_only_parameter(schema: Schema) -> str:
    """Return the parameter that a bare input is meant for: the only one, or the only required one."""
    required = [name for name in schema.properties if name in schema.required]
    return next((names[0] for names in ([*schema.properties], required) if len(names) == 1), "")


def _copy_bare_input(source: Source, arguments: ArgumentsWriter, key: str, ends: MarkerSet) -> ParseStep[str]:
    """Read bare text as the value of a parameter and close the call. Return the marker that ended the text; empty at
    the end of the output, where the caller removed the stop word as it should."""
    if key:
        arguments.call.add_repair("bare_input", f"the input became {key!r}")
    if key and (yield from source.peek()) != '"':
        parameter = arguments.start_parameter(key)
        end = yield from source.copy_until(ends, _TrailingSpaceTrimmer(parameter.write).add)
        parameter.end()
        arguments.close()
        return end or ""
    text, end = yield from source.take_to(ends)
    value = text.strip()
    if key and not end and not is_json(value):
        arguments.call.end_truncated(value)
        return ""
    if key:
        # A quoted text that is JSON is a string; otherwise the quotes belong to the text.
        arguments.write_json(key, value if is_json(value) else json.dumps(value, ensure_ascii=False))
    elif value not in _NO_INPUT:
        arguments.call.add_repair("dropped_input", f"the tool accepts none: {value}")
    arguments.close()
    return end or ""


class _TrailingSpaceTrimmer:
    """Passes text on without the white space at its end."""

    def __init__(self, emit: TextSink) -> None:
        self._emit = emit
        self._space = ""

    def add(self, piece: str) -> None:
        text = self._space + piece
        body = text.rstrip()
        self._space = text[len(body) :]
        if body:
            self._emit(body)


REACT = React(
    name="react",
    shape="B",
    models="any model that a ReAct prompt teaches",
    source="prompts of LangChain's ReAct and structured chat agents; Yao et al. 2022",
    text_tags=True,
    result_template="Observation: {content}",
)
