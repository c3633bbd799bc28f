"""Repair JSON that is almost valid. Every repair has a name, and valid JSON stays unchanged.

One tolerant reader accepts JSON, Python literals, and both with the mistakes that models make: single quotes, bare
keys, comments, raw control characters, trailing or missing commas, brackets that are never closed. It works on
complete texts; `json_stream` is for text that still arrives.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from callwright.input_limits import MAX_JSON_DEPTH, MAX_NUMBER_LENGTH
from callwright.model import Repair
from callwright.text.json_stream import escape_json
from callwright.text.nesting import is_deeper_than
from callwright.text.repair_log import RepairLog

__all__ = ["RepairedJson", "convert_python_literal", "is_json", "parse_json", "repair_json"]

PYTHON_REPAIR_KINDS = frozenset({"single_quotes", "python_word", "tuple", "trailing_comma", "python_escape"})
"""Repairs that only turn a plain Python literal into JSON. All other repairs mean that the JSON was damaged."""

_LITERAL_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z").match
_BARE_WORD = re.compile(r"[^\s,:\[\]{}()\"']+")
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_SIMPLE_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "a": "\a", "v": "\v", "0": "\0"}
_HEX_SIZES = {"x": 2, "u": 4, "U": 8}
_CLOSERS = {"{": "}", "[": "]", "(": ")"}


class RepairedJson(msgspec.Struct, frozen=True):
    """Valid JSON and the repairs that made it valid."""

    text: str
    repairs: tuple[Repair, ...]

    @property
    def is_lossy(self) -> bool:
        """Whether a key was dropped because it had no value: the JSON says less than the text."""
        return any(repair.kind == "dropped_key" for repair in self.repairs)


class _UnrepairableError(Exception):
    """The text contains no value that can be read."""


def parse_json(text: str, max_depth: int = MAX_JSON_DEPTH) -> Any:
    """Parse strict JSON; raise `ValueError` for anything else, including NaN and nesting that is too deep."""
    try:
        value = json.loads(text, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # Counting brackets is cheap, and most texts have too few for any depth.
    if text.count("[") + text.count("{") > max_depth and is_deeper_than(value, max_depth):
        raise ValueError("nested too deeply")
    return value


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def is_json(text: str, max_depth: int = MAX_JSON_DEPTH) -> bool:
    """Whether a text is strict JSON."""
    try:
        parse_json(text, max_depth)
    except ValueError:
        return False
    return True


def repair_json(text: str, max_depth: int = MAX_JSON_DEPTH) -> RepairedJson | None:
    """Return the text as valid JSON with its repairs, or None if it contains no value that can be read."""
    if is_json(text, max_depth):
        return RepairedJson(text, ())
    reader = _TolerantReader(text, max_depth)
    try:
        repaired = reader.read_value(0)
    except _UnrepairableError:
        return None
    if reader.skip_to_rest():
        return None
    return RepairedJson(repaired, reader.repairs.build_repairs())


def convert_python_literal(text: str, max_depth: int = MAX_JSON_DEPTH) -> str | None:
    """Convert a text that is strict JSON or a plain Python literal to JSON; None for anything else."""
    repaired = repair_json(text, max_depth)
    if repaired is None or any(repair.kind not in PYTHON_REPAIR_KINDS for repair in repaired.repairs):
        return None
    return repaired.text


class _TolerantReader:
    """A recursive-descent reader of one text."""

    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self._max_depth = max_depth
        self.position = 0
        self.repairs = RepairLog()
        self._add_repair = self.repairs.add_repair

    def skip_to_rest(self) -> str:
        self._skip_space()
        return self.text[self.position :]

    def read_value(self, depth: int) -> str:
        char = self._skip_space()
        if depth >= self._max_depth and char in _CLOSERS:
            raise _UnrepairableError
        if char == "{":
            return self._read_object(depth)
        if char in ("[", "("):
            return self._read_array(depth, _CLOSERS[char])
        if char in ('"', "'"):
            return self._read_string(char)
        return self._read_bare_value()

    def _skip_space(self) -> str:
        """Skip white space and comments, and return the next character; empty at the end."""
        end = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]  # it matches the empty string
        if comment := self.text[self.position : end].strip():
            self._add_repair("dropped_comment", f"the JSON contained a comment: {comment}")
        self.position = end
        return self.text[end : end + 1]

    def _read_object(self, depth: int) -> str:
        self.position += 1
        members: list[str] = []
        while self._move_to_next("}", members):
            key = self._read_key()
            if self._skip_space() != ":":
                # Truncated after a key: a key without a value is dropped.
                self._add_repair("dropped_key", f"the key {key} had no value")
                continue
            self.position += 1
            if not self._skip_space():
                self._add_repair("dropped_key", f"the key {key} had no value")
                continue
            members.append(f"{key}: {self.read_value(depth + 1)}")
        return "{" + ", ".join(members) + "}"

    def _read_array(self, depth: int, closer: str) -> str:
        if closer == ")":
            self._add_repair("tuple", "a Python tuple became an array")
        self.position += 1
        items: list[str] = []
        while self._move_to_next(closer, items):
            items.append(self.read_value(depth + 1))
        return "[" + ", ".join(items) + "]"

    def _move_to_next(self, closer: str, before: list[str]) -> bool:
        """Move to the next member, or past the closer. Return whether there is a next member."""
        char = self._skip_space()
        comma = char == ","
        if comma:
            self.position += 1
            char = self._skip_space()
        if not char:
            self._add_repair("closed_bracket", f"{closer!r} was missing at the end")
            return False
        if char == closer:
            self.position += 1
            if comma:
                self._add_repair("trailing_comma", f"a comma was written before {closer!r}")
            return False
        if char in ",)]}:":
            raise _UnrepairableError
        if before and not comma:
            self._add_repair("missing_comma", f"a comma was missing before {char!r}")
        return True

    def _read_key(self) -> str:
        char = self._skip_space()
        if char in ('"', "'"):
            return self._read_string(char)
        word = self._read_word()
        self._add_repair("quoted_key", f"the key {word!r} was not in quotes")
        return f'"{escape_json(word)}"'

    def _read_word(self) -> str:
        match = _BARE_WORD.match(self.text, self.position)
        if match is None:
            raise _UnrepairableError
        self.position = match.end()
        return match.group()

    def _read_bare_value(self) -> str:
        word = self._read_word()
        if word in _LITERAL_WORDS:
            if word not in ("true", "false", "null"):
                self._add_repair("python_word", f"{word} became {_LITERAL_WORDS[word]}")
            return _LITERAL_WORDS[word]
        if len(word) > MAX_NUMBER_LENGTH:
            raise _UnrepairableError
        if _NUMBER(word):
            return word
        return self._convert_number(word) or self._complete_word(word)

    def _convert_number(self, word: str) -> str:
        try:
            number = float(word)
        except ValueError:
            return ""
        if not math.isfinite(number):
            self._add_repair("non_finite", f"JSON has no {word}")
            return "null"
        self._add_repair("number_form", f"{word} is not how JSON writes a number")
        digits = word.lstrip("+-")
        return str(int(word)) if digits.replace("_", "").isdecimal() else repr(number)

    def _complete_word(self, word: str) -> str:
        """Complete a literal that the end of the text cut short."""
        if self.position == len(self.text):
            for full, meaning in _LITERAL_WORDS.items():
                if full.startswith(word):
                    self._add_repair("completed_word", f"{word} was completed to {full}")
                    return meaning
        raise _UnrepairableError

    def _read_string(self, quote: str) -> str:
        if quote == "'":
            self._add_repair("single_quotes", "a string was in single quotes")
        fence = quote * 3 if self.text.startswith(quote * 3, self.position) else quote
        self.position += len(fence)
        parts: list[str] = []
        while True:
            start = self.position
            char = self.text[start : start + 1]
            if not char:
                self._add_repair("closed_string", "a string was not closed")
                break
            if self.text.startswith(fence, start):
                self.position += len(fence)
                break
            self.position += 1
            if char == "\\":
                parts.append(self._read_escape())
                continue
            if char < " ":
                self._add_repair("escaped_control_character", f"a string contained a raw {char!r}")
            parts.append(char)
        return f'"{escape_json("".join(parts))}"'

    def _read_escape(self) -> str:
        """Return the character that an escape represents; the backslash is already consumed."""
        char = self.text[self.position : self.position + 1]
        self.position += len(char)
        if char in ('"', "\\", "'", "\n"):
            if char in ("'", "\n"):
                self._add_repair("python_escape", f"JSON has no escape {char!r}")
            return "" if char == "\n" else char
        if char in _SIMPLE_ESCAPES:
            if char in "av0":
                self._add_repair("python_escape", f"JSON has no escape \\{char}")
            return _SIMPLE_ESCAPES[char]
        size = _HEX_SIZES.get(char, 0)
        digits = self.text[self.position : self.position + size]
        if size and len(digits) == size and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            return self._decode_code_point(char, digits)
        self._add_repair("escaped_backslash", f"there is no escape \\{char}")
        return "\\" + char

    def _decode_code_point(self, letter: str, digits: str) -> str:
        self.position += len(digits)
        if letter != "u":
            self._add_repair("python_escape", f"JSON has no escape \\{letter}")
        code = int(digits, 16)
        if 0xD800 <= code < 0xDC00 and self.text[self.position : self.position + 2] == "\\u":
            low = self.text[self.position + 2 : self.position + 6]
            try:
                pair = bytes.fromhex(digits + low).decode("utf-16-be")
            except ValueError:
                return chr(code)
            self.position += 6
            return pair
        return chr(min(code, 0x10FFFF))
