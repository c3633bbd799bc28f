"""Streaming JSON: copy strings and values while they arrive, byte for byte.

The scanner jumps from one structural character to the next, so a long string costs one search per chunk. Nothing
inside a string can end a value. Mistakes that models make inside strings are repaired on the fly, each with a named
repair: raw control characters, escapes that JSON does not have, quotes that are not escaped. Valid JSON is never
changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from callwright.text.source import ParseStep, Source, TextBuffer, TextSink, compile_markers

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
_IN_SINGLE_QUOTES = re.compile(r"['\\]").search


def escape_json(text: str) -> str:
    """Escape text for the inside of a JSON string."""
    return quote_json(text)[1:-1]


def copy_string(source: Source, emit: TextSink, note: RepairSink, *, key: bool = False) -> ParseStep[bool]:
    """Copy the inside of a string whose opening quote is consumed, and consume the closing quote.

    Return False if the text ended inside the string. A quote closes the string only where JSON could continue after it;
    any other quote is one that the model did not escape. A key has no such quotes: its first quote ends it, so that a
    broken object does not swallow the text after it.
    """
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
    """Return the next character that is not white space, without consuming anything; empty at the end."""
    while True:
        rest = source.text[source.position :].lstrip()
        if rest or source.closed:
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
    """Copy the JSON value that begins here, unchanged. Return False if the text ended inside it.

    A scalar ends before a comma or a closing bracket, neither of which is consumed. With a `depth`, copying starts
    inside that many brackets and continues to the end of the outermost.
    """
    while True:
        text, position = source.text, source.position
        stop = _STRUCTURE(text, position)
        end = stop.start() if stop else len(text)
        if end > position:
            emit(text[position:end])
            source.position = end
        if stop is None:
            if source.closed:
                return False
            yield
            continue
        char = text[end]
        if depth == 0 and char in ",}]":
            return True
        source.position += 1
        emit(char)
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
    closed = yield from copy_string(source, emit, note)
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
