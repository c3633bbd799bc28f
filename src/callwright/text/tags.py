"""Raw values between tags: written with no escaping, so that only position tells a closing tag from data.

A closing tag counts when the tags after it continue the structure in order: the next value opens,
or what encloses it closes, outward and never inward again, or the text ends. A tag quoted inside a
value is followed by other text, or by tags that close what would be closed already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from callwright.text.source import Emit, Marks, Reading, Source, marks

__all__ = ["RawValue"]

_KEY = re.compile(r"""\s*["']?([^<>"'=\s]+)["'>\s]""")
_LONGEST_KEY = 256


@dataclass(frozen=True)
class RawValue:
    """How a raw value ends.

    `close` ends it, framed by `inset` (a newline for some families). `around` are the tags that close
    what encloses it, from the inside out. `opens` are those that open the next value. `loose` is its
    closing tag without the prefix that belongs there, for the models that forget it.
    """

    close: str
    around: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    inset: str = ""
    loose: str = ""

    def copy(self, source: Source, emit: Emit, expects: Callable[[str], bool] | None = None) -> Reading[str | None]:
        """Emit the value and return the tag that ended it; None when the text ended first.

        Its own closing tag is consumed. Where that is missing, an enclosing tag on a line of its own
        ends the value too, or the opening of a next one whose key `expects` accepts; these are left.
        """
        while True:
            text, position = source.text, source.position
            start, end = self._ends.find(text, position, source.closed)
            if start > position:
                emit(text[position:start])
                source.position = start
            if end > start:
                tag = text[start:end]
                literal = bool(source.tokens_known) and source.is_literal(tag.lstrip("\n"), end - len(tag.lstrip("\n")))
                if not literal and (yield from self._counts(source, tag, expects)):
                    if self._is_own(tag):
                        source.position += len(tag)
                    return tag
                # After the newline of what would have been an implied end, the real one may stand.
                data = tag if self._is_own(tag) else tag[:1]
                emit(data)
                source.position += len(data)
            elif source.closed:
                return None
            else:
                yield

    @cached_property
    def _ends(self) -> Marks:
        implied = (f"\n{tag}" for tag in (*self.around[:1], *self.opens))
        return marks(self.close, self.inset + self.close, self.loose or self.close, *implied)

    def _is_own(self, tag: str) -> bool:
        return tag.endswith(self.close) or tag == self.loose

    @cached_property
    def _chain(self) -> dict[str, int]:
        return {tag: level for level, tag in reversed(tuple(enumerate((self.close, *self.around))))}

    @cached_property
    def _structure(self) -> Marks:
        return marks(*self._chain, *self.opens)

    def _counts(self, source: Source, tag: str, expects: Callable[[str], bool] | None) -> Reading[bool]:
        """Whether the tag at the source's position is structure rather than data."""
        if self._is_own(tag):
            return (yield from self._continues(source, len(tag), 0))
        if tag[1:] in self.opens:
            return expects is not None and (yield from self._opens(source, len(tag), expects))
        return (yield from self._continues(source, len(tag), 1))

    def _continues(self, source: Source, ahead: int, level: int) -> Reading[bool]:
        """Whether the tags from `ahead` on continue the structure outward from `level`."""
        outermost = len(self.around)
        first = True
        while True:
            at = yield from self._look(source, ahead)
            end = self._structure.at(source.text, at)
            if end < 0:
                # Text, or the end of it: fine after the outermost tag, or where nothing comes at all.
                return at == len(source.text) or not first or level == outermost
            tag = source.text[at:end]
            if tag in self.opens:
                return True
            if self._chain[tag] <= level:
                return False
            level = self._chain[tag]
            ahead = end - source.position
            first = False

    def _look(self, source: Source, ahead: int) -> Reading[int]:
        """The position of the next word from `ahead` on, once it is clear which tag it is, if any."""
        while True:
            at = source.position + ahead
            while at < len(source.text) and source.text[at].isspace():
                at += 1
            if source.closed or not self._structure.undecided(source.text, at):
                return at
            yield

    def _opens(self, source: Source, ahead: int, expects: Callable[[str], bool]) -> Reading[bool]:
        """Whether the tag that opens here carries a key that is expected."""
        while True:
            key = _KEY.match(source.text, source.position + ahead)
            if key:
                return expects(key.group(1))
            if source.closed or len(source.text) - source.position - ahead > _LONGEST_KEY:
                return False
            yield
