"""What a terminal would show of the bytes that a command wrote, as lines of plain text.

Owns the few things that a terminal does to its last lines: overwriting after a carriage return or a backspace, moving
up to redraw, erasing. Everything else that is an escape sequence is left out. Invariants: the cutting of the bytes does
not matter; memory is bounded, whatever comes; a line that has scrolled off the screen is final. The sequences are those
of ECMA-48 and https://invisible-island.net/xterm/ctlseqs/ctlseqs.html.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Literal, NamedTuple

__all__ = ["Line", "Screen"]

_TAB = 8
# A sequence that carries a text (a title, a link, an image) must end some time; one that does not is no sequence.
_LONGEST_STRING = 4096
_IN_STRING = rf"[^\x07\x18\x1a\x1b\x9c\n]{{0,{_LONGEST_STRING}}}"
_TOKEN = re.compile(
    rf"""
      (?P<text>    [^\x00-\x1f\x7f-\x9f\udc80-\udcff]+)
    | (?P<foreign> [\udc80-\udcff]+)
    | (?P<csi>     (?:\x1b\[|\x9b) (?P<values>[0-?]*) [\ -/]* (?P<final>[@-~]))
    | (?P<string>  (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) {_IN_STRING} (?:\x07|\x1b\\|\x9c))
    | (?P<other>   \x1b [\ -/]* [0-~] (?<!\x1b[\[\]PX^_]))
    | (?P<begun>   (?: \x1b[\ -/]*
                     | (?:\x1b\[|\x9b) [0-?]* [\ -/]*
                     | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) {_IN_STRING} \x1b? ) \Z)
    | (?P<control> .)
    """,
    re.VERBOSE | re.DOTALL,
)


class Line(NamedTuple):
    """A line that can no longer change."""

    text: str
    size_bytes: int
    """Of what was written to make it, sequences and what was overwritten included."""
    kind: Literal["text", "mixed", "binary"] = "text"
    """Mixed: some of it is not UTF-8, but most of it is."""


class _Row:
    __slots__ = ("dropped", "foreign", "has_nul", "is_redrawn", "size_bytes", "text")

    def __init__(self) -> None:
        self.text = ""
        self.dropped = 0
        self.foreign = 0
        self.has_nul = False
        self.is_redrawn = False
        self.size_bytes = 0

    @property
    def kind(self) -> Literal["text", "mixed", "binary"]:
        """No text has a NUL. A letter in Latin-1 here and there makes no binary data; a third of them does."""
        if self.has_nul or self.foreign * 3 > len(self.text) + self.dropped:
            return "binary"
        return "mixed" if self.foreign else "text"

    @property
    def is_blank(self) -> bool:
        return not (self.has_nul or self.text.strip())

    def write(self, text: str, column: int, limit: int) -> None:
        room = max(limit - column, 0)
        self.dropped += max(len(text) - room, 0)
        shown = text[:room]
        if column > len(self.text):
            self.text = self.text.ljust(column)
        self.is_redrawn |= column < len(self.text)
        self.text = self.text[:column] + shown + self.text[column + len(shown) :]

    def erase(self, start: int, end: int | None) -> None:
        self.is_redrawn = True
        kept = self.text[end:] if end is not None else ""
        self.text = self.text[:start] + (" " * (end - start) + kept if end is not None and kept else "")
        self.dropped = 0 if end is None else self.dropped

    def shown(self) -> str:
        more = f" [… {self.dropped:,} characters left out …]" if self.dropped else ""
        # What was overwritten with spaces is gone; spaces that were simply written are part of the line.
        return (self.text.rstrip() if self.is_redrawn else self.text).translate(_FOREIGN) + more


_FOREIGN = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")


class Screen:
    """Feed it bytes. `finished` gets each line that can no longer change.

    `passed` gets the text of a line when the next one begins, for somebody who watches: it may still be redrawn.
    """

    def __init__(
        self,
        finished: Callable[[Line], None],
        *,
        passed: Callable[[str], None] = lambda line: None,
        rows: int = 40,
        line_limit: int = 2000,
    ) -> None:
        self._finished = finished
        self._passed = passed
        self._height = rows
        self._limit = line_limit
        # A byte that is not UTF-8 stays one character, so that it can be counted.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._begun = ""
        self._rows = [_Row()]
        self._row = 0
        self._column = 0

    def feed(self, data: bytes) -> None:
        """What the command wrote, cut anywhere."""
        self._read(self._decoder.decode(data))

    def close(self) -> None:
        """Nothing comes any more: every line is final."""
        self._read(self._decoder.decode(b"", final=True))
        self._begun = ""
        last = self._rows[-1]
        if not last.is_blank and last.kind != "binary":
            self._passed(last.shown())
        while self._rows and self._rows[-1].is_blank:
            self._rows.pop()
        self._finish(len(self._rows))

    def _read(self, text: str) -> None:
        text = self._begun + text
        self._begun = ""
        for token in _TOKEN.finditer(text):
            kind, value = token.lastgroup, token[0]
            row = self._rows[self._row]
            match kind:
                case "begun":
                    self._begun = value
                    return
                case "text" | "foreign":
                    row.size_bytes += len(value) if value.isascii() else len(value.encode(errors="surrogateescape"))
                    row.foreign += len(value) if kind == "foreign" else 0
                    row.write(value, self._column, self._limit)
                    self._column = min(self._column + len(value), self._limit)
                case "control":
                    self._control(value, row)
                case "csi":
                    row.size_bytes += len(value)
                    self._sequence(token["final"], token["values"], row)
                case _:
                    row.size_bytes += len(value)

    def _control(self, value: str, row: _Row) -> None:
        row.size_bytes += 1
        match value:
            case "\n" | "\v" | "\f" | "\x85":
                self._down()
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(self._column - 1, 0)
            case "\t":
                self._tab(row)
            case "\0":
                row.has_nul = True
            case _:
                pass

    def _tab(self, row: _Row) -> None:
        """At the end of a line a tab is written, since a reader may want to find it in a file; elsewhere it moves."""
        if self._column >= len(row.text):
            row.write("\t", self._column, self._limit)
            self._column = min(self._column + 1, self._limit)
        else:
            self._column = min((self._column // _TAB + 1) * _TAB, self._limit)

    def _sequence(self, final: str, values: str, row: _Row) -> None:
        """One control sequence: a letter and its numbers. Colours and modes (`?25l`) say nothing to a reader."""
        numbers = [int(each) if each.isdigit() else 0 for each in values.split(";")]
        first = min(numbers[0], self._limit)
        step = first or 1
        match final:
            case "A" | "F":
                self._row = max(self._row - step, 0)
            case "B" | "E":
                self._row = min(self._row + step, len(self._rows) - 1)
            case "C":
                self._column = min(self._column + step, self._limit)
            case "D":
                self._column = max(self._column - step, 0)
            case "G" | "`":
                self._column = step - 1
            case "H" | "f":
                self._row = min(step, len(self._rows)) - 1
                self._column = min(max(numbers[1] if len(numbers) > 1 else 1, 1) - 1, self._limit)
            case "J":
                self._erase_rows(first, row)
            case "K":
                start, end = ((self._column, None), (0, self._column + 1), (0, None))[min(first, 2)]
                row.erase(start, end)
            case _:
                return
        if final in "EF":
            self._column = 0

    def _erase_rows(self, how: int, row: _Row) -> None:
        if how >= 2:
            # A cleared screen is a new page. What was on the old one was said, and is kept.
            if self._row or row.text:
                self._finish(len(self._rows))
                self._rows, self._row = [_Row()], 0
        elif how == 0:
            row.erase(self._column, None)
            del self._rows[self._row + 1 :]

    def _down(self) -> None:
        left = self._rows[self._row]
        if left.kind != "binary":
            self._passed(left.shown())
        self._column = 0
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(_Row())
            if len(self._rows) > self._height:
                self._finish(1)
                self._row -= 1

    def _finish(self, count: int) -> None:
        for row in self._rows[:count]:
            self._finished(Line(row.shown(), row.size_bytes, row.kind))
        del self._rows[:count]
