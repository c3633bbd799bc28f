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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import yaml

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import Dialect, open_call
from callwright.dialects.elements import ToolNameTags
from callwright.model import ToolCall
from callwright.schema import Schema, Toolbox, text_to_json
from callwright.text.closing_tags import FOREIGN_CLOSERS, MAX_MISTAKES, count_mistakes
from callwright.text.json_stream import RepairSink, escape_json
from callwright.text.repair import convert_python_literal
from callwright.text.source import ParseStep, Source, TextBuffer, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "YamlXml"]

_SPACE = re.compile(r"(?:\s|#[^\n]*(?:\n|\Z))*")
_MAX_SPACE_LENGTH = 4096
"""How much white space and comments may precede the first key."""
_KEY = re.compile(r"[\w.$\"'-]*")
_MAX_KEY_LENGTH = 256
_KEY_LINE = re.compile(r"[ \t]*([\w.$-]+):[ \t]*(.*)")
_LINE = re.compile(r"[^\n]*")
_MAPPING_LINE = re.compile(r"""(?:[^\s<]|"[^"]*"|'[^']*')[^<]*?:(?:\s|\Z)|[-#}\]{\[,"']|\.\.\.""").match
"""A line that may stand at the indentation of a mapping: a key, an item, a comment, the rest of a flow value."""
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
        body = _YamlBody(name, indent, "\n" not in space, arguments, turn.tools)
        text, ending = yield from body.read_text(source, " " * indent + line)
        if ending == "missing" and arguments.call.schema.required <= _list_keys(text, tool.schema):
            arguments.call.add_repair("missing_close", f"{close} was missing after a call")
            ending = "close"
        if ending == "close" and _write_arguments(text, arguments):
            return ""
        if ending == "cut" or source.may_be_cut:
            arguments.call.end_truncated()
        else:
            arguments.call.end_broken()
        turn.add_malformed(text, "cut" if ending == "cut" else "the YAML of the arguments cannot be read")
        return ""

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(f"<{call.name}>\n{_dump_yaml(json.loads(call.arguments))}</{call.name}>" for call in calls)


def _can_begin_arguments(key: str, schema: Schema) -> bool:
    """Whether a body that starts like this can be the tool's arguments: a declared key, or a brace."""
    return not key or key.strip("\"'") in schema.properties


_Ending = Literal["close", "missing", "broken", "cut"]


@dataclass
class _YamlBody:
    """The text between the tags. Its end depends on the line of the closing tag."""

    name: str
    indent: int
    inline: bool
    """Whether the body is still on the line of the opening tag."""
    arguments: ArgumentsWriter
    tools: Toolbox
    is_checked: bool = False
    """Whether a line that belongs to no mapping was found, and the YAML before it was not complete."""

    def read_text(self, source: Source, line: str) -> ParseStep[tuple[str, _Ending]]:
        """Read the body, whose beginning `line` is consumed.

        Return it, and how it ended: with its closing tag; before a line that belongs to no mapping; where the same call
        begins again, so that this one is broken; or with the text.
        """
        buffer = TextBuffer(source)
        buffer.add(line)
        close = f"</{self.name}>"
        ends = compile_markers("\n", close)
        last = ""
        while True:
            piece, marker = yield from source.take_to(ends)
            line += piece
            if marker == close and (self.inline or (yield from self._is_closing_tag(source, line, last))):
                source.end_hold()
                buffer.add(piece)
                return buffer.get_text(), "close"
            is_whole = marker == "\n" or (marker is None and not source.may_be_cut)
            if is_whole and not self.inline and self._is_outside(line, buffer.get_text):
                source.rewind(is_long=False)
                yield from self._skip_wrong_closer(source)
                is_repeated = line.strip().startswith(f"<{self.name}>")
                return buffer.get_text(), "broken" if is_repeated else "missing"
            buffer.add(piece)
            if marker is None:
                source.end_hold()
                return buffer.get_text(), "cut"
            buffer.add(marker)
            if marker == "\n":
                source.end_hold()
                last = line if line.strip() else last
                line = ""
                self.inline = False
                source.start_hold()
            else:
                line += marker

    def _is_closing_tag(self, source: Source, line: str, last: str) -> ParseStep[bool]:
        """Whether the closing tag after `line` ends the body; `last` is the line before it."""
        words = line.lstrip()
        if len(line) - len(words) > self.indent:
            # An indented tag is part of a block scalar, unless the value before it is complete.
            value = _KEY_LINE.fullmatch(last.rstrip("\r"))
            is_plain = value and value.group(2).strip() and value.group(2)[0] not in "|>"
            if words or not is_plain or len(last) - len(last.lstrip()) > self.indent:
                return False
        return not words or (yield from source.peek()) in ("", "\n", "\r")

    def _is_outside(self, line: str, get_text: Callable[[], str]) -> bool:
        """Whether a line belongs to no mapping, although the YAML before it is complete; or begins another call."""
        words = line.strip()
        if not words or len(line) - len(line.lstrip()) > self.indent or _MAPPING_LINE(words):
            return False
        if words.startswith("<") and words[1:].partition(">")[0].rstrip("/ ") in self.tools:
            return True
        if self.is_checked:
            return False
        self.is_checked = not _is_mapping(get_text(), self.arguments.call.schema)
        return not self.is_checked

    def _skip_wrong_closer(self, source: Source) -> ParseStep[None]:
        """Consume a closing tag that is misspelt, cut short or of another family."""
        line = yield from source.take_while(_LINE, _MAX_KEY_LENGTH)
        tag = line.strip()
        close = f"</{self.name}>"
        if tag in FOREIGN_CLOSERS or (tag.startswith("</") and count_mistakes(tag, close) <= MAX_MISTAKES):
            self.arguments.call.add_repair("misspelt_tag", f"{tag} was written instead of {close}")
        else:
            source.position -= len(line)


def _is_mapping(body: str, schema: Schema) -> bool:
    try:
        return bool(_parse_members(body, schema, ignore))
    except (yaml.YAMLError, ValueError, OverflowError):
        return False


def _list_keys(body: str, schema: Schema) -> set[str]:
    """Return the keys of a body; none if it is no mapping."""
    try:
        return {key for key, _ in _parse_members(body, schema, ignore)}
    except (yaml.YAMLError, ValueError, OverflowError):
        return set()


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
