"""Streaming Python call expressions: find where a call begins, and read the keywords of its arguments.

get_weather(city="Oslo", days=-2, tags=('a', 'b'))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from callwright.text.boundaries import BoundaryKind, CallBoundary, is_escaped
from callwright.text.json_stream import RepairSink
from callwright.text.lookahead import Lookahead
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.text.string_notation import PYTHON_QUOTES, Notation, StringEndRule

__all__ = ["PYTHON_NOTATION", "CallHead", "PythonBoundary", "build_argument_end_rule", "peek_call", "take_keyword"]

PYTHON_NOTATION = Notation(PYTHON_QUOTES, StringEndRule(")]}", compile_markers(*",)]}"), ":", allows_colon=True))
"""Python's literals."""

_CALL = re.compile(r"(print\()?([^\W\d][\w.-]{0,255})\(").match
_OPEN_CALL = re.compile(r"(?:print\()?[\w.-]{0,256}\Z").match
_WORD = re.compile(r"[\w$.+-]*")
_SPACE = re.compile(r"\s*")
_MAX_WORD_LENGTH = 256


class CallHead(NamedTuple):
    """The head of a call: its name, and `print(` where its result is printed."""

    name: str
    wrapper: str

    @property
    def length(self) -> int:
        """The length of the head, including its opening bracket."""
        return len(self.wrapper) + len(self.name) + 1


@dataclass(frozen=True)
class PythonBoundary(CallBoundary):
    """The boundaries of calls in Python syntax. A line that begins with one of `line_calls` begins another call."""

    line_calls: tuple[str, ...] = ()

    def is_call_ahead(self, source: Source, offset: int, opener: str) -> ParseStep[bool]:
        ahead = Lookahead(source, offset)
        char = yield from ahead.skip_space()
        if char == "[":
            ahead.offset += 1
            char = yield from ahead.skip_space()
        if char == "{":
            return (yield from super().is_call_ahead(source, offset, opener))
        head = yield from peek_call(source, ahead.offset)
        if head is None or not self.offers(head.name):
            return False
        return not (yield from is_escaped(source, ahead.offset + head.length, "\"')"))

    def peek_line(self, source: Source, offset: int) -> ParseStep[BoundaryKind]:
        kind = yield from super().peek_line(source, offset)
        if kind or not self.line_calls:
            return kind
        return "open" if (yield from Lookahead(source, offset).accept(compile_markers(*self.line_calls))) else ""


def peek_call(source: Source, offset: int = 0) -> ParseStep[CallHead | None]:
    """Return the head of the call `offset` characters ahead, without consuming anything; None if there is none."""
    while not source.closed and _OPEN_CALL(source.text, source.position + offset):
        yield
    match = _CALL(source.text, source.position + offset)
    return CallHead(match[2], match[1] or "") if match else None


def build_argument_end_rule(*after: str) -> StringEndRule:
    """Build the rule for where a string argument can end, if one of `after` may follow the call."""
    return StringEndRule(")", compile_markers(*after), "=:")


def take_keyword(source: Source, note: RepairSink) -> ParseStep[tuple[str, str]]:
    """Consume `NAME=` and the space around it. Return the name, or the consumed text of a value without a name."""
    word = yield from source.take_while(_WORD, _MAX_WORD_LENGTH)
    space = yield from source.take_while(_SPACE, _MAX_WORD_LENGTH)
    sign = yield from source.peek()
    if not word or sign not in ("=", ":"):
        return "", word + space
    if sign == ":":
        note("colon_for_equals", f"':' was written instead of '=' after the keyword {word!r}")
    source.position += 1
    yield from source.skip_space()
    return word, ""
