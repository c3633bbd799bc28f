"""`<use_tool>` blocks: find them in a text, and write calls as such blocks for Obsidian Copilot before 3.2.0.

<use_tool>
<name>get_user</name>
<id>42</id>
</use_tool>
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from callwright.aggregator import ToolCallRecord
from callwright.dialects.base import THINK_TAGS, ReasoningTags
from callwright.dialects.use_tool import UseToolTags
from callwright.guard.call_text_forms import format_obsidian_call
from callwright.ids import make_call_id
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Toolbox, parse_tool_spec
from callwright.text.repair import is_json, parse_json
from callwright.text.source import ParseStep, Source, TextSink
from callwright.turn import Turn, collect

__all__ = ["UseToolBlock", "extract_use_tool_blocks", "to_obsidian_xml"]

_ELEMENT_NAME = re.compile(r"[A-Za-z_][\w.-]*")


class UseToolBlock(msgspec.Struct, frozen=True):
    """A complete block: `text[start:end]` is what was written."""

    name: str
    arguments: str
    """The arguments as a JSON object, in the types that the tool's schema declares."""
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class _BlockFinder(UseToolTags):
    """Reads a text with the dialect, and notes where each call stood."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of the block of each call."""
    length: int = 0

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(opener for opener in super().openers if opener.startswith("<use_tool"))

    def try_read_calls(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        before = turn.call_count
        start = self._get_offset(source) - len(opener)
        found = yield from super().try_read_calls(source, turn, opener, emit)
        self.spans.extend([(start, self._get_offset(source))] * (turn.call_count - before))
        return found

    def _get_offset(self, source: Source) -> int:
        return self.length - len(source.text) + source.position


def extract_use_tool_blocks(text: str, tools: Iterable[ToolSpec | Mapping[str, Any]] = ()) -> list[UseToolBlock]:
    """Return the complete `<use_tool>` blocks of a text. A block that is cut off, quoted or in fenced code is none.

    With tools, only blocks that name one of them count, and arguments have the types of their schemas. A block that
    contains a list of calls is returned once for each.

    >>> text = "I look. <use_tool><name>get_user</name><id>42</id></use_tool> Wait."
    >>> [(block.name, block.arguments, text[block.end :]) for block in extract_use_tool_blocks(text)]
    [('get_user', '{"id": 42}', ' Wait.')]
    """
    finder = _BlockFinder(
        name="use_tool",
        shape="X4",
        models="",
        source="",
        reasoning_tags=(THINK_TAGS, ReasoningTags("<thinking>", "</thinking>")),
        text_tags=True,
        length=len(text),
    )
    turn = Turn(Toolbox(map(parse_tool_spec, tools)), make_call_id)
    for _ in finder.grammar(Source.from_text(text), turn):
        pass  # the text is complete, so nothing waits
    turn.finish()
    calls = zip(collect(turn.drain_events()).tool_calls, finder.spans, strict=True)
    return [UseToolBlock(call.name, call.arguments, *span) for call, span in calls if call.complete]


def to_obsidian_xml(
    calls: Iterable[ToolCall | ToolCallRecord],
    tools: Iterable[ToolSpec | Mapping[str, Any]] = (),
    *,
    delimiter: str = "\n",
) -> str:
    """Write calls as `<use_tool>` blocks, each parameter as an element.

    Parameters have the order in which the tool declares them, and then that of their names: equal calls give equal
    text. In a value that would be read as markup, `<` is written as `&lt;`. An element cannot express null, so a
    parameter that is null is left out. Arguments that cannot be written as elements are written as they are, in one
    element `<arguments>`.

    >>> print(to_obsidian_xml([ToolCallRecord("a", "get_user", '{"id": 42}')]))
    <use_tool>
    <name>get_user</name>
    <id>42</id>
    </use_tool>
    """
    toolbox = Toolbox(map(parse_tool_spec, tools))
    return delimiter.join(_format_block(call, toolbox) for call in calls)


def _format_block(call: ToolCall | ToolCallRecord, toolbox: Toolbox) -> str:
    name = call.name.replace("<", "&lt;")
    members = _parse_members(call.arguments)
    if members is None:
        # Inside JSON, `<` can be escaped.
        text = call.arguments.replace("<", "\\u003c" if is_json(call.arguments) else "&lt;")
        return f"<use_tool>\n<name>{name}</name>\n<arguments>{text}</arguments>\n</use_tool>"
    tool = toolbox.get(call.name)
    declared = list(tool.schema.properties) if tool else []
    keys = [key for key in declared if key in members] + sorted(members.keys() - set(declared))
    ordered = json.dumps({key: members[key] for key in keys}, ensure_ascii=False)
    return format_obsidian_call(ToolCall(call.id, name, ordered))


def _parse_members(arguments: str) -> dict[str, Any] | None:
    """Return arguments that can be written as elements, or None."""
    try:
        members = parse_json(arguments)
    except ValueError:
        return None
    if not isinstance(members, dict):
        return None
    is_writable = all(_ELEMENT_NAME.fullmatch(key) and key != "use_tool" for key in members)
    return members if is_writable else None
