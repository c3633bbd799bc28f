"""Streaming JSON: copy strings and values while they arrive, byte for byte.

The scanner jumps from one structural character to the next, so a long string costs one search per chunk. What stands
inside a complete string never ends a value. Mistakes that models make in strings are repaired on the fly, with a named
repair: raw control characters, escapes that JSON does not have, quotes that are not escaped. Valid JSON is never
changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from callwright.input_limits import MAX_SPACE_LENGTH
from callwright.text.source import ParseStep, Source, TextBuffer, TextSink, compile_markers

if TYPE_CHECKING:
    from callwright.text.boundaries import CallBoundary

__all__ = ["RepairSink", "copy_json", "copy_string", "escape_json", "take_json", "take_key", "take_string"]

RepairSink = Callable[[str, str], object]
"""A function that is called with the kind and the detail of a repair."""

quote_json: Callable[[str], str] = json.encoder.encode_basestring
_IN_STRING = re.compile(r'["\\\x00-\x1f]').search
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})').match
_OPEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match
_AFTER_STRING = ",}]:"
_QUOTE = compile_markers('"')
_BARE_KEY = re.compile(r"[\w$.-]*")
_STRUCTURE = re.compile(r"""["'{}\[\],]""").search
_AFTER_DOUBLED_QUOTE = re.compile(rf"\"\s{{0,{MAX_SPACE_LENGTH}}}").match
_IN_SINGLE_QUOTES = re.compile(r"['\\]").search
_CERTAIN_END = re.compile(
    r"""\s*(?:((?:[}\]][}\]\s]*)?,\s*["']?[\w$.-]+["']?\s*:|[}\]][}\]\s]*(?:[,;]?\s*[{\[]|```))|[}\]][}\]\s]*)"""
).match
_OPEN_END = re.compile(r"""\s*(?:[}\]][}\]\s]*)?(?:[,;]\s*(?:["']?[\w$.-]*["']?\s*)?|`{1,2})?\Z""").match
_MAX_END_LENGTH = 512
"""How much text after a quote these patterns see: the time that they take grows with its square."""
_NEXT_ITEM = re.compile(r"""\s*(?:[}\]][}\]\s]*)?,\s*["\d{\[tfn-]""").match


def escape_json(text: str) -> str:
    """Escape text for the inside of a JSON string."""
    return quote_json(text)[1:-1]


def copy_string(
    source: Source, emit: TextSink, note: RepairSink, *, key: bool = False, is_value: bool = True
) -> ParseStep[bool]:
    """Copy the inside of a string whose opening quote is consumed, and consume the closing quote.

    Return False if the text ended inside the string. A quote closes the string only where JSON could continue after it;
    any other quote is one that the model did not escape. A key has no such quotes: its first quote ends it, so that a
    broken object does not swallow the text after it. Return False, too, where the call that the string belongs to must
    have ended.
    """
    if source.boundary and not key:
        return (yield from _BoundedString(source, emit, note, source.boundary, is_value=is_value).copy())
    while True:
        text, position = source.text, source.position
        stop = _IN_STRING(text, position)
        end = stop.start() if stop else len(text)
        if end > position:
            emit(text[position:end])
            source.position = end
        if stop is None:
            if source.closed:
                return False
            yield
        elif text[end] == '"':
            source.position += 1
            if key or (yield from _is_closing_quote(source)):
                return True
            emit('\\"')
            note("escaped_quote", "a quote inside a string was not escaped")
        elif text[end] == "\\":
            yield from _copy_escape(source, emit, note)
        else:
            source.position += 1
            emit(escape_json(text[end]))
            note("escaped_control_character", f"a string contained a raw {text[end]!r}")


