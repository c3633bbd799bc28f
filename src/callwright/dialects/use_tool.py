"""X4: an element with the tool's name and one with its arguments, as JSON or as elements.

    <use_tool>
    <name>get_weather</name>
    <arguments>{"city": "Oslo", "days": 2}</arguments>
    </use_tool>

Obsidian Copilot writes `<args>` instead, later versions the parameters themselves:
`<use_tool><name>get_weather</name><city>Oslo</city></use_tool>`. Other prompts use
`<tool_call><tool_name>get_weather</tool_name><parameters><city>Oslo</city></parameters></tool_call>`.
A JSON object that names the tool itself is read too, and so is a name in the tag: `<use_tool name="get_weather">`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from callwright.arguments import read_object
from callwright.dialects.base import FENCE, THINK_TAGS, Dialect, ReasoningTags, open_call, truncate_call
from callwright.dialects.call_object import accept_fence, emit_complete_call, read_json_calls
from callwright.dialects.element_values import ElementArguments
from callwright.model import ToolCall
from callwright.text.json_stream import take_json
from callwright.text.source import ParseStep, Source, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "UseToolTags", "read_named_call"]

_NAME_TAGS = ("<name>", "<tool_name>", "<tool>")
_SERVER_TAG = "<server_name>"
_ARGUMENT_TAGS = ("<arguments>", "<args>", "<parameters>", "<params>")
_NAMED_OPENER = "<use_tool name="
_CALL_TAGS = {"</use_tool>": ("<use_tool>", _NAMED_OPENER)}
"""The tags that open a call, where a wrapper has several."""
_TEXT = re.compile(r"[^<>]*")
_ATTRIBUTE = re.compile(r"""[^<>"'\n]*""")
_MAX_NAME_LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class UseToolTags(Dialect):
    """Calls that name their tool in an element; the wrapper is one of `openers`."""

    @property
    def openers(self) -> tuple[str, ...]:
        return ("<use_tool>", "<tool_call>", _NAMED_OPENER)

    @property
    def markers(self) -> tuple[str, ...]:
        inside = (*_NAME_TAGS[:2], *_ARGUMENT_TAGS[:1], _ARGUMENT_TAGS[2])
        tags = (*self._wrapper_tags, *inside)
        return (*(tag for opener in tags for tag in (opener, _build_closing_tag(opener))), _NAMED_OPENER)

    @property
    def closers(self) -> tuple[str, ...]:
        return tuple(map(_build_closing_tag, (*_ARGUMENT_TAGS, *self._wrapper_tags)))

    @property
    def _wrapper_tags(self) -> tuple[str, ...]:
        """The openers that are complete tags."""
        return tuple(opener for opener in self.openers if opener != _NAMED_OPENER)

    @property
    def body_starts(self) -> tuple[str, ...]:
        return (*_NAME_TAGS, '"', "'")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener == _NAMED_OPENER:
            return (yield from _read_attribute_call(source, turn))
        close = _build_closing_tag(opener)
        if (yield from source.skip_space()) not in ("{", "["):
            return (yield from read_named_call(source, turn, close))
        problem = yield from read_json_calls(source, turn)
        if not problem:
            yield from _read_closing_tags(source, turn, (close,))
        return problem

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(
            f"<use_tool>\n<name>{call.name}</name>\n<arguments>{call.arguments}</arguments>\n</use_tool>"
            for call in calls
        )


def read_named_call(source: Source, turn: Turn, close: str, tag_name: str = "") -> ParseStep[str]:
    """Read the call inside a wrapper up to `close`, and others in the same wrapper. Return an empty string, or the
    reason why this is no call. `tag_name` is the tool's name if the wrapper's tag has it.

    Cline's calls of an MCP server's tool have this form too, with the server's name before the tool's.
    """
    problem, is_closed = yield from _read_one_call(source, turn, close, tag_name)
    while not problem and not is_closed and (yield from source.peek_marker(compile_markers(*_NAME_TAGS))):
        source.start_capture()
        item_problem, is_closed = yield from _read_one_call(source, turn, close)
        if item_problem:
            raw = source.end_capture()
            turn.add_text(raw)
            turn.add_malformed(raw, item_problem, shown=True)
            break
    return problem


