"""X4: the tool's name is the tag, and its arguments are YAML.

    <get_weather>
    city: Oslo
    days: 2
    </get_weather>

The schema, not YAML, decides which plain scalars are strings: `on`, `1:30` and dates stay text where text is declared.
Quoted and block scalars are strings. YAML cannot be read in pieces, so the body is held back until it is complete. A
closing tag counts at the indentation of the body or left of it, or at the end of such a line; inside block scalars,
which are indented further, it is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import yaml

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import Dialect, open_call
from callwright.dialects.elements import ToolNameTags
from callwright.model import ToolCall
from callwright.schema import Schema, text_to_json
from callwright.text.json_stream import RepairSink, escape_json
from callwright.text.repair import convert_python_literal
from callwright.text.source import ParseStep, Source, TextBuffer, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "YamlXml"]

_SPACE = re.compile(r"(?:\s|#[^\n]*(?:\n|\Z))*")
_MAX_SPACE_LENGTH = 4096
"""How much white space and comments may precede the first key."""
_KEY = re.compile(r"[\w.$\"'-]*")
_MAX_KEY_LENGTH = 256
_KEY_LINE = re.compile(r"[ \t]*([\w.$-]+):[ \t]*(.*)")
_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_MAX_DEPTH = 100


@dataclass(frozen=True, kw_only=True)
class YamlXml(ToolNameTags):
    """A YAML mapping between tags with the tool's name."""

    streams_strings: ClassVar[bool] = False

    def read_body(self, source: Source, turn: Turn, name: str) -> ParseStep[str]:
        close = f"</{name}>"
        space = yield from source.take_while(_SPACE, _MAX_SPACE_LENGTH)
        if (yield from source.accept(compile_markers(close))):
            open_call(source, turn, name).close()
            return ""
        line = yield from source.take_while(_KEY, _MAX_KEY_LENGTH)
        tool = turn.tools.get(name)
        if (yield from source.peek()) not in (":", "{") or not tool or not _can_begin_arguments(line, tool.schema):
            return f"no parameter of {name} follows"
        arguments = open_call(source, turn, name)
        if space.strip():
            arguments.call.add_repair("dropped_comment", space.strip())
        indent = 0 if "\n" not in space else len(space) - space.rindex("\n") - 1
        body = _YamlBody(close, indent, inline="\n" not in space)
        text, complete = yield from body.read_text(source, " " * indent + line)
        if not complete or not _write_arguments(text, arguments):
            arguments.call.end_truncated()
            turn.add_malformed(text, "the YAML of the arguments cannot be read" if complete else "cut")
        return ""

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(f"<{call.name}>\n{_dump_yaml(json.loads(call.arguments))}</{call.name}>" for call in calls)


def _can_begin_arguments(key: str, schema: Schema) -> bool:
    """Whether a body that starts like this can be the tool's arguments: a declared key, or a brace."""
    return not key or key.strip("\"'") in schema.properties


@dataclass
class _YamlBody:
    """The text between the tags. Its end depends on the line of the closing tag."""

    close: str
    indent: int
    inline: bool
    """Whether the body is still on the line of the opening tag."""

    def read_text(self, source: Source, line: str) -> ParseStep[tuple[str, bool]]:
        """Read the body, whose beginning `line` is consumed. Return it, and whether it is complete: the text may
        end."""
        buffer = TextBuffer(source)
        buffer.add(line)
        ends = compile_markers("\n", self.close)
        while True:
            piece, marker = yield from source.take_to(ends)
            buffer.add(piece)
            line += piece
            if marker is None:
                return buffer.get_text(), False
            if marker == "\n":
                line = ""
                self.inline = False
            elif self.inline or (yield from self._is_closing_tag(source, line)):
                return buffer.get_text(), True
            else:
                line += marker
            buffer.add(marker)

    def _is_closing_tag(self, source: Source, line: str) -> ParseStep[bool]:
        """Whether the closing tag after `line` ends the body."""
        words = line.lstrip()
        if len(line) - len(words) > self.indent:
            return False
        return not words or (yield from source.peek()) in ("", "\n")


