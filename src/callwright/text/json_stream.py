"""JSON as it streams: strings and values are copied while they are written, byte for byte.

The scanner jumps from one structural character to the next, so a long string costs one search per
chunk. Nothing inside a string can end a value. What models get wrong inside strings is mended on
the fly, each time by name: raw control characters, escapes that JSON does not have, quotes that
were not escaped. Valid JSON is never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from callwright.text.source import ParseStep, Source, TextBuffer, TextSink, compile_markers

__all__ = ["RepairSink", "copy_json", "copy_string", "escape_json", "take_json", "take_key", "take_string"]

RepairSink = Callable[[str, str], object]
"""Called with the kind and the detail of a repair."""

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
    """Text as the inside of a JSON string."""
    return quote_json(text)[1:-1]


def copy_string(source: Source, emit: TextSink, note: RepairSink, *, key: bool = False) -> ParseStep[bool]:
    """Copy the inside of a string whose opening quote is consumed; consume the closing quote.

    False: the text ended before the string did. A quote closes the string only where JSON could go
    on after it; any other quote is one that the model forgot to escape. Keys hold no such quotes: the
    first one ends them, so that a broken object does not swallow the text after it.
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
            note("escaped_control_character", f"a raw {text[end]!r} stood inside a string")


def _is_closing_quote(source: Source) -> ParseStep[bool]:
    """Whether the quote just consumed ends its string, judged by what comes next."""
    first = yield from source.peek()
    if not first or first in _AFTER_STRING:
        return True
    if not first.isspace():
        return False
    # White space, then a quote: a forgotten comma rather than a forgotten escape.
    following = yield from _peek_nonspace(source)
    return not following or following in '"' or following in _AFTER_STRING


def _peek_nonspace(source: Source) -> ParseStep[str]:
    """The next character that is not white space, without consuming anything; empty at the end."""
    while True:
        rest = source.text[source.position :].lstrip()
        if rest or source.closed:
            return rest[:1]
        yield


def _copy_escape(source: Source, emit: TextSink, note: RepairSink) -> ParseStep[None]:
    """Copy one escape; a backslash that begins none is data, and is escaped."""
    while True:
        text, position = source.text, source.position
        if whole := _ESCAPE(text, position):
            source.position = whole.end()
            emit(whole.group())
            return
        if source.closed or not _OPEN_ESCAPE(text, position):
            source.position += 1
            emit("\\\\")
            note("escaped_backslash", f"JSON has no escape {text[position : position + 2]!r}")
            return
        yield


def copy_json(source: Source, emit: TextSink, note: RepairSink, depth: int = 0) -> ParseStep[bool]:
    """Copy one JSON value that begins here, verbatim; False when the text ended inside it.

    A scalar ends before a comma or a closing bracket, neither of which is consumed. With a `depth`
    the copying begins inside that many brackets and goes to the end of the outermost.
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
    """Copy the rest of a string with its closing quote. Python's single quotes are copied as they are."""
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
    """The text of one JSON value that begins here; None when the text ended inside it."""
    held = TextBuffer(source)
    complete = yield from copy_json(source, held.add, note)
    text = held.get_text().strip()
    return text if complete and text else None


def take_string(source: Source) -> ParseStep[str | None]:
    """The text of the JSON string that begins here, quotes included, where every quote inside is escaped; None when
    the text ended inside it. For strings that stand outside any JSON: nothing tells what may follow them."""
    held = TextBuffer(source)
    held.add((yield from source.peek()))
    source.position += 1
    escaped = True
    while escaped:
        piece, quote = yield from source.take_to(_QUOTE)
        if quote is None:
            return None
        held.add(piece + quote)
        escaped = (len(piece) - len(piece.rstrip("\\"))) % 2 == 1
    return held.get_text()


def take_key(source: Source, note: RepairSink) -> ParseStep[str | None]:
    """One object key that begins here, with its colon and the white space after it; None when there is no key here.

    Keys in single quotes or without quotes are taken, and noted.
    """
    quote = yield from source.peek()
    held = TextBuffer(source)
    if quote == '"':
        source.position += 1
        yield from copy_string(source, held.add, note, key=True)
        key = str(json.loads(f'"{held.get_text()}"'))
    elif quote == "'":
        source.position += 1
        yield from _copy_single_quoted(source, held.add)
        key = held.get_text()[:-1]
    else:
        key = yield from source.take_while(_BARE_KEY, 256)
    if (yield from source.skip_space()) != ":" or not (key or quote == '"'):
        return None
    if quote != '"':
        note("quoted_key", f"the key {key!r} was not in double quotes")
    source.position += 1
    yield from source.skip_space()
    return key
