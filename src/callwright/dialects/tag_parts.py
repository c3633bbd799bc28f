"""Parts of tag dialects: opening tags with attributes, the target of a parameter's value, elements.

    <｜DSML｜parameter name="days" string="false">

Attributes are read in any order, with or without quotes of any kind: MiniMax and dots omit quotes, leaked turns have
typographic ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from callwright.arguments import ArgumentsWriter, ParameterWriter
from callwright.schema import ANY_SCHEMA, Schema
from callwright.text.repair import PYTHON_REPAIR_KINDS, parse_json, repair_json
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers

__all__ = [
    "SPACE_GLYPHS",
    "TagHeader",
    "make_glyph_decoder",
    "open_parameter",
    "read_element_argument",
    "read_tag_header",
    "take_tag_text",
]

_HEADER = re.compile(r"[^<>]*")
_ATTRIBUTE = r"""[\sĠĊ]*([A-Za-z_]+)[\sĠ]*=[\sĠ]*("[^"]*"|'[^']*'|“[^”]*”|[^\s"'=ĠĊ]+)"""
_ATTRIBUTES = re.compile(rf"(?:{_ATTRIBUTE})*[\sĠĊ]*")
_EACH_ATTRIBUTE = re.compile(_ATTRIBUTE)
_MAX_HEADER_LENGTH = 512
_ELEMENT = re.compile(r"[\w.-]*")
SPACE_GLYPHS = "ĠĊ"
"""How byte-level tokenizers spell a space and a newline; seen where a server joins tokens without decoding them."""
_GLYPH_TABLE = str.maketrans(SPACE_GLYPHS, " \n")
_STRING_SCHEMA = Schema({"type": "string"})
_KNOWN_ATTRIBUTES = {
    "string": ("true", "false"),
    "type": ("string", "number", "integer", "boolean", "object", "array", "null"),
}
_WRAPPER_KEYS = frozenset({"arguments", "input", "properties"})
"""Parameters that models invent to hold all the real ones."""


@dataclass(frozen=True)
class TagHeader:
    """The attributes of an opening tag. `is_damaged`: there was no white space after the tag's name."""

    attributes: dict[str, str]
    is_damaged: bool
    is_empty: bool = False
    """Whether the tag closes itself."""

    def format_unknown_attributes(self, *names: str) -> str:
        """Return the attributes without a meaning, other than those with these names; usually none."""
        return ", ".join(
            f"{key}={value}"
            for key, value in self.attributes.items()
            if key not in names
            and value not in _KNOWN_ATTRIBUTES.get(key, ())
            and not (key == "index" and value.isdecimal())
        )


def read_tag_header(source: Source, end: str) -> ParseStep[TagHeader | None]:
    """Read the rest of an opening tag up to its end; return None if it is no tag."""
    text = yield from source.take_while(_HEADER, _MAX_HEADER_LENGTH)
    closed = yield from source.accept(compile_markers(end))
    is_empty = text.endswith("/") and end == ">"
    text = text.removesuffix("/") if is_empty else text
    if not closed or not _ATTRIBUTES.fullmatch(text):
        return None
    attributes = {key: value[1:-1] if value[0] in "\"'“" else value for key, value in _EACH_ATTRIBUTE.findall(text)}
    return TagHeader(attributes, bool(text) and not text[0].isspace(), is_empty)


def take_tag_text(source: Source) -> ParseStep[str]:
    """Return the text up to the next tag."""
    return (yield from source.take_while(_HEADER, _MAX_HEADER_LENGTH)).strip()


class _WrapperParameter:
    """A parameter that the tool does not declare and that may hold all of its arguments."""

    def __init__(self, arguments: ArgumentsWriter, key: str, kind: Schema) -> None:
        self._arguments = arguments
        self._key = key
        self._kind = kind
        self._parts = arguments.pending_values[key] = []

    def write(self, text: str) -> None:
        self._parts.append(text)

    def end(self) -> None:
        raw = "".join(self._arguments.pending_values.pop(self._key))
        repaired = repair_json(raw)
        inside = parse_json(repaired.text) if repaired else None
        if not isinstance(inside, dict) or not inside.keys() & self._arguments.call.schema.properties.keys():
            self._arguments.write_text(self._key, raw, self._kind)
            return
        self._arguments.call.add_repair("unwrapped_arguments", f"{self._key!r} contained all the arguments")
        for repair in repaired.repairs if repaired else ():
            if repair.kind not in PYTHON_REPAIR_KINDS:
                self._arguments.call.add_repair(repair.kind, repair.detail)
        for key, value in inside.items():
            self._arguments.write_json(key, json.dumps(value, ensure_ascii=False))


def open_parameter(
    arguments: ArgumentsWriter, key: str, attributes: dict[str, str]
) -> ParameterWriter | _WrapperParameter:
    """Return the writer for a parameter's value, given the type in its tag's attributes."""
    if attributes.get("string") == "true":
        kind = _STRING_SCHEMA
    else:
        kind = Schema({"type": attributes["type"]}) if "type" in attributes else ANY_SCHEMA
    if key in _WRAPPER_KEYS and key not in arguments.call.schema.properties:
        return _WrapperParameter(arguments, key, kind)
    return arguments.start_parameter(key, kind)


def make_glyph_decoder(write: TextSink) -> TextSink:
    """Return a sink that writes text with its glyphs decoded."""
    return lambda piece: write(piece.translate(_GLYPH_TABLE))


def read_element_argument(source: Source, arguments: ArgumentsWriter) -> ParseStep[bool]:
    """Read one argument whose tag has its name. The first closing tag ends it."""
    source.start_capture()
    if not (yield from source.accept_next(compile_markers("<"))):
        return False
    key = yield from source.take_while(_ELEMENT, _MAX_HEADER_LENGTH)
    if not key or not (yield from source.accept(compile_markers(">"))):
        return False
    source.drop_capture()
    parameter = arguments.start_parameter(key)
    if (yield from source.copy_until(MarkerSet((f"</{key}>",)), parameter.write)) is None:
        return False
    parameter.end()
    return True