def _write_arguments(body: str, arguments: ArgumentsWriter) -> bool:
    """Write a body's members and end the call; return False if it cannot be read."""
    schema = arguments.call.schema
    try:
        members = _parse_members(body, schema, arguments.call.add_repair)
    except (yaml.YAMLError, ValueError, OverflowError):  # the last two: escapes beyond Unicode in PyYAML
        lines = [_KEY_LINE.fullmatch(line) for line in body.split("\n") if line.strip()]
        if not all(match and match.group(1) in schema.properties for match in lines):
            return False
        arguments.call.add_repair("unquoted_value", "not YAML; each line was read as a parameter and its value")
        for match in filter(None, lines):
            arguments.write_text(match.group(1), match.group(2).strip(), schema.get_member(match.group(1)))
    else:
        for key, value in members:
            arguments.write_json(key, value)
    arguments.close()
    return True


def _parse_members(body: str, schema: Schema, note: RepairSink) -> list[tuple[str, str]]:
    """Return the members of a YAML mapping as keys and JSON."""
    events = yaml.parse(body, Loader=_Loader)
    next(events)
    next(events)
    if not isinstance(next(events), yaml.MappingStartEvent):
        raise yaml.YAMLError("no mapping")
    members = list(_iter_mapping(events, schema, note, 1))
    if not isinstance(next(events), yaml.DocumentEndEvent) or not isinstance(next(events), yaml.StreamEndEvent):
        raise yaml.YAMLError("several documents")
    return members


def _iter_mapping(events: Iterator[Any], schema: Schema, note: RepairSink, depth: int) -> Iterator[tuple[str, str]]:
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent):
            raise yaml.YAMLError("a key is not a word")
        yield event.value, _node_to_json(events, next(events), schema.get_member(event.value), note, depth)


def _node_to_json(events: Iterator[Any], event: Any, schema: Schema, note: RepairSink, depth: int) -> str:
    """Return the JSON of the node that begins with this event. Aliases are rejected: they can expand without limit."""
    if isinstance(event, yaml.ScalarEvent):
        return _scalar_to_json(event, schema, note)
    if isinstance(event, yaml.AliasEvent) or depth > _MAX_DEPTH:
        raise yaml.YAMLError("an alias, or nesting too deep")
    if isinstance(event, yaml.MappingStartEvent):
        members = (f'"{escape_json(key)}": {value}' for key, value in _iter_mapping(events, schema, note, depth + 1))
        return f"{{{', '.join(members)}}}"
    items = []
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        items.append(_node_to_json(events, event, schema.items, note, depth + 1))
    return f"[{', '.join(items)}]"


def _scalar_to_json(event: yaml.ScalarEvent, schema: Schema, note: RepairSink) -> str:
    """Convert a scalar to the type that the schema declares. Escaped surrogate pairs become one character, as in
    JSON."""
    text = event.value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if event.style:
        return f'"{escape_json(text)}"'
    types = schema.types
    if text in ("", "~") and (not types or "null" in types):
        return "null"
    if "boolean" in types:
        text = _BOOLEANS.get(text.lower(), text)
    value, repairs = text_to_json(text, schema)
    for repair in repairs:
        note(repair.kind, repair.detail)
    return value


class _Loader(yaml.BaseLoader):
    """Accepts control characters; rejects only NUL, which PyYAML takes for the end."""

    def check_printable(self, data: str) -> None:
        if "\0" in data:
            super().check_printable(data)


_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")
"""YAML 1.1 treats these as line breaks and folds them: only double quotes preserve them."""


class _Dumper(yaml.SafeDumper):
    """Writes multi-line strings as block scalars, and quotes strings with markup or that look like other values."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    quoted = _LINE_BREAKS.search(text) or (
        "\n" not in text and ("<" in text or convert_python_literal(text) is not None)
    )
    style = '"' if quoted else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)


def _dump_yaml(arguments: dict[str, Any]) -> str:
    """Render arguments as YAML, one line for each plain value; an empty string if there are none."""
    if not arguments:
        return ""
    return str(yaml.dump(arguments, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=float("inf")))


YAML_XML = YamlXml(
    name="yaml_xml",
    shape="X4",
    models="any model under the ai-sdk middleware's YAML prompt",
    source="packages/parser of minpeter/ai-sdk-tool-call-middleware",
    result_template="<tool_response><tool_name>{name}</tool_name><result>{content}</result></tool_response>",
)

DIALECTS: Sequence[Dialect] = (YAML_XML,)
