"""Lookahead: read the following text without consuming it, where one character does not decide what the text means.

The offset is relative to the source's position, so it stays valid when more text arrives. No character is examined
twice, however small the chunks are.
"""

from __future__ import annotations

import re

from callwright.input_limits import MAX_SPACE_LENGTH
from callwright.text.source import MarkerSet, ParseStep, Source

__all__ = ["Lookahead"]

_WORD = re.compile(r"[\w$.+-]*")
_MAX_WORD_LENGTH = 256


class Lookahead:
    """A second read position, `offset` characters after that of the source."""

    __slots__ = ("offset", "source")

    def __init__(self, source: Source, offset: int = 0) -> None:
        self.source = source
        self.offset = offset

    def peek(self) -> ParseStep[str]:
        """Return the next character; empty at the end."""
        source = self.source
        while source.position + self.offset >= len(source.text):
            if source.closed:
                return ""
            yield
        return source.text[source.position + self.offset]

    def skip_space(self) -> ParseStep[str]:
        """Skip white space and return the character after it; empty at the end, and a space if there is more white
        space than anybody writes."""
        end = self.offset + MAX_SPACE_LENGTH
        while (char := (yield from self.peek())).isspace() and self.offset < end:
            self.offset += 1
        return char

    def accept(self, markers: MarkerSet) -> ParseStep[str]:
        """Skip the marker that stands here and return it; empty if there is none."""
        source = self.source
        while not source.closed and markers.is_prefix_at(source.text, source.position + self.offset):
            yield
        start = source.position + self.offset
        end = markers.match_at(source.text, start)
        if end < 0:
            return ""
        self.offset += end - start
        return source.text[start:end]

    def take_word(self) -> ParseStep[str]:
        """Skip a name or a number and return it, including dots and dashes."""
        source = self.source
        while True:
            start = source.position + self.offset
            end = _WORD.match(source.text, start, start + _MAX_WORD_LENGTH).end()  # type: ignore[union-attr]
            if end < len(source.text) or source.closed or end - start == _MAX_WORD_LENGTH:
                self.offset += end - start
                return source.text[start:end]
            yield
