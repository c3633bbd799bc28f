"""Follow JSON text while it arrives: whether it can still become JSON, and whether it is a complete object.

Each character is examined once, however small the pieces are, and nothing is stored except the open brackets. Strings
are checked less strictly than in JSON: a control character, or any escape, is accepted in them.
"""

from __future__ import annotations

import re

__all__ = ["JsonProgress"]

_STRING_END = re.compile(r'["\\]').search
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[A-Za-z0-9+.\-]+")
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch
_NUMBER_START = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?)?").fullmatch
_WORDS = ("true", "false", "null")
_MAX_SCALAR = 512
"""A longer number is not checked, so that its cost stays linear."""

_VALUE, _FIRST_ITEM, _FIRST_KEY, _KEY, _COLON, _COMMA = range(6)


class JsonProgress:
    """Reads JSON text piece by piece."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._expected = _VALUE
        self._scalar = ""
        self._in_string = False
        self._is_escaped = False
        self._is_object = False
        self._is_over = False
        self.is_possible = True
        """Whether the text is JSON so far: complete, or incomplete only at its end."""

    @property
    def is_complete(self) -> bool:
        """Whether the text so far is one complete value, and no number that may go on."""
        return self.is_possible and self._is_over

    @property
    def is_complete_object(self) -> bool:
        """Whether the text so far is one complete object."""
        return self.is_complete and self._is_object

    def feed(self, text: str) -> None:
        """Read the next piece."""
        position = 0
        while self.is_possible and position < len(text):
            if self._in_string:
                position = self._skip_string(text, position)
            elif match := _SCALAR.match(text, position):
                position = match.end()
                self._add_scalar(match.group())
            else:
                self._end_scalar()
                position = self._read_structure(text, position)

    def _skip_string(self, text: str, position: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return position + 1
        stop = _STRING_END(text, position)
        if stop is None:
            return len(text)
        if stop.group() == "\\":
            self._is_escaped = True
        else:
            self._in_string = False
            self._end_value()
        return stop.end()

    def _add_scalar(self, piece: str) -> None:
        if not self._scalar and self._expected not in (_VALUE, _FIRST_ITEM):
            self.is_possible = False
        elif len(self._scalar) < _MAX_SCALAR:
            self._scalar += piece
            is_word = any(word.startswith(self._scalar) for word in _WORDS)
            self.is_possible = is_word or bool(_NUMBER_START(self._scalar))

    def _end_scalar(self) -> None:
        if not self._scalar:
            return
        scalar, self._scalar = self._scalar, ""
        if scalar in _WORDS or len(scalar) >= _MAX_SCALAR or _WHOLE_NUMBER(scalar):
            self._end_value()
        else:
            self.is_possible = False

    def _read_structure(self, text: str, position: int) -> int:
        """Read white space, or one character between values."""
        end = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty string
        if end > position or not self.is_possible:
            return end
        char = text[position]
        if self._is_over:
            self.is_possible = False
        elif char == '"':
            self._open_string()
        elif char in "{[":
            self._open_container(char)
        elif char in "}]":
            self._close_container(char)
        elif (char, self._expected) == (":", _COLON):
            self._expected = _VALUE
        elif (char, self._expected) == (",", _COMMA):
            self._expected = _KEY if self._stack[-1] == "{" else _VALUE
        else:
            self.is_possible = False
        return position + 1

    def _open_string(self) -> None:
        self.is_possible = self._expected not in (_COLON, _COMMA)
        self._in_string = True

    def _open_container(self, char: str) -> None:
        if self._expected not in (_VALUE, _FIRST_ITEM):
            self.is_possible = False
            return
        self._is_object = self._is_object or (not self._stack and char == "{")
        self._stack.append(char)
        self._expected = _FIRST_KEY if char == "{" else _FIRST_ITEM

    def _close_container(self, char: str) -> None:
        opener, first = ("{", _FIRST_KEY) if char == "}" else ("[", _FIRST_ITEM)
        if not self._stack or self._stack[-1] != opener or self._expected not in (_COMMA, first):
            self.is_possible = False
            return
        self._stack.pop()
        self._expected = _COMMA
        self._is_over = not self._stack

    def _end_value(self) -> None:
        """Note the end of a string or scalar: of a key, a member's value, an item, or everything."""
        if self._expected in (_KEY, _FIRST_KEY):
            self._expected = _COLON
            return
        self._expected = _COMMA
        self._is_over = not self._stack