class _BoundedString:
    """Copies a string inside a call that has boundaries."""

    __slots__ = ("_boundary", "_emit", "_has_opener", "_is_value", "_last", "_note", "_pieces", "_quotes", "_source")

    def __init__(
        self, source: Source, emit: TextSink, note: RepairSink, boundary: CallBoundary, *, is_value: bool
    ) -> None:
        self._is_value = is_value
        self._source = source
        self._emit = emit
        self._note = note
        self._boundary = boundary
        self._pieces: list[str] | None = None
        """What is held back since a closing marker, because the string may have ended there."""
        self._has_opener = False
        """Whether another call seems to open in what is held back."""
        self._last = ""
        self._quotes = 0
        """How many quotes inside the string were not escaped."""

    def copy(self) -> ParseStep[bool]:
        source, find = self._source, self._boundary.find_in_string
        while True:
            text, position = source.text, source.position
            stop = find(text, position)
            end = stop.start() if stop else len(text)
            if end > position:
                self._write(text[position:end])
                source.position = end
            if stop is None:
                if source.closed:
                    return self._end_of_text()
                yield
                continue
            char = text[end]
            if char == '"':
                ended = yield from self._read_quote()
                if ended is not None:
                    return ended
            elif char == "\\":
                yield from _copy_escape(source, self._write, self._note)
            elif (yield from self._is_boundary(char)):
                source.ended_at_boundary = True
                return False

    def _write(self, piece: str) -> None:
        self._last = piece if len(piece) > 1 else self._last[-1:] + piece
        if self._pieces is None:
            self._emit(piece)
        else:
            self._pieces.append(piece)

    def _read_quote(self) -> ParseStep[bool | None]:
        """Read a quote: return True if it ends the string, False if the string ended before, None if it is data."""
        source = self._source
        source.position += 1
        if self._pieces is not None and not (yield from self._is_certain_end()):
            closes = False
        else:
            closes = yield from _is_closing_quote(source)
        if closes and self._is_value and (yield from _peek_nonspace(source)) == ":":
            # This is a key: the quote that ends the value before it is missing.
            self._release()
            source.ended_at_boundary = False
            return False
        if closes:
            self._release()
            return True
        if (yield from self._is_doubled_quote()):
            self._note("extra_quote", "a quote was written twice")
            source.position += 1
            self._release()
            return True
        if self._has_opener:
            # No string quotes a call without escaping its quotes: the call before it has no end.
            source.rewind()
            source.ended_at_boundary = True
            return False
        self._quotes += 1
        self._write('\\"')
        self._note("escaped_quote", "a quote inside a string was not escaped")
        return None

    def _is_doubled_quote(self) -> ParseStep[bool]:
        """Whether the quote just consumed ends the string, and is written twice."""
        source = self._source
        if self._quotes % 2 or self._pieces is not None or (yield from source.peek()) != '"':
            return False
        while True:
            match = _AFTER_DOUBLED_QUOTE(source.text, source.position)
            if source.closed or (match and match.end() < len(source.text)):
                return match is None or match.end() == len(source.text) or source.text[match.end()] in ",}]"
            yield

    def _is_certain_end(self) -> ParseStep[bool]:
        """Whether a quote after a closing marker ends the string: the next member follows, or the end of the object."""
        source = self._source
        while True:
            text, start, end = source.text, source.position, source.position + _MAX_END_LENGTH
            if not self._is_value and _NEXT_ITEM(text, start, end):
                return True
            if source.closed or len(text) > end or not _OPEN_END(text, start):
                break
            yield
        match = _CERTAIN_END(text, start, end)
        if match is None:
            return False
        if match.group(1) or match.end() == len(source.text):
            return True
        brackets = sum(char in "}]" for char in match.group())
        if 0 < self._boundary.last_brackets <= brackets:
            # No marker ends a call of this family, so any text may follow its brackets.
            return True
        return bool((yield from self._boundary.peek(source, match.end() - source.position)))

    def _is_boundary(self, char: str) -> ParseStep[bool]:
        """Read a control character, or the first of a marker. Return whether the string must have ended before it."""
        source = self._source
        if char < " ":
            kind = (yield from self._boundary.peek_line(source, 1)) if char == "\n" else ""
        else:
            kind = yield from self._boundary.peek(source)
        if char == "\n" and not kind and self._ends_with_brackets():
            kind = "close"
        if kind == "open" and char == "\n":
            if self._pieces is not None:
                source.rewind()
            return True
        if kind == "open" and self._pieces is not None:
            self._has_opener = True
        if kind == "close" and self._pieces is None:
            source.start_hold()
            self._pieces = []
        source.position += 1
        if char < " ":
            self._write(escape_json(char))
            self._note("escaped_control_character", f"a string contained a raw {char!r}")
        else:
            self._write(char)
        return False

    def _ends_with_brackets(self) -> bool:
        """Whether the line ends with the brackets that end a call, in a family whose calls have no other end."""
        count = self._boundary.last_brackets
        return bool(count) and len(self._last) >= count and all(char in "}]" for char in self._last[-count:])

    def _release(self) -> None:
        """Emit what was held back: it is part of the string."""
        if self._pieces is not None:
            self._source.end_hold()
            for piece in self._pieces:
                self._emit(piece)
            self._pieces = None

    def _end_of_text(self) -> bool:
        if self._pieces is not None and not self._source.is_cut:
            self._source.rewind()
            self._source.ended_at_boundary = True
        else:
            self._release()
        return False


def _is_closing_quote(source: Source) -> ParseStep[bool]:
    """Whether the quote just consumed ends its string, judged by the text after it."""
    first = yield from source.peek()
    if not first or first in _AFTER_STRING:
        return True
    if not first.isspace():
        return False
    # White space, then a quote: a missing comma rather than a missing escape.
    following = yield from _peek_nonspace(source)
    return not following or following in '"' or following in _AFTER_STRING


def _peek_nonspace(source: Source) -> ParseStep[str]:
    """Return the next character that is not white space, without consuming anything; empty at the end, and after more
    white space than anybody writes between two tokens."""
    while True:
        text = source.text[source.position : source.position + MAX_SPACE_LENGTH]
        if (rest := text.lstrip()) or source.closed or len(text) == MAX_SPACE_LENGTH:
            return rest[:1]
        yield


