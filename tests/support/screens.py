"""What stands on a terminal after a program has written to it: just enough of one for rich's moving parts.

Endless in height, so that nothing scrolls away. Raises on any control that it does not know: a face that sends a
terminal something else than rich's own has let foreign text through.
"""

from __future__ import annotations

import re

from rich.cells import cell_len

_CONTROL = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])")


class Terminal:
    """A terminal that is written to; `lines` are what a person sees."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """The screen, without the blanks at the ends of lines and of the screen."""
        rows = ["".join(row).rstrip() for row in self._rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def write(self, text: str) -> None:
        """Show this."""
        at = 0
        while at < len(text):
            letter = text[at]
            if letter == "\x1b":
                found = _CONTROL.match(text, at)
                assert found, f"an unknown control: {text[at : at + 20]!r}"
                self._control(found[1], found[2], found[3])
                at = found.end()
                continue
            at += 1
            if letter == "\n":
                self._row, self._column = self._row + 1, 0
                while len(self._rows) <= self._row:
                    self._rows.append([])
            elif letter == "\r":
                self._column = 0
            else:
                assert letter.isprintable(), f"a control character: {letter!r}"
                self._put(letter)

    def _put(self, letter: str) -> None:
        row = self._rows[self._row]
        width = cell_len(letter)
        if not width:  # joins the one before
            row[self._column - 1 : self._column] = [*row[self._column - 1 : self._column], letter][:1]
            return
        row.extend(" " * (self._column + width - len(row)))
        row[self._column : self._column + width] = [letter, *[""] * (width - 1)]
        self._column += width

    def _control(self, private: str, numbers: str, name: str) -> None:
        match private, name:
            case "", "A":
                self._row = max(self._row - int(numbers or 1), 0)
            case "", "K" if numbers == "2":
                self._rows[self._row] = []
            case ("", "m") | ("?", "h" | "l"):
                pass
            case _:
                raise AssertionError(f"an unknown control: {private}{numbers}{name}")
