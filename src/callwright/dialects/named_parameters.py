"""Parameters that name themselves: `<PREFIXparameter name="KEY">VALUE</PREFIXparameter>`, values as raw text.

    <atem:parameter name="city">Oslo</atem:parameter>

The part that the two framed families with tags in their bodies share.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property

from callwright.arguments import Arguments
from callwright.dialects.base import raw_text
from callwright.text.json_stream import Note
from callwright.text.source import Reading, Source, ignore, marks
from callwright.text.tags import RawValue

__all__ = ["NamedParameters", "read_name"]

_LONGEST_NAME = 256
_NAMES = {'"': re.compile(r'[^"\n]*'), "'": re.compile(r"[^'\n]*"), "": re.compile(r"[^>\s]*")}
_TO_CLOSE = re.compile(r"[^<>\n]*")


@dataclass(frozen=True)
class NamedParameters:
    """Parameter tags with this prefix.

    `around` are the tags that may follow the last one, from the inside out; `begins` are those that begin a call,
    `over` those that end one.
    """

    prefix: str
    around: tuple[str, ...]
    begins: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    inset: str = ""
    """The newline that frames each value, if the family writes one."""

    @property
    def open(self) -> str:
        return f"<{self.prefix}parameter name="

    @property
    def close(self) -> str:
        return f"</{self.prefix}parameter>"

    def read(self, source: Source, arguments: Arguments) -> Reading[bool]:
        """Read all parameters that stand here; False when one of them breaks off."""
        while True:
            yield from source.skip_space()
            if not (yield from source.accept(marks(self.open))):
                return True
            source.keep()
            key = yield from read_name(source, arguments.call.note)
            if key is None:
                return False
            source.settle()
            if not (yield from self.read_value(source, arguments, key)):
                return False

    def skip(self, source: Source) -> Reading[None]:
        """Pass over all parameters that stand here, whatever their values hold."""
        while True:
            yield from source.skip_space()
            if not (yield from source.accept(marks(self.open))):
                return
            yield from read_name(source, ignore)
            yield from self._value.copy(source, ignore)

    def read_value(self, source: Source, arguments: Arguments, key: str) -> Reading[bool]:
        """Read one value with its closing tag; False when it breaks off."""
        yield from source.skip_newlines(len(self.inset))
        parameter = arguments.parameter(key)
        closed = yield from self._value.copy(source, parameter.write, arguments.misses)
        if closed is None:
            return False
        parameter.end()
        if not closed.endswith(self.close):
            arguments.call.note("missing_close", f"{self.close} was missing after a value")
        return True

    @cached_property
    def _value(self) -> RawValue:
        return RawValue(self.close, self.around, (self.open,), self.inset, begins=self.begins, over=self.over)

    def render(self, arguments: str) -> list[str]:
        """A call's arguments, each between its tags."""
        return [
            f'{self.open}"{key}">{self.inset}{raw_text(value)}{self.inset}{self.close}'
            for key, value in json.loads(arguments).items()
        ]


def read_name(source: Source, note: Note) -> Reading[str | None]:
    """The value of a name attribute and the end of its tag; quotes may be missing. None: the tag does not close."""
    quote = yield from source.accept(marks('"', "'"))
    name = yield from source.take_while(_NAMES[quote], _LONGEST_NAME)
    if quote:
        yield from source.accept(marks(quote))
        more = yield from source.take_while(_TO_CLOSE, _LONGEST_NAME)
        if more.strip():
            note("dropped_attribute", more)
    return name if (yield from source.accept(marks(">"))) else None