def _read_one_call(source: Source, turn: Turn, close: str, tag_name: str = "") -> ParseStep[tuple[str, bool]]:
    """Read one call. Return the reason why this is none, or an empty string, and whether the wrapper was closed."""
    server = yield from _take_element_text(source, (_SERVER_TAG,))
    name = tag_name or (yield from _take_element_text(source, _NAME_TAGS))
    if not turn.can_call(name):
        return f"unknown tool {name!r}" if name else "no tool name follows", True
    yield from source.skip_space()
    holder = yield from source.accept(compile_markers(*_ARGUMENT_TAGS))
    closes: tuple[str, ...] = (_build_closing_tag(holder), close) if holder else (close,)
    notes: dict[str, str] = {}
    if holder or tag_name:
        yield from source.skip_space()
        yield from accept_fence(source, notes.__setitem__)
    first = (yield from source.skip_space()) if holder or tag_name else ""
    if first == '"':
        return (yield from _read_string_arguments(source, turn, name, closes))
    if first == "[":
        return (yield from _read_list_arguments(source, turn, name, closes, notes))
    is_json = first == "{"
    tool = turn.tools.get(name)
    keys = tuple(tool.schema.properties) if tool else ()
    opens = tuple(f"<{key}>" for key in keys) or ("<",)
    if not is_json and not (yield from source.peek_marker(compile_markers(*closes, *opens))):
        return f"no parameter of {name} follows", True
    arguments = open_call(source, turn, name)
    for kind, detail in notes.items():
        arguments.call.add_repair(kind, detail)
    if server:
        arguments.call.add_repair("mcp_server", f"the call named the server {server!r}")
    if is_json:
        complete = yield from read_object(source, arguments)
    else:
        elements = ElementArguments(arguments, keys, closes, calls=_CALL_TAGS.get(close, ()))
        complete = yield from elements.read_elements(source)
        closes = closes[1:]
    if notes:
        yield from source.accept_next(compile_markers(FENCE))
    if complete:
        return "", (yield from _read_closing_tags(source, turn, closes))
    yield from truncate_call(source, turn, arguments)
    return "", True


def _read_attribute_call(source: Source, turn: Turn) -> ParseStep[str]:
    """Read a call whose name is an attribute of its tag, from the value of the attribute on."""
    quote = yield from source.accept(compile_markers('"', "'"))
    name = (yield from source.take_while(_ATTRIBUTE, _MAX_NAME_LENGTH)).strip() if quote else ""
    if not name or not (yield from source.accept(compile_markers(quote))):
        return "no tool name follows"
    end = yield from source.accept_next(compile_markers(">", "/>"))
    if not end or not turn.can_call(name):
        return f"unknown tool {name!r}" if end else "the tag is not closed"
    if end == ">":
        return (yield from read_named_call(source, turn, "</use_tool>", name))
    open_call(source, turn, name).close_empty()
    return ""


def _read_list_arguments(
    source: Source, turn: Turn, name: str, closes: tuple[str, ...], notes: dict[str, str]
) -> ParseStep[tuple[str, bool]]:
    """Read a call whose arguments are in a list: none, or one object."""
    raw = yield from take_json(source, ignore)
    if raw is None:
        return "the JSON is incomplete", True
    if notes:
        yield from source.accept_next(compile_markers(FENCE))
    problem = yield from emit_complete_call(source, turn, name, raw, notes=notes)
    return problem, bool(problem) or (yield from _read_closing_tags(source, turn, closes))


def _read_string_arguments(
    source: Source, turn: Turn, name: str, closes: tuple[str, ...]
) -> ParseStep[tuple[str, bool]]:
    """Read a call whose arguments are JSON in a JSON string, which ends where a tag follows its quote."""
    raw, end = yield from source.take_to(compile_markers(f'"{closes[0]}', f'"\n{closes[0]}'))
    if not end:
        return "the JSON is incomplete", True
    problem = yield from emit_complete_call(source, turn, name, raw + '"')
    return problem, bool(problem) or (yield from _read_closing_tags(source, turn, closes[1:]))


def _build_closing_tag(tag: str) -> str:
    return f"</{tag[1:]}"


def _take_element_text(source: Source, tags: tuple[str, ...]) -> ParseStep[str]:
    """Return the text of the element at the position if its tag is one of these and is closed; otherwise nothing."""
    yield from source.skip_space()
    tag = yield from source.accept(compile_markers(*tags))
    if not tag:
        return ""
    name = yield from source.take_while(_TEXT, _MAX_NAME_LENGTH)
    return name.strip() if (yield from source.accept(compile_markers(_build_closing_tag(tag)))) else ""


def _read_closing_tags(source: Source, turn: Turn, closes: tuple[str, ...]) -> ParseStep[bool]:
    """Consume the tags that close what encloses the arguments; record the first one that is missing. Return whether
    none is."""
    if turn.is_truncated:
        return True
    for close in closes:
        yield from source.skip_space()
        if not (yield from source.accept(compile_markers(close))):
            turn.add_repair("missing_close", f"{close} was missing after a call")
            return False
    return True


USE_TOOL = UseToolTags(
    name="use_tool",
    shape="X4",
    models="any model taught so by its prompt: Obsidian Copilot's agent and others",
    source="system prompt of logancyang/obsidian-copilot",
    reasoning_tags=(THINK_TAGS, ReasoningTags("<thinking>", "</thinking>")),
    text_tags=True,
)

DIALECTS: Sequence[Dialect] = (USE_TOOL,)
