"""Strings in quotes inside a call that has boundaries: read one without letting it swallow the next call.

A quote closes a string only where the notation can continue after it. A string whose closing quote is missing would
therefore go on into the text after the call, so it is held back from the first marker that may have ended the call.
Its own end releases it; another call on a new line, or the end of the text, goes back to that marker. A call inside a
line may be quoted: its quotes come in pairs, and the string's own end follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from callwright.text.boundaries import BoundaryKind
from callwright.text.json_stream import RepairSink
from callwright.text.lookahead import Lookahead
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers

if TYPE_CHECKING:
    from callwright.text.string_notation import Quote

__all__ = ["BoundedString", "ClosingCheck"]

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


class BoundedString:
    """Copies the inside of a string whose opening quote is consumed, and consumes the closing quote."""

    __slots__ = (
        "_boundary",
        "_closes",
        "_emit",
        "_has_boundary",
        "_held",
        "_may_have_ended",
        "_nested_quotes",
        "_note",
        "_quote",
        "_quotes",
        "_source",
        "_tail",
    )

    def __init__(self, quote: Quote, source: Source, emit: TextSink, note: RepairSink, closes: ClosingCheck) -> None:
        self._quote = quote
        self._source = source
        self._emit = emit
        self._note = note
        self._closes = closes
        self._boundary = source.boundary
        self._held: list[tuple[str, ...]] | None = None
        """The pieces, and the repairs with their details, that wait since a marker that may have ended the string."""
        self._quotes = 0
        """How many quotes inside the string were not escaped."""
        self._tail = ""
        """The last characters of the string."""
        self._nested_quotes: int | None = None
        """How many quotes were read in the call that the string perhaps quotes; None if no such call is open."""
        self._may_have_ended = False
        """Whether the text is held back since a quote that may have closed the string."""
        self._has_boundary = False
        """Whether a boundary followed."""

    def copy(self) -> ParseStep[bool]:
        """Copy the string. Return False if the text, or the call, ended inside it."""
        source, quote = self._source, self._quote
        stops = self._build_stops(escapes=quote.escapes)
        while True:
            text, position = source.text, source.position
            start, end = stops.find_first(text, position, source.closed)
            if start > position:
                self._write(text[position:start])
                source.position = start
            if start == end:
                if source.closed:
                    return self._read_text_end()
                yield
                continue
            stop = text[start:end]
            if stop == quote.mark:
                ended = yield from self._read_quote()
            elif stop == "\\":
                yield from self._copy_escape()
                continue
            else:
                ended = yield from self._read_marker(stop)
                if stop == "\n" and quote.unescaped_lines:
                    stops = self._build_stops(escapes=False)
            if ended is not None:
                return ended

    def _build_stops(self, *, escapes: bool) -> MarkerSet:
        boundary, mark = self._boundary, self._quote.mark
        markers = (*boundary.closers, *boundary.openers) if boundary else ()
        needs_lines = len(mark) == 1 or bool(boundary and boundary.has_lines)
        return compile_markers(mark, *(["\\"] if escapes else []), *(["\n"] if needs_lines else []), *markers)

    # ── writing, or holding back ───────────────────────────────────────────────────────────────

    def _write(self, piece: str) -> None:
        self._tail = piece if len(piece) > 1 else self._tail[-1:] + piece
        if self._held is None:
            self._emit(piece)
        else:
            self._held.append((piece,))

    def _record(self, kind: str, detail: str) -> None:
        if self._held is None:
            self._note(kind, detail)
        else:
            self._held.append((kind, detail))

    def _hold(self) -> None:
        if self._held is None:
            self._source.start_hold()
            self._held = []

    def _release(self) -> None:
        """Emit what was held back: it is part of the string."""
        if self._held is not None:
            held, self._held = self._held, None
            self._source.end_hold()
            for item in held:
                if len(item) == 1:
                    self._emit(item[0])
                else:
                    self._note(*item)

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def _read_quote(self) -> ParseStep[bool | None]:
        """Read a quote. Return True if it ends the string, None if it is data."""
        source, size = self._source, len(self._quote.mark)
        if source.special_tokens and source.is_literal(self._quote.mark, source.position):
            self._write(self._quote.mark)
            source.position += size
            return None
        # A quote inside a quoted call may close a string of that call; one that would open a string does not.
        is_own = self._nested_quotes is None or self._nested_quotes % 2 == 0
        if is_own and (yield from self._closes(source, size)):
            self._release()
            source.position += size
            return True
        if self._nested_quotes is not None:
            self._nested_quotes += 1
            self._keep_quote(self._quote.mark)
            return None
        if (yield from self._is_doubled_quote()):
            self._record("extra_quote", "a quote was written twice")
            source.position += 2 * size
            return True
        if self._held is None and (yield from self._may_end()):
            self._hold()
            self._may_have_ended = True
        self._keep_quote(self._quote.literal or self._quote.mark[0])
        return None

    def _is_doubled_quote(self) -> ParseStep[bool]:
        """Whether the quote here ends the string, and is written twice."""
        if self._quotes % 2 or self._held is not None:
            return False
        ahead = Lookahead(self._source, len(self._quote.mark))
        if not (yield from ahead.accept(compile_markers(self._quote.mark))):
            return False
        return (yield from self._closes(self._source, ahead.offset))

    def _may_end(self) -> ParseStep[bool]:
        """Whether the quote here may have closed the string, although what should follow is missing or misspelt."""
        if self._boundary is None or self._quotes % 2:
            return False
        ahead = Lookahead(self._source, len(self._quote.mark))
        first = yield from ahead.peek()
        following = yield from ahead.skip_space()
        if first == "\n" or following in ("}", ")", "]"):
            return True
        return bool((yield from self._boundary.peek(self._source, ahead.offset)))

    def _keep_quote(self, written: str) -> None:
        """Keep the quote here, or its first character, as data."""
        quote = self._quote
        self._quotes += 1
        self._write(written)
        self._source.position += len(quote.mark) if quote.literal or written == quote.mark else 1
        self._record("escaped_quote", "a quote inside a string was not escaped")

    def _copy_escape(self) -> ParseStep[None]:
        """Write the character that an escape represents. A backslash that starts no escape is data, as in Python."""
        source = self._source
        while not source.closed and _OPEN_ESCAPE(source.text, source.position):
            yield
        match = _ESCAPE(source.text, source.position)
        if match is None:
            self._write("\\")
            source.position += 1
            self._record("escaped_backslash", "a backslash that starts no escape was kept")
            return
        source.position = match.end()
        letter, byte, unit, code, octal = match.groups()
        if letter:
            self._write(_LETTER_ESCAPES.get(letter, letter))
        elif unit:
            self._write(bytes.fromhex(unit.replace("\\u", "")).decode("utf-16-be"))
        else:
            self._write(chr(int(octal, 8) if octal else int(byte or code, 16)))

    def _read_marker(self, stop: str) -> ParseStep[bool | None]:
        """Read a newline or a marker. Return None if the string goes on."""
        source, boundary = self._source, self._boundary
        kind: BoundaryKind = ""
        if boundary is None or (source.special_tokens and source.is_literal(stop, source.position)):
            kind = ""
        elif stop == "\n":
            kind = yield from boundary.peek_line(source, 1)
            if not kind and boundary.line_ends and self._tail.endswith(boundary.line_ends):
                kind = "close"
        else:
            kind = yield from boundary.peek(source)
        if kind and self._meet_boundary(kind, stop):
            return self._end_where_held()
        source.position += 1
        self._write(stop[0])
        if stop == "\n" and len(self._quote.mark) == 1:
            self._record("escaped_control_character", "a string contained a raw newline")
        return None

    def _meet_boundary(self, kind: BoundaryKind, stop: str) -> bool:
        """Read a boundary. Return True if the string must have ended, here or where it was held back."""
        # A quoted call is only known to be one when the end of the string follows, so it is held back. A string in
        # short quotes has no raw newlines, and text is not read a third time: another call ends the string there.
        self._has_boundary = True
        if kind == "open" and (self._source.is_rewound or (stop == "\n" and len(self._quote.mark) == 1)):
            return True
        if self._nested_quotes is None or self._nested_quotes % 2 == 0:
            self._nested_quotes = 0 if kind == "open" else None
            self._hold()
        return False

    def _read_text_end(self) -> bool:
        """End a string that the text ended in. If it was not cut off there, it ended where it was held back."""
        # A quote and a bracket alone do not show the end, if the output may have been cut off inside the string.
        if self._source.is_cut or (self._may_have_ended and not (self._has_boundary or self._source.is_finished)):
            self._release()
            return False
        return self._end_where_held()

    def _end_where_held(self) -> bool:
        """Go back to where the string may have ended, if it is held back: it did. Return whether it is complete."""
        if self._held is not None:
            self._held = None
            self._source.rewind()
        if self._may_have_ended:
            self._source.position += len(self._quote.mark)
        return self._may_have_ended