def _copy_escape(source: Source, emit: TextSink, note: RepairSink) -> ParseStep[None]:
    """Copy one escape. A backslash that starts no escape is data, and is escaped."""
    while True:
        text, position = source.text, source.position
        if escape := _ESCAPE(text, position):
            source.position = escape.end()
            emit(escape.group())
            return
        if source.closed or not _OPEN_ESCAPE(text, position):
            source.position += 1
            emit("\\\\")
            note("escaped_backslash", f"JSON has no escape {text[position : position + 2]!r}")
            return
        yield


def copy_json(source: Source, emit: TextSink, note: RepairSink, depth: int = 0) -> ParseStep[bool]:
    """Copy the JSON value that begins here, unchanged. Return False if the text ended inside it, or the call did.

    A scalar ends before a comma or a closing bracket, neither of which is consumed. With a `depth`, copying starts
    inside that many brackets and continues to the end of the outermost.
    """
    boundary = source.boundary
    find = boundary.find_in_json if boundary else _STRUCTURE
    has_text = False
    while True:
        text, position = source.text, source.position
        stop = find(text, position)
        end = stop.start() if stop else len(text)
        if end > position:
            has_text = has_text or not text[position:end].isspace()
            emit(text[position:end])
            source.position = end
        if stop is None:
            if source.closed:
                return False
            yield
            continue
        char = text[end]
        if boundary and (yield from (boundary.peek_line(source, 1) if char == "\n" else boundary.peek(source))):
            return depth == 0
        if char == "\n" and depth == 0 and has_text:
            # No number and no word goes on in the next line.
            return True
        if depth == 0 and char in ",}]":
            return True
        source.position += 1
        emit(char)
        if char not in "\"'{}[],":
            continue
        if char in "\"'":
            if not (yield from _copy_quoted(source, char, emit, note)):
                return False
        elif char != ",":
            depth += 1 if char in "{[" else -1
        if depth == 0 and char != ",":
            return True


def _copy_quoted(source: Source, quote: str, emit: TextSink, note: RepairSink) -> ParseStep[bool]:
    """Copy the rest of a string with its closing quote. Python's single-quoted strings are copied unchanged."""
    if quote == "'":
        return (yield from _copy_single_quoted(source, emit))
    closed = yield from copy_string(source, emit, note, is_value=False)
    if closed:
        emit(quote)
    return closed


def _copy_single_quoted(source: Source, emit: TextSink) -> ParseStep[bool]:
    while True:
        text, position = source.text, source.position
        stop = _IN_SINGLE_QUOTES(text, position)
        end = stop.end() if stop else len(text)
        if end > position:
            emit(text[position:end])
            source.position = end
        if stop is None:
            if source.closed:
                return False
            yield
        elif stop.group() == "'":
            return True
        else:
            emit((yield from source.peek()))
            source.position = min(source.position + 1, len(source.text))


def take_json(source: Source, note: RepairSink) -> ParseStep[str | None]:
    """Return the text of the JSON value that begins here, or None if the text ended inside it."""
    buffer = TextBuffer(source)
    complete = yield from copy_json(source, buffer.add, note)
    text = buffer.get_text().strip()
    return text if complete and text else None


def take_string(source: Source) -> ParseStep[str | None]:
    """Return the JSON string that begins here, with its quotes, or None if the text ended inside it. Every quote inside
    must be escaped. For strings outside of JSON, where the text after a quote does not show whether the quote
    closes."""
    buffer = TextBuffer(source)
    buffer.add((yield from source.peek()))
    source.position += 1
    escaped = True
    while escaped:
        piece, quote = yield from source.take_to(_QUOTE)
        if quote is None:
            return None
        buffer.add(piece + quote)
        escaped = (len(piece) - len(piece.rstrip("\\"))) % 2 == 1
    return buffer.get_text()


def take_key(source: Source, note: RepairSink) -> ParseStep[str | None]:
    """Consume an object key with its colon and the white space after it, and return it; None if there is no key here.

    Keys in single quotes or without quotes are accepted and recorded.
    """
    quote = yield from source.peek()
    buffer = TextBuffer(source)
    if quote == '"':
        source.position += 1
        yield from copy_string(source, buffer.add, note, key=True)
        key = str(json.loads(f'"{buffer.get_text()}"'))
    elif quote == "'":
        source.position += 1
        yield from _copy_single_quoted(source, buffer.add)
        key = buffer.get_text()[:-1]
    else:
        key = yield from source.take_while(_BARE_KEY, 256)
    if (yield from source.skip_space()) != ":" or not (key or quote == '"'):
        return None
    if quote != '"':
        note("quoted_key", f"the key {key!r} was not in double quotes")
    source.position += 1
    yield from source.skip_space()
    return key
