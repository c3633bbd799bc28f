"""X4: MiniMax-M3, where every tag follows the token `]<]minimax[>[` (here `§`):

    §<tool_call>
    §<invoke name="get_weather">§<city>Oslo§</city>§<tags>§<item>a§</item>§</tags>§</invoke>
    §</tool_call>

Lists are `<item>` elements, objects have an element for each member, nulls are omitted; only the schema gives the
types. Models sometimes omit the prefix before a closing tag or the outer opening tag, and it is missing everywhere if a
server strips special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from callwright.dialects.base import Dialect, ReasoningTags, format_raw_value, open_call, truncate_call
from callwright.dialects.element_values import ElementArguments
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "MiniMaxM3"]

_TAG_PREFIX = "]<]minimax[>["
_OPEN, _CLOSE = f"{_TAG_PREFIX}<tool_call>", f"{_TAG_PREFIX}</tool_call>"
_INVOKE, _END_INVOKE = f"{_TAG_PREFIX}<invoke", f"{_TAG_PREFIX}</invoke>"
_INVOKE_MARKS = compile_markers(_INVOKE, "<invoke")
_HEADER = re.compile(r"[^<>\n]*")
_NAME_ATTRIBUTE = re.compile(r"""\s+name\s*=\s*["']?([^"']+)["']?\s*""")
_MAX_HEADER_LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class MiniMaxM3(Dialect):
    """One section of `<invoke>` elements."""

    raw_values: ClassVar[bool] = True
    nested_format: ClassVar[Literal["json", "elements"]] = "elements"

    @property
    def openers(self) -> tuple[str, ...]:
        return (_OPEN, _INVOKE, "<tool_call>")

    @property
    def markers(self) -> tuple[str, ...]:
        return (_OPEN, _CLOSE, _INVOKE, _END_INVOKE, _TAG_PREFIX)

    @property
    def body_starts(self) -> tuple[str, ...]:
        return (_INVOKE, "<invoke", " name=")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener != _INVOKE:
            yield from source.skip_space()
            if not (yield from source.accept(_INVOKE_MARKS)):
                return "no <invoke> follows"
        problem = yield from self._read_call(source, turn)
        if problem:
            return problem
        while not turn.is_truncated:
            yield from source.skip_space()
            if (yield from source.accept(compile_markers(_CLOSE, "</tool_call>"))):
                break
            source.start_capture()
            if not (yield from source.accept(_INVOKE_MARKS)):
                if opener != _INVOKE:
                    turn.add_repair("missing_close", "</tool_call> was missing after a call")
                break
            problem = yield from self._read_call(source, turn)
            if problem:
                yield from source.take_to(compile_markers(_END_INVOKE, "</invoke>"))
                turn.add_malformed(source.end_capture(), problem)
        return ""

    def _read_call(self, source: Source, turn: Turn) -> ParseStep[str]:
        header = yield from source.take_while(_HEADER, _MAX_HEADER_LENGTH)
        match = _NAME_ATTRIBUTE.fullmatch(header)
        if not (yield from source.accept(compile_markers(">"))) or not match:
            return "<invoke> names no tool"
        name = match.group(1).strip()
        if not turn.can_call(name):
            return f"unknown tool {name!r}"
        arguments = open_call(source, turn, name)
        bare = compile_markers("</invoke>", "</tool_call>", *(f"<{key}>" for key in arguments.call.schema.properties))
        if (yield from source.peek_marker(bare)):
            arguments.call.add_repair("missing_prefix", f"the tags were written without {_TAG_PREFIX}")
            elements = ElementArguments(arguments, arguments.call.schema.properties, ("</invoke>", "</tool_call>"))
        else:
            elements = ElementArguments(
                arguments, (), (_END_INVOKE, _CLOSE), prefix=_TAG_PREFIX, calls=(_OPEN, _INVOKE)
            )
        if not (yield from elements.read_elements(source)):
            return (yield from truncate_call(source, turn, arguments))
        return ""

    def render_call(self, *calls: ToolCall) -> str:
        invokes = (
            f'{_INVOKE} name="{call.name}">{_render_elements(json.loads(call.arguments))}{_END_INVOKE}\n'
            for call in calls
        )
        return f"{_OPEN}\n{''.join(invokes)}{_CLOSE}"


def _render_elements(value: Any) -> str:
    """Render a value as the template does: nothing is escaped, and null members are omitted."""
    if isinstance(value, dict):
        members = ((key, item) for key, item in value.items() if item is not None)
        return "".join(f"{_TAG_PREFIX}<{key}>{_render_elements(item)}{_TAG_PREFIX}</{key}>" for key, item in members)
    if isinstance(value, list):
        return "".join(f"{_TAG_PREFIX}<item>{_render_elements(item)}{_TAG_PREFIX}</item>" for item in value)
    return format_raw_value(value)


MINIMAX_M3 = MiniMaxM3(
    name="minimax_m3",
    shape="X4",
    models="MiniMax-M3",
    source="chat template of MiniMaxAI/MiniMax-M3",
    reasoning_tags=(ReasoningTags("<mm:think>", "</mm:think>"),),
    framing=("[e~[",),
    tokens=frozenset({_TAG_PREFIX, "[e~[", "<mm:think>", "</mm:think>"}),
    result_template="<response>{content}</response>",
    parsers=("minimax_m3", "minimax-m3"),
    patterns=("*minimax-m3*",),
)

DIALECTS: Sequence[Dialect] = (MINIMAX_M3,)
