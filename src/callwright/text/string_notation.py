"""Strings and values in notations that do not quote like JSON: Python literals, Gemma's quote tokens.

    city='Oslo', note="say "hi"", tags=('a', "b"), code:<|"|>print(1)<|"|>

A string is emitted decoded while it arrives. A quote closes it only where the notation can continue after the quote:
models forget to escape quotes, and a wrong guess would end a value early and damage all that follow. Other values are
read to their end, and strings inside them become JSON; their type is decided by the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from callwright.text.json_stream import RepairSink, escape_json
from callwright.text.lookahead import Lookahead
from callwright.text.source import MarkerSet, ParseStep, Source, TextBuffer, TextSink, compile_markers

__all__ = ["PYTHON_QUOTES", "ClosingCheck", "Notation", "Quote", "StringEndRule"]

ClosingCheck = Callable[[Source, int], ParseStep[bool]]
"""Whether a string ends at the source's position, where a quote of that length stands."""

_ESCAPE = re.compile(
    r"""\\(?:([\\'"/abfnrtv\n])|x(HH)|u([dD][89abAB]HH\\u[dD][c-fC-F]HH|(?![dD][89a-fA-F])HHHH)"""
    r"""|U(0010HHHH|000(?!0[dD][89a-fA-F])HHHHH)|([0-7]{1,3}))""".replace("H", "[0-9a-fA-F]")
).match
_OPEN_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?"
    r"|U[0-9a-fA-F]{0,7}|[0-7]{0,2})?\Z"
).match
_LETTER_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_LITERAL = re.compile(r"[+-]?[\d.]|(?:True|False|None|true|false|null)\Z").match
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
        stops = compile_markers(self.mark, "\\") if self.escapes else compile_markers(self.mark)
        while True:
            text, position = source.text, source.position
            start, end = stops.find_first(text, position, source.closed)
            if start > position:
                piece = text[position:start]
                emit(piece)
                source.position = start
                if len(self.mark) == 1 and "\n" in piece:
                    note("escaped_control_character", "a string contained a raw newline")
                    if self.unescaped_lines:
                        stops = compile_markers(self.mark)
                        continue
            if start == end:
                if source.closed:
                    return False
                yield
            elif text[start] == "\\":
                yield from _copy_escape(source, emit, note)
            elif source.special_tokens and source.is_literal(self.mark, start):
                emit(self.mark)
                source.position = end
            elif (yield from closes(source, len(self.mark))):
                source.position += len(self.mark)
                return True
            else:
                emit(self.literal or self.mark[0])
                source.position += len(self.mark) if self.literal else 1
                note("escaped_quote", "a quote inside a string was not escaped")


PYTHON_QUOTES = tuple(Quote(mark) for mark in ('"""', "'''", '"', "'"))


def _copy_escape(source: Source, emit: TextSink, note: RepairSink) -> ParseStep[None]:
    """Emit the character that an escape represents. A backslash that starts no escape is data, as in Python."""
    while not source.closed and _OPEN_ESCAPE(source.text, source.position):
        yield
    match = _ESCAPE(source.text, source.position)
    if match is None:
        emit("\\")
        source.position += 1
        note("escaped_backslash", "a backslash that starts no escape was kept")
        return
    source.position = match.end()
    letter, byte, unit, code, octal = match.groups()
    if letter:
        emit(_LETTER_ESCAPES.get(letter, letter))
    elif unit:
        emit(bytes.fromhex(unit.replace("\\u", "")).decode("utf-16-be"))
    else:
        emit(chr(int(octal, 8) if octal else int(byte or code, 16)))


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

        Its strings become JSON, everything else is unchanged. Return None if the text ended first. `prefix` is the part
        of the value that was consumed already.
        """
        buffer = TextBuffer(source)
        buffer.add(prefix)
        depth = 0
        while (stop := (yield from source.copy_until(self._structure_markers, buffer.add))) is not None:
            if depth == 0 and stop in ",)]}":
                source.position -= 1
                return buffer.get_text().strip()
            buffer.add('"' if stop in self._quotes_by_mark else stop)
            if stop not in self._quotes_by_mark:
                depth += _BRACKET_DEPTHS[stop]
                continue
            if not (
                yield from self._quotes_by_mark[stop].copy_string(
                    source, _wrap_escaping(buffer.add), note, self.nested.is_string_end
                )
            ):
                return None
            buffer.add('"')
        return None

    @cached_property
    def _quotes_by_mark(self) -> dict[str, Quote]:
        return {quote.mark: quote for quote in self.quotes}

    @cached_property
    def _quote_markers(self) -> MarkerSet:
        return compile_markers(*self._quotes_by_mark)

    @cached_property
    def _structure_markers(self) -> MarkerSet:
        return compile_markers(*self._quotes_by_mark, *_BRACKET_DEPTHS)


def _wrap_escaping(emit: TextSink) -> TextSink:
    return lambda text: emit(escape_json(text))
