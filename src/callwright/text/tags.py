"""Raw values between tags: written with no escaping, so that only position tells a closing tag from data.

A closing tag counts when the tags after it continue the structure in order: the next value opens,
or what encloses it closes, outward and never inward again, or the text ends. A tag quoted inside a
value is followed by other text, or by tags that close what would be closed already. A value that
quotes the beginning of a call, up to the opening of a value in it, may quote all of it: there a next
value must be one that is expected, and after the outermost tag only another call or the end may come,
until the quoted call's own outermost tag has gone by.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from callwright.text.source import Emit, Marks, Reading, Source, marks

__all__ = ["RawValue"]

_KEY = re.compile(r"""\s*["']?([^<>"'=\s]+)["'<>\s]""")
_LONGEST_KEY = 256
_ELEMENT = re.compile(rf"<([A-Za-z_][\w.-]{{0,{_LONGEST_KEY}}})>")
_UNDECIDED = re.compile(rf"<(?:[A-Za-z_][\w.-]{{0,{_LONGEST_KEY}}})?\Z")


@dataclass(frozen=True)
class RawValue:
    """How a raw value ends.

    `close` ends it, framed by `inset` (a newline for some families). `around` are the tags that close
    what encloses it, from the inside out. `opens` are those that open the next value; in an `inline`
    family they need no line of their own to end a value whose closing tag is missing. `begins` are
    those that open a call; `over` are those that end one, if not the outermost of `around` does. `loose`
    is its closing tag without the prefix that belongs there, for the models that forget it. With `others`,
    whole elements of any name may stand between it and the next tag.
    """

    close: str
    around: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    inset: str = ""
    inline: bool = False
    begins: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    loose: str = ""
    others: bool = False

    def copy(self, source: Source, emit: Emit, expects: Callable[[str], bool] | None = None) -> Reading[str | None]:
        """Emit the value and return the tag that ended it; None when the text ended first.

        Its own closing tag is consumed. Where that is missing, an enclosing tag on a line of its own
        ends the value too, or the opening of a next one whose key `expects` accepts; these are left.
        """
        quoting = nested = False
        while True:
            text, position = source.text, source.position
            start, end = self._ends.find(text, position, source.closed)
            if start > position:
                emit(text[position:start])
                source.position = start
            if end > start:
                tag = text[start:end]
                bare = tag.lstrip("\n")
                if bare in self.begins:
                    quoting = True
                elif bare in self.opens and quoting:
                    # Where any name may follow an opening, a slash makes it that of a closing tag.
                    nested = nested or not (tag.endswith("<") and text.startswith("/", end))
                elif tag in self._over:
                    # The call that the value quotes is over.
                    quoting = nested = False
                elif not source.is_literal(bare, end - len(bare)) and (
                    yield from self._counts(source, tag, expects, nested=nested, quoting=quoting)
                ):
                    if self._is_own(tag):
                        source.position += len(tag)
                    return tag
                # After the newline of what would have been an implied end, the real one may stand.
                data = tag[:1] if tag[0] == "\n" and not self._is_own(tag) else tag
                emit(data)
                source.position += len(data)
            elif source.closed:
                return None
            else:
                yield

    @cached_property
    def _ends(self) -> Marks:
        implied = (f"\n{tag}" for tag in (*self.around[:1], *self.opens))
        opens = self.opens if self.inline or self.begins else ()
        own = (self.close, self.inset + self.close, self.loose or self.close)
        return marks(*own, *implied, *opens, *self.begins, *(self._over if self.begins else ()))

    @property
    def _over(self) -> tuple[str, ...]:
        return self.over or self.around[-1:]

    def _is_own(self, tag: str) -> bool:
        return tag.endswith(self.close) or tag == self.loose

    @cached_property
    def _chain(self) -> dict[str, int]:
        return {tag: level for level, tag in reversed(tuple(enumerate((self.close, *self.around))))}

    @cached_property
    def _structure(self) -> Marks:
        return marks(*self._chain, *self.opens, *self.begins)

    def _counts(
        self, source: Source, tag: str, expects: Callable[[str], bool] | None, *, nested: bool, quoting: bool
    ) -> Reading[bool]:
        """Whether the tag at the source's position is structure rather than data."""
        if self._is_own(tag):
            return (yield from self._continues(source, len(tag), 0, expects if nested else None, nested))
        if tag.lstrip("\n") in self.opens:
            apart = self.inline or tag[0] == "\n"
            return apart and expects is not None and (yield from self._opens(source, len(tag), expects))
        if self.begins and not quoting:
            # The call closes without its value, and the next call of the same block begins.
            at = yield from self._look(source, len(tag))
            if marks(*self.begins).at(source.text, at) >= 0:
                return True
        return (yield from self._continues(source, len(tag), 1, expects if nested else None, nested))

    def _continues(
        self, source: Source, ahead: int, level: int, expects: Callable[[str], bool] | None, nested: bool
    ) -> Reading[bool]:
        """Whether the tags from `ahead` on continue the structure outward from `level`."""
        outermost = len(self.around)
        first = True
        before = ""
        while True:
            at = yield from self._look(source, ahead)
            end = self._structure.at(source.text, at)
            tag = source.text[at:end] if end >= 0 else ""
            ahead = end - source.position
            if tag in self.opens:
                return expects is None or (yield from self._opens(source, ahead, expects))
            if not tag and self.others and (size := (yield from self._other(source, at - source.position))):
                ahead = size
                continue
            if tag not in self._chain:
                # Another call, text, or the end: fine after the outermost tag, or where nothing comes at all.
                if at == len(source.text):
                    return True
                begun = bool(tag) or before in self.begins
                return (not first or level == outermost) and (begun or not nested)
            if self._chain[tag] <= level:
                return False
            level = self._chain[tag]
            before = tag
            first = False

    def _other(self, source: Source, ahead: int) -> Reading[int]:
        """Where the element that opens `ahead` of here ends, counted from here; 0 when none does."""
        searched = 0
        while True:
            start = source.position + ahead
            opening = _ELEMENT.match(source.text, start)
            if opening:
                close = f"</{opening.group(1)}>"
                end = source.text.find(close, max(start + searched, opening.end()))
                if end >= 0:
                    return end + len(close) - source.position
                searched = max(len(source.text) - start - len(close), 0)
            if source.closed or (not opening and not _UNDECIDED.match(source.text, start)):
                return 0
            yield

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
