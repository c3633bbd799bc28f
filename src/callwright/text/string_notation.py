"""Strings and values in notations that do not quote like JSON: Python literals, Gemma's quote tokens.

    city='Oslo', note="say "hi"", tags=('a', "b"), code:<|"|>print(1)<|"|>

A string is emitted decoded while it arrives. A quote closes it only where the notation can continue after the quote:
models forget to escape quotes, and a wrong guess would end a value early and damage all that follow. Other values are
read to their end, and strings inside them become JSON; their type is decided by the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from callwright.text.bounded_strings import BoundedString, ClosingCheck
from callwright.text.json_stream import RepairSink, escape_json
from callwright.text.lookahead import Lookahead
from callwright.text.source import MarkerSet, ParseStep, Source, TextBuffer, TextSink, compile_markers

__all__ = ["PYTHON_QUOTES", "ClosingCheck", "Notation", "Quote", "StringEndRule"]

_LITERAL = re.compile(r"[+-]?[\d.]|(?:True|False|None|true|false|null)\Z").match
_VALUE = re.compile(
    r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z|(?:True|False|None|true|false|null)\Z|[\[({].*[\])}]\Z", re.S
).match
"""A value that is complete: a number, a constant, or anything in brackets."""
_PLAIN_QUOTES = compile_markers('"', "'")
_BRACKET_DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1, ",": 0}


@dataclass(frozen=True)
class Quote:
    """A mark that opens and closes strings."""

    mark: str
    literal: str = ""
    """What the mark means inside a string if it is a token of its own; otherwise it is an ordinary quote."""
    escapes: bool = True
    """Whether Python's escapes count."""
    unescaped_lines: bool = False
    """Whether a raw newline means that nothing is escaped: escapes after it do not count."""

    def copy_string(self, source: Source, emit: TextSink, note: RepairSink, closes: ClosingCheck) -> ParseStep[bool]:
        """Emit the inside of a string whose opening mark is consumed, and consume the closing mark.

        Return False if the text ended inside the string.
        """
        return (yield from BoundedString(self, source, emit, note, closes).copy())


PYTHON_QUOTES = tuple(Quote(mark) for mark in ('"""', "'''", '"', "'"))


@dataclass(frozen=True)
class StringEndRule:
    """Where a string can end: what may follow its closing quote, white space aside."""

    brackets: str
    """Brackets that may close what encloses the string."""
    after: MarkerSet
    """What may follow such a bracket, besides the end of the text."""
    key_signs: str
    """What follows the word after a comma, if that word is the next key."""
    allows_positional: bool = True
    """Whether values without a key may follow a comma."""
    allows_colon: bool = False
    """Whether the string may be the key of a dictionary."""
    quotes: MarkerSet = _PLAIN_QUOTES
    """Quotes that may open the next value or enclose the next key."""
    inner_markers: MarkerSet | None = None
    """Markers that show, after all that, that the quote was inside the string: no string opens or closes there."""

    def is_string_end(self, source: Source, size: int) -> ParseStep[bool]:
        """Whether a string ends at the source's position, with a quote of that size."""
        ahead = Lookahead(source, size)
        char = yield from ahead.skip_space()
        ahead.offset += 1
        if char == ",":
            return (yield from self._has_next_item(ahead))
        if char and char in self.brackets:
            return (yield from self._is_end_after_bracket(ahead))
        return not char or (self.allows_colon and char == ":")

    def _has_next_item(self, ahead: Lookahead) -> ParseStep[bool]:
        """Whether a key or a value follows the comma."""
        first = yield from ahead.skip_space()
        if not first or first in self.brackets:
            return True
        quote = yield from ahead.accept(self.quotes)
        if quote and self.allows_positional:
            return True
        word = yield from ahead.take_word()
        if quote:
            yield from ahead.accept(self.quotes)
        sign = yield from ahead.skip_space()
        if not sign or sign in self.key_signs:
            return True
        if word:
            return self.allows_positional and sign in ",)]}" and _LITERAL(word) is not None
        return self.allows_positional and sign in "([{*"

    def _is_end_after_bracket(self, ahead: Lookahead) -> ParseStep[bool]:
        """Whether the text after the bracket may follow it."""
        while not (yield from ahead.accept(self.after)):
            char = yield from ahead.peek()
            if not char.isspace():
                return not char
            ahead.offset += 1
        if self.inner_markers is None:
            return True
        yield from ahead.skip_space()
        return not (yield from ahead.accept(self.inner_markers))


@dataclass(frozen=True)
class Notation:
    """How values are written: the quotes, and where a string inside a list or a dictionary can end."""

    quotes: tuple[Quote, ...]
    nested: StringEndRule

    def accept_quote(self, source: Source) -> ParseStep[Quote | None]:
        """Consume the quote at the position and return it; None if there is none."""
        mark = yield from source.accept(self._quote_markers)
        return self._quotes_by_mark.get(mark)

    def take_value(self, source: Source, note: RepairSink, prefix: str = "") -> ParseStep[str | None]:
        """Return the value at the position, up to a comma or a bracket that does not belong to it.

        Its strings become JSON, everything else is unchanged. Return None if the text or the call ended first. `prefix`
        is the part of the value that was consumed already.
        """
        buffer = TextBuffer(source)
        buffer.add(prefix)
        boundary = source.boundary
        stops = self._list_stops((*boundary.closers, *boundary.openers) if boundary else ())
        depth = 0
        while (stop := (yield from source.copy_until(stops, buffer.add))) is not None:
            if stop in self._quotes_by_mark:
                buffer.add('"')
                quote, emit = self._quotes_by_mark[stop], _wrap_escaping(buffer.add)
                if not (yield from quote.copy_string(source, emit, note, self.nested.is_string_end)):
                    return None
                buffer.add('"')
                continue
            source.position -= len(stop)
            if stop == "\n" and (size := (yield from _find_last_newline(source))):
                buffer.add(source.text[source.position : source.position + size])
                source.position += size
                continue
            if depth == 0 and stop in ",)]}":
                return buffer.get_text().strip()
            if stop not in _BRACKET_DEPTHS and (yield from _is_call_end(source, stop)):
                value = buffer.get_text().strip()
                if depth == 0 and _VALUE(value):
                    return value
                if stop != "\n":
                    return None
            source.position += 1
            buffer.add(stop[0])
            depth += _BRACKET_DEPTHS.get(stop, 0)
        return None

    @cached_property
    def _quotes_by_mark(self) -> dict[str, Quote]:
        return {quote.mark: quote for quote in self.quotes}

    @cached_property
    def _quote_markers(self) -> MarkerSet:
        return compile_markers(*self._quotes_by_mark)

    def _list_stops(self, markers: tuple[str, ...]) -> MarkerSet:
        return compile_markers(*self._quotes_by_mark, *_BRACKET_DEPTHS, "\n", *markers)


def _find_last_newline(source: Source) -> ParseStep[int]:
    """Return how far ahead the last newline of the white space is that begins here: only that one needs judgement."""
    ahead = Lookahead(source)
    yield from ahead.skip_space()
    return source.text.rfind("\n", source.position, source.position + ahead.offset) - source.position


def _is_call_end(source: Source, stop: str) -> ParseStep[bool]:
    """Whether the call ends here, outside of strings: at a marker, or on a line that cannot belong to it."""
    if source.boundary and stop != "\n":
        return bool((yield from source.boundary.peek(source)))
    following = yield from Lookahead(source).skip_space()
    return bool(following) and following not in ",)]}"


def _wrap_escaping(emit: TextSink) -> TextSink:
    return lambda text: emit(escape_json(text))
