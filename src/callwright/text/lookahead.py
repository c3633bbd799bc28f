"""A look at what comes next, without consuming it: where one character does not tell what a text means.

The place is kept relative to the source's position, so that it survives the arrival of more text.
Nothing is looked at twice, however slowly the text comes.
"""

from __future__ import annotations

import re

from callwright.text.source import MarkerSet, ParseStep, Source

__all__ = ["Lookahead"]

_WORD = re.compile(r"[\w$.+-]*")
_MAX_WORD_LENGTH = 256


class Lookahead:
    """A second position, `offset` characters after the source's own."""

    __slots__ = ("offset", "source")

    def __init__(self, source: Source, offset: int = 0) -> None:
        self.source = source
        self.offset = offset

    def peek(self) -> ParseStep[str]:
        """The next character, empty at the end."""
        source = self.source
        while source.position + self.offset >= len(source.text):
            if source.closed:
                return ""
            yield
        return source.text[source.position + self.offset]

    def skip_space(self) -> ParseStep[str]:
        """Go past white space; the character after it, empty at the end."""
        while (char := (yield from self.peek())).isspace():
            self.offset += 1
        return char

    def accept(self, markers: MarkerSet) -> ParseStep[str]:
        """Go past the marker that stands here and return it; the empty string when none does."""
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
        """Go past a name or a number and return it, with the dots and dashes that names have."""
        source = self.source
        while True:
            start = source.position + self.offset
            end = _WORD.match(source.text, start, start + _MAX_WORD_LENGTH).end()  # type: ignore[union-attr]  # may be empty
            if end < len(source.text) or source.closed or end - start == _MAX_WORD_LENGTH:
                self.offset += end - start
                return source.text[start:end]
            yield
