"""Renders the bytes that a command wrote as lines of plain text, as a terminal would.

It implements what a terminal does to its last lines: overwriting after a carriage return or a backspace, moving up to
redraw, erasing. All other escape sequences are dropped. Invariants: chunk boundaries do not matter; memory is bounded
for any input; a line that has scrolled off the screen is final. The sequences are those of ECMA-48 and
https://invisible-island.net/xterm/ctlseqs/ctlseqs.html.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Literal, NamedTuple

__all__ = ["OutputLine", "TerminalEmulator"]

_TAB_WIDTH = 8
# A sequence with a text (a title, a link, an image) must have an end; without one it is not a sequence.
_MAX_STRING_LENGTH = 4096
_STRING_BODY = rf"[^\x07\x18\x1a\x1b\x9c\n]{{0,{_MAX_STRING_LENGTH}}}"
_TOKEN = re.compile(
    rf"""
      (?P<text>    [^\x00-\x1f\x7f-\x9f\udc80-\udcff]+)
    | (?P<foreign> [\udc80-\udcff]+)
    | (?P<csi>     (?:\x1b\[|\x9b) (?P<values>[0-?]*) [\ -/]* (?P<final>[@-~]))
    | (?P<string>  (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) {_STRING_BODY} (?:\x07|\x1b\\|\x9c))
    | (?P<other>   \x1b [\ -/]* [0-~] (?<!\x1b[\[\]PX^_]))
    | (?P<begun>   (?: \x1b[\ -/]*
                     | (?:\x1b\[|\x9b) [0-?]* [\ -/]*
                     | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) {_STRING_BODY} \x1b? ) \Z)
    | (?P<control> .)
    """,
    re.VERBOSE | re.DOTALL,
)


class OutputLine(NamedTuple):
    """A line that can no longer change."""

    text: str
    size_bytes: int
    """The bytes that were written for it, including sequences and overwritten text."""
    kind: Literal["text", "mixed", "binary"] = "text"
    """Mixed: some of it is not UTF-8, but most of it is."""


class _ScreenRow:
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
        """Classify the row. Text has no NUL; a few invalid bytes do not make it binary, a third of them does."""
        if self.has_nul or self.foreign * 3 > len(self.text) + self.dropped:
            return "binary"
        return "mixed" if self.foreign else "text"

    @property
    def is_blank(self) -> bool:
        return not (self.has_nul or self.text.strip())

    def write_text(self, text: str, column: int, limit: int) -> None:
        available = max(limit - column, 0)
        self.dropped += max(len(text) - available, 0)
        written = text[:available]
        if column > len(self.text):
            self.text = self.text.ljust(column)
        self.is_redrawn |= column < len(self.text)
        self.text = self.text[:column] + written + self.text[column + len(written) :]

    def erase_columns(self, start: int, end: int | None) -> None:
        self.is_redrawn = True
        remaining = self.text[end:] if end is not None else ""
        self.text = self.text[:start] + (" " * (end - start) + remaining if end is not None and remaining else "")
        self.dropped = 0 if end is None else self.dropped

    def render(self) -> str:
        more = f" [… {self.dropped:,} characters omitted …]" if self.dropped else ""
        # Trailing spaces that overwrote text are removed; spaces that were simply written are part of the line.
        return (self.text.rstrip() if self.is_redrawn else self.text).translate(_INVALID_BYTE_TABLE) + more


_INVALID_BYTE_TABLE = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")


class TerminalEmulator:
    """Interprets bytes. `on_line` receives each line that can no longer change.

    `on_preview` receives the text of a line when the next one begins, for a live view: it may still be redrawn.
    """

    def __init__(
        self,
        on_line: Callable[[OutputLine], None],
        *,
        on_preview: Callable[[str], None] = lambda line: None,
        rows: int = 40,
        line_limit: int = 2000,
    ) -> None:
        self._on_line = on_line
        self._on_preview = on_preview
        self._height = rows
        self._limit = line_limit
        # An invalid byte becomes one character, so that it can be counted.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._partial_sequence = ""
        self._rows = [_ScreenRow()]
        self._row = 0
        self._column = 0

    def feed(self, data: bytes) -> None:
        """Process bytes of the command, in chunks of any size."""
        self._process_text(self._decoder.decode(data))

    def close(self) -> None:
        """Finish: every line is final."""
        self._process_text(self._decoder.decode(b"", final=True))
        self._partial_sequence = ""
        last = self._rows[-1]
        if not last.is_blank and last.kind != "binary":
            self._on_preview(last.render())
        while self._rows and self._rows[-1].is_blank:
            self._rows.pop()
        self._emit_rows(len(self._rows))

    def _process_text(self, text: str) -> None:
        text = self._partial_sequence + text
        self._partial_sequence = ""
        for token in _TOKEN.finditer(text):
            kind, value = token.lastgroup, token[0]
            row = self._rows[self._row]
            match kind:
                case "begun":
                    self._partial_sequence = value
                    return
                case "text" | "foreign":
                    row.size_bytes += len(value) if value.isascii() else len(value.encode(errors="surrogateescape"))
                    row.foreign += len(value) if kind == "foreign" else 0
                    row.write_text(value, self._column, self._limit)
                    self._column = min(self._column + len(value), self._limit)
                case "control":
                    self._handle_control(value, row)
                case "csi":
                    row.size_bytes += len(value)
                    self._handle_sequence(token["final"], token["values"], row)
                case _:
                    row.size_bytes += len(value)

    def _handle_control(self, value: str, row: _ScreenRow) -> None:
        row.size_bytes += 1
        match value:
            case "\n" | "\v" | "\f" | "\x85":
                self._move_down()
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(self._column - 1, 0)
            case "\t":
                self._handle_tab(row)
            case "\0":
                row.has_nul = True
            case _:
                pass

    def _handle_tab(self, row: _ScreenRow) -> None:
        """Handle a tab: at the end of a line it is written, since it may matter for a search; elsewhere it moves the
        cursor.
        """
        if self._column >= len(row.text):
            row.write_text("\t", self._column, self._limit)
            self._column = min(self._column + 1, self._limit)
        else:
            self._column = min((self._column // _TAB_WIDTH + 1) * _TAB_WIDTH, self._limit)

    def _handle_sequence(self, final: str, values: str, row: _ScreenRow) -> None:
        """Handle one control sequence: a letter and its numbers. Colours and modes (`?25l`) are ignored."""
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
                row.erase_columns(start, end)
            case _:
                return
        if final in "EF":
            self._column = 0

    def _erase_rows(self, how: int, row: _ScreenRow) -> None:
        if how >= 2:
            # A cleared screen starts a new page; the lines of the old one are output.
            if self._row or row.text:
                self._emit_rows(len(self._rows))
                self._rows, self._row = [_ScreenRow()], 0
        elif how == 0:
            row.erase_columns(self._column, None)
            del self._rows[self._row + 1 :]

    def _move_down(self) -> None:
        left = self._rows[self._row]
        if left.kind != "binary":
            self._on_preview(left.render())
        self._column = 0
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(_ScreenRow())
            if len(self._rows) > self._height:
                self._emit_rows(1)
                self._row -= 1

    def _emit_rows(self, count: int) -> None:
        for row in self._rows[:count]:
            self._on_line(OutputLine(row.render(), row.size_bytes, row.kind))
        del self._rows[:count]
