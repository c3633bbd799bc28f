"""Write a call's arguments exactly as the backend wrote them, as long as nothing is repaired.

The reader of arguments writes each member in one form, with one space after a colon. What it writes is compared with
the text that the backend sent: white space outside of strings is taken from that text. Where the two differ otherwise,
either a repair was recorded, and the reader's text is used from there on; or the text only looks different, such as a
key with escapes or members in another order, and the backend's text is used when the call ends without a repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from callwright.turn import CallWriter, Turn

__all__ = ["VerbatimCallWriter"]

_SPACE = re.compile(r"[ \t\r\n]*")
_QUOTES = re.compile(r'\\.|"', re.DOTALL)


class VerbatimCallWriter(CallWriter):
    """An open call whose arguments are compared with the backend's text, from `start_comparing` on."""

    __slots__ = ("_count_rest", "_held", "_in_string", "_is_held", "_new", "_original", "_position")

    def __init__(self, turn: Turn, index: int, name: str, call_id: str) -> None:
        super().__init__(turn, index, name, call_id)
        self._count_rest: Callable[[], int] | None = None
        self._original = ""
        self._position = 0
        self._new: list[str] = []
        """Text of the backend that was not needed for a comparison yet."""
        self._held: list[str] = []
        self._is_held = False
        self._in_string = False

    def start_comparing(self, original: str, count_rest: Callable[[], int]) -> None:
        """Compare what is written with the backend's text. `count_rest` returns how much of it is not read yet."""
        self._original = original
        self._count_rest = count_rest

    def add_original(self, text: str) -> None:
        """Append text of the backend, before anything is read from it."""
        if self._count_rest is not None and not self.repairs:
            self._new.append(text)

    def write(self, text: str) -> None:
        """Append JSON text as the reader of arguments writes it."""
        if self._count_rest is None or self.repairs:
            self._release_held()
            super().write(text)
        elif self._is_held:
            self._held.append(text)
        elif rest := self._write_original(text):
            self._is_held = True
            self._held.append(rest)

    def end(self) -> None:
        """End a complete call."""
        if self._is_held and not self.repairs and self._count_rest is not None:
            self._join_original()
            self._held = [self._original[: len(self._original) - self._count_rest()]]
        self._release_held()
        super().end()

    def end_truncated(self, tail: str = "") -> None:
        """End a call that the output ended inside of."""
        self._release_held()
        super().end_truncated(tail)

    def end_broken(self) -> None:
        """End a call that is incomplete, although the output goes on after it."""
        self._release_held()
        super().end_broken()

    def _join_original(self) -> None:
        self._original = self._original[self._position :] + "".join(self._new)
        self._position = 0
        self._new = []

    def _release_held(self) -> None:
        if self._held:
            super().write("".join(self._held))
            self._held = []

    def _write_original(self, text: str) -> str:
        """Write text in the form of the original, as far as they agree; return the rest."""
        self._join_original()
        at = 0
        while True:
            size = _count_equal(text, at, self._original, self._position)
            self._copy_original(size)
            at += size
            if at == len(text):
                return ""
            spaces = _count_space(self._original, self._position)
            skipped = _count_space(text, at)
            if self._in_string or not (spaces or skipped):
                return text[at:]
            super().write(self._original[self._position : self._position + spaces])
            self._position += spaces
            at += skipped

    def _copy_original(self, size: int) -> None:
        """Copy characters in which both agree, and follow whether they end inside a string."""
        piece = self._original[self._position : self._position + size]
        self._position += size
        super().write(piece)
        # An escape is written at once, so that no piece ends inside one.
        quotes = sum(match.group() == '"' for match in _QUOTES.finditer(piece))
        self._in_string ^= quotes % 2 == 1


def _count_equal(left: str, at: int, right: str, position: int) -> int:
    """Return how many characters are equal from these positions on."""
    length = min(len(left) - at, len(right) - position)
    if left[at : at + length] == right[position : position + length]:
        return length
    # The first difference is found by halving, so that a long string costs a few comparisons.
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        if left[at + low : at + middle] == right[position + low : position + middle]:
            low = middle
        else:
            high = middle
    return low


def _count_space(text: str, position: int) -> int:
    return _SPACE.match(text, position).end() - position  # type: ignore[union-attr]  # it matches the empty string
