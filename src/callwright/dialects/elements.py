"""X4: the tool's name is the tag, and each parameter is an element inside it, as in Cline, Roo and Kilo.

    <get_weather>
    <city>Oslo</city>
    <days>2</days>
    </get_weather>

Only tools of the request and their declared parameters are markup, everything else is text. Values are raw: a closing
tag counts where another parameter opens after it or the tool's element closes.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags, format_raw_value, open_call, truncate_call
from callwright.dialects.element_values import ElementArguments
from callwright.dialects.use_tool import read_named_call
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.repair import convert_python_literal
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "ElementTags", "ToolNameTags"]

_MCP_TAG = "use_mcp_tool"
_ELEMENT_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, kw_only=True)
class ToolNameTags(Dialect):
    """A family whose tags are the names of the tools; without tools, nothing is a call."""

    reasoning_tags: tuple[ReasoningTags, ...] = (THINK_TAGS, ReasoningTags("<thinking>", "</thinking>"))
    text_tags: bool = True

    @property
    def openers(self) -> tuple[str, ...]:
        return ()

    def list_openers(self, tools: Toolbox) -> tuple[str, ...]:
        return tuple(tag for name in tools.names for tag in (f"<{name}>", f"<{name}/>", f"<{name} />"))

    def list_markers(self, tools: Toolbox) -> tuple[str, ...]:
        return (*self.list_openers(tools), *(f"</{name}>" for name in tools.names))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        name = opener.strip("</ >")
        if opener.endswith("/>"):
            open_call(source, turn, name).close_empty()
            return ""
        return (yield from self.read_body(source, turn, name))

    @abstractmethod
    def read_body(self, source: Source, turn: Turn, name: str) -> ParseStep[str]:
        """Read a call after its opening tag. Return an empty string, or the reason why this is no call."""


@dataclass(frozen=True, kw_only=True)
class ElementTags(ToolNameTags):
    """Parameters as elements. With `nests_elements`, lists and objects are written as elements too, where
    that loses nothing."""

    raw_values: ClassVar[bool] = True
    nests_elements: bool = False
    indent: str = ""
    reads_mcp_calls: bool = False
    """Whether Cline's form for an MCP server's tool is read too, if that tool itself is in the request."""

    @property
    def body_starts(self) -> tuple[str, ...]:
        return ("<",)

    def list_openers(self, tools: Toolbox) -> tuple[str, ...]:
        return (*super().list_openers(tools), *((f"<{_MCP_TAG}>",) if self.reads_mcp_calls and tools.names else ()))

    def list_markers(self, tools: Toolbox) -> tuple[str, ...]:
        keys = dict.fromkeys(key for name in tools.names for key in _list_parameters(tools, name))
        return (*super().list_markers(tools), *(tag for key in keys for tag in (f"<{key}>", f"</{key}>")))

    def read_body(self, source: Source, turn: Turn, name: str) -> ParseStep[str]:
        if name not in turn.tools:
            return (yield from read_named_call(source, turn, f"</{name}>"))
        close = f"</{name}>"
        keys = _list_parameters(turn.tools, name)
        if not (yield from source.peek_marker(compile_markers(close, *(f"<{key}>" for key in keys)))):
            return f"no parameter of {name} follows"
        arguments = open_call(source, turn, name)
        if not (
            yield from ElementArguments(
                arguments, keys, (close,), calls=tuple(f"<{tool}>" for tool in turn.tools.names)
            ).read_elements(source)
        ):
            return (yield from truncate_call(source, turn, arguments))
        return ""

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(self._render_one_call(call) for call in calls)

    def _render_one_call(self, call: ToolCall) -> str:
        members = (self._render_member(key, value) for key, value in json.loads(call.arguments).items())
        return f"<{call.name}>\n{''.join(members)}</{call.name}>"

    def _render_member(self, key: str, value: Any) -> str:
        if self.nests_elements and isinstance(value, dict | list) and _is_plain_value(value):
            return f"{self.indent}{_render_nested(key, value)}\n"
        return f"{self.indent}<{key}>{format_raw_value(value)}</{key}>\n"


def _list_parameters(tools: Toolbox, name: str) -> tuple[str, ...]:
    tool = tools.get(name)
    return tuple(tool.schema.properties) if tool else ()


def _render_nested(key: str, value: Any) -> str:
    """Render a value as elements: a list repeats its element, an object's members are elements inside it."""
    if isinstance(value, list):
        return "".join(_render_nested(key, item) for item in value)
    if isinstance(value, dict):
        return f"<{key}>{''.join(_render_nested(name, item) for name, item in value.items())}</{key}>"
    return f"<{key}>{format_raw_value(value)}</{key}>"


def _is_plain_value(value: Any) -> bool:
    """Whether a value written as elements is read back unchanged; other values are written as JSON."""
    match value:
        case str():
            return bool(value.strip()) and "<" not in value and convert_python_literal(value.strip()) is None
        case dict():
            has_plain_keys = all(_ELEMENT_NAME.fullmatch(key) and key != "item" for key in value)
            return bool(value) and has_plain_keys and all(map(_is_plain_value, value.values()))
        case list():
            return len(value) > 1 and all(_is_plain_value(item) and not isinstance(item, list) for item in value)
        case _:
            return value is not None


ELEMENT = ElementTags(
    name="element",
    shape="X4",
    models="any model under the prompts of Cline, Roo Code and Kilo Code before their native tools",
    source="system prompts of cline/cline and RooCodeInc/Roo-Code",
    reads_mcp_calls=True,
    result_template="[{name}] Result:\n\n{content}",
)
MORPH_XML = ElementTags(
    name="morph_xml",
    shape="X4",
    models="any model under the ai-sdk middleware's morphXml prompt",
    source="packages/parser of minpeter/ai-sdk-tool-call-middleware",
    nests_elements=True,
    indent="  ",
    result_template="<tool_response><tool_name>{name}</tool_name><result>{content}</result></tool_response>",
)

DIALECTS: Sequence[Dialect] = (ELEMENT, MORPH_XML)
