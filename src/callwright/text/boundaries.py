"""Boundaries of calls: where a call that is not finished must have ended.

A family's closing markers end a call, and so does the opening of another one. Inside a string a marker may be quoted:
a string with a raw newline in it is damaged anyway, so another call that begins after that newline ends it; a closing
marker only makes the string doubtful, until its own end follows, or another call, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from callwright.input_limits import MAX_SPACE_LENGTH
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers

__all__ = ["BoundaryKind", "CallBoundary", "has_tool_name", "is_escaped"]

BoundaryKind = Literal["", "close", "open"]
"""What a marker is: nothing, the end of a call, or the opening of another one."""

_WORD = re.compile(r"[\w.-]+")
_SPACE = re.compile(rf"[ \t\r]{{0,{MAX_SPACE_LENGTH}}}")
_BARE_CALL = re.compile(
    r"""\[?\s{0,200}\{\s{0,200}"(?:name|tool|function|tool_name)"\s{0,200}:\s{0,200}"([\w.-]+)\""""
).match
_OPEN_BARE_CALL = re.compile(
    r"""(?:\[\s{0,200})?(?:\{\s{0,200}(?:"(?:[a-z_]{0,9}(?:"\s{0,200}(?::\s{0,200}(?:"[\w.-]{0,200})?)?)?)?)?)?\Z"""
).match
_MAX_NAME_DISTANCE = 200
_MAX_NAME_WORDS = 10
_NEVER = "\x00"
"""A marker that no text has, for families without any."""


@dataclass(frozen=True)
class CallBoundary:
    """The markers that end a call of one family, and those that begin another.

    `line_closers` end one too, and `line_openers` begin one, but only on a new line. An opener counts if the name of a
    tool that `offers` accepts follows; those in `breaks` end a call even if none does. `line_ends` end a call inside a
    string, where a raw newline follows them. If the family `nests`, its strings are raw, and may quote calls as they
    are.
    """

    closers: tuple[str, ...]
    openers: tuple[str, ...]
    line_closers: tuple[str, ...]
    line_openers: tuple[str, ...]
    offers: Callable[[str], bool]
    last_brackets: int = 0
    """How many brackets at the end of a line end a call, if the family has no markers for that; otherwise 0."""
    line_ends: tuple[str, ...] = ()
    nests: bool = False
    breaks: tuple[str, ...] = ()

    @property
    def has_lines(self) -> bool:
        """Whether some markers count only on a new line."""
        return bool(self.line_closers or self.line_openers)

    @cached_property
    def _markers(self) -> MarkerSet:
        return compile_markers(*self.closers, *self.openers, _NEVER)

    @cached_property
    def _line_markers(self) -> MarkerSet:
        return compile_markers(*self.closers, *self.openers, *self.line_closers, *self.line_openers)

    @cached_property
    def find_in_string(self) -> Callable[[str, int], re.Match[str] | None]:
        """Find the next character of a JSON string that needs attention."""
        return _compile_stops('"\\\\\\x00-\\x1f', self.closers + self.openers)

    @cached_property
    def find_in_json(self) -> Callable[[str, int], re.Match[str] | None]:
        """Find the next structural character of JSON, or one that may begin a marker."""
        return _compile_stops("\"'{}\\[\\],\n", self.closers + self.openers)

    def peek(self, source: Source, offset: int = 0, *, on_line: bool = False) -> ParseStep[BoundaryKind]:
        """Return what begins `offset` characters ahead: a closing marker, the opening of another call, or neither."""
        markers = self._line_markers if on_line else self._markers
        while not source.closed and markers.is_prefix_at(source.text, source.position + offset):
            yield
        start = source.position + offset
        end = markers.match_at(source.text, start)
        marker = source.text[start:end] if end >= 0 else ""
        if not marker or source.is_literal(marker, start):
            return ""
        if marker in (*self.closers, *self.line_closers):
            return "close"
        if (yield from self.is_call_ahead(source, end - source.position, marker)):
            return "open"
        return "close" if marker in self.breaks else ""

    def is_call_ahead(self, source: Source, offset: int, opener: str) -> ParseStep[bool]:
        """Whether a call of an offered tool follows an opener that ends `offset` characters ahead."""
        if opener in ("{", "["):
            return (yield from self._is_bare_call(source, offset - len(opener)))
        named = yield from has_tool_name(source, offset, self.offers)
        return named and not (yield from _is_quoted(source, offset))

    def _is_bare_call(self, source: Source, offset: int) -> ParseStep[bool]:
        """Whether a JSON object begins here whose first member names a tool."""
        while True:
            start = source.position + offset
            match = _BARE_CALL(source.text, start)
            if match:
                return self.offers(match.group(1))
            if source.closed or not _OPEN_BARE_CALL(source.text, start):
                return False
            yield

    def peek_line(self, source: Source, offset: int) -> ParseStep[BoundaryKind]:
        """Return what begins the line that starts `offset` characters ahead, white space aside."""
        while True:
            start = source.position + offset
            end = _SPACE.match(source.text, start).end()  # type: ignore[union-attr]  # it matches the empty string
            if end < len(source.text) or source.closed:
                return (yield from self.peek(source, end - source.position, on_line=True))
            yield


@lru_cache(maxsize=256)
def _compile_stops(chars: str, markers: tuple[str, ...]) -> Callable[[str, int], re.Match[str] | None]:
    first = "".join(sorted({re.escape(marker[0]) for marker in markers}))
    return re.compile(f"[{chars}{first}]").search


def is_escaped(source: Source, offset: int, quotes: str = '"') -> ParseStep[bool]:
    """Whether the first quote from `offset` on is escaped: a string quotes a call, then."""
    while True:
        start = source.position + offset
        quote = re.compile(f"[{quotes}]").search(source.text, start, start + _MAX_NAME_DISTANCE)
        if quote:
            return source.text[quote.start() - 1] == "\\"
        if source.closed or len(source.text) - start >= _MAX_NAME_DISTANCE:
            return False
        yield


def _is_quoted(source: Source, offset: int) -> ParseStep[bool]:
    """Whether the first quote from `offset` on is escaped, or ends a string: a string quotes a call, then."""
    while True:
        text, start = source.text, source.position + offset
        quote = text.find('"', start, start + _MAX_NAME_DISTANCE)
        if quote >= 0 and text[quote - 1] == "\\":
            return True
        after = text[quote + 1 : quote + 1 + _MAX_NAME_DISTANCE].lstrip() if quote >= 0 else ""
        if after or source.closed or len(text) - start >= 2 * _MAX_NAME_DISTANCE:
            return after[:1] in (",", "}", "]")
        if quote < 0 and len(text) - start >= _MAX_NAME_DISTANCE:
            return False
        yield


def has_tool_name(source: Source, offset: int, offers: Callable[[str], bool]) -> ParseStep[bool]:
    """Whether one of the first words from `offset` on is the name of a tool that the request has."""
    while True:
        start = source.position + offset
        window = source.text[start : start + _MAX_NAME_DISTANCE]
        is_whole = source.closed or len(window) == _MAX_NAME_DISTANCE
        paragraph, gap, _ = window.lstrip().partition("\n\n")
        is_whole = is_whole or bool(gap)
        words = _WORD.findall(paragraph if is_whole else paragraph.rstrip("_.-")[:-1])
        if any(offers(word.removeprefix("functions.")) for word in words[:_MAX_NAME_WORDS]):
            return True
        if is_whole or len(words) > _MAX_NAME_WORDS:
            return False
        yield
