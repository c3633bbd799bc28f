"""Parameters with a name attribute: `<PREFIXparameter name="KEY">VALUE</PREFIXparameter>`, values as raw text.

    <atem:parameter name="city">Oslo</atem:parameter>

Shared by the two framed families with tags in their bodies.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import format_raw_value
from callwright.text.json_stream import RepairSink
from callwright.text.raw_values import RawValueRule
from callwright.text.source import ParseStep, Source, compile_markers, ignore

__all__ = ["NamedParameters", "read_name_attribute"]

_MAX_NAME_LENGTH = 256
_NAME_PATTERNS = {'"': re.compile(r'[^"\n]*'), "'": re.compile(r"[^'\n]*"), "": re.compile(r"[^>\s]*")}
_TAG_REST = re.compile(r"[^<>\n]*")


@dataclass(frozen=True)
class NamedParameters:
    """Parameter tags with this prefix.

    `enclosing_tags` are the tags that may follow the last parameter, from the inside out; `call_tags` are those that
    begin a call, `call_closers` those that end one.
    """

    prefix: str
    enclosing_tags: tuple[str, ...]
    call_tags: tuple[str, ...] = ()
    call_closers: tuple[str, ...] = ()
    inset: str = ""
    """The newline that frames each value, if the family writes one."""
    follow_tags: tuple[str, ...] = ()
    """Words that begin the next message where its marker is missing."""

    @property
    def open(self) -> str:
        return f"<{self.prefix}parameter name="

    @property
    def close(self) -> str:
        return f"</{self.prefix}parameter>"

    def read_parameters(self, source: Source, arguments: ArgumentsWriter) -> ParseStep[bool]:
        """Read all parameters at the position; return False if one of them is incomplete."""
        while True:
            while (yield from source.accept_next(compile_markers(self.close))):
                arguments.call.add_repair("stray_marker", f"{self.close} closed nothing")
            yield from source.skip_space()
            if not (yield from source.accept(compile_markers(self.open))):
                return True
            source.start_capture()
            key = yield from read_name_attribute(source, arguments.call.add_repair)
            if key is None:
                return False
            source.drop_capture()
            if not (yield from self.read_value(source, arguments, key)):
                return False

    def skip_parameters(self, source: Source) -> ParseStep[None]:
        """Skip all parameters at the position, whatever their values contain."""
        while True:
            yield from source.skip_space()
            if not (yield from source.accept(compile_markers(self.open))):
                return
            yield from read_name_attribute(source, ignore)
            newline = yield from self._accept_inset(source)
            yield from self._value_rules[newline].copy_value(source, ignore)

    def read_value(self, source: Source, arguments: ArgumentsWriter, key: str) -> ParseStep[bool]:
        """Read one value with its closing tag; return False if it is incomplete."""
        newline = yield from self._accept_inset(source)
        parameter = arguments.start_parameter(key)
        closed = yield from self._value_rules[newline].copy_value(
            source, parameter.write, arguments.is_missing, arguments.call.has_tool
        )
        if closed is None:
            return False
        parameter.end()
        if not closed.endswith(self.close):
            arguments.call.add_repair("missing_close", f"{self.close} was missing after a value")
        return True

    def _accept_inset(self, source: Source) -> ParseStep[str]:
        """Consume and return the newline before a value, in a family that writes one."""
        return (yield from source.accept(compile_markers("\r\n", "\n"))) if self.inset else ""

    @cached_property
    def _value_rules(self) -> dict[str, RawValueRule]:
        """How a value ends, by the newline that it begins with."""
        return {
            begin: RawValueRule(
                self.close,
                self.enclosing_tags,
                (self.open,),
                inset,
                call_tags=self.call_tags,
                call_closers=self.call_closers,
                follow_tags=self.follow_tags,
            )
            for begin, inset in {"": self.inset, "\n": "\n", "\r\n": "\r\n"}.items()
        }

    def render_parameters(self, arguments: str) -> list[str]:
        """Render a call's arguments, each between its tags."""
        return [
            f'{self.open}"{key}">{self.inset}{format_raw_value(value)}{self.inset}{self.close}'
            for key, value in json.loads(arguments).items()
        ]


def read_name_attribute(source: Source, note: RepairSink) -> ParseStep[str | None]:
    """Read a name attribute, with or without quotes, and the end of its tag. Return None if the tag is not closed."""
    quote = yield from source.accept(compile_markers('"', "'"))
    name = yield from source.take_while(_NAME_PATTERNS[quote], _MAX_NAME_LENGTH)
    if quote:
        yield from source.accept(compile_markers(quote))
        more = yield from source.take_while(_TAG_REST, _MAX_NAME_LENGTH)
        if more.strip():
            note("dropped_attribute", more)
    return name if (yield from source.accept(compile_markers(">"))) else None
