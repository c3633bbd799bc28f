"""Regular expressions as GBNF, for the `pattern` of a string inside JSON.

Supported is what reads the same in both and needs no escape in JSON: literals, classes, groups, alternatives,
repetitions and the anchors at both ends. For anything else (look-around, back references, `\\b`) the result is None:
the string is then not constrained by its pattern, and the guard checks it afterwards.
"""

from __future__ import annotations

import re

from callwright.grammar.grammar_rules import MAX_REPEATS, format_char_class, format_choice, format_literal
from callwright.input_limits import MAX_PATTERN_DEPTH, MAX_PATTERN_LENGTH

__all__ = ["ANY_CHARACTER", "build_pattern_rule"]

ANY_CHARACTER = r'[^"\\\x00-\x1F]'
"""Any character of a JSON string that needs no escape."""

_CLASS_MEMBERS = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": " ",
    "D": '^"\\\\\\x00-\\x1F0-9',
    "W": '^"\\\\\\x00-\\x1F0-9A-Za-z_',
    "S": '^"\\\\\\x00-\\x20',
}
_match_repeat = re.compile(r"([*+?])|\{(\d+)(?:(,)(\d*))?\}").match
_match_set = re.compile(r"\[(\^?)((?:\\[dws.\-/+*?()\[\]{}^$|]|[^\]\\\[\"\x00-\x1f])+)\]").match
_iter_set_parts = re.compile(r"\\([dws])|(\\?.)").finditer
_match_plain = re.compile(r"\\([^\w\s\"\\])|([^\\\"\x00-\x1f.\[\](){}|*+?^$])").match
_match_class = re.compile(r"\\([dwsDWS])").match


class _UnsupportedPatternError(ValueError):
    """The pattern has something that is not translated."""


def build_pattern_rule(pattern: str) -> str | None:
    """Return what may stand between the quotes, as the right-hand side of a rule; None if it cannot be translated."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return None
    at_start, at_end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[at_start : len(pattern) - at_end]
    reader = _PatternReader(body)
    try:
        choices = reader.read_choices()
    except _UnsupportedPatternError:
        return None
    # An anchor binds to its own alternative only: `^a|b$`.
    if reader.rest or (len(choices) > 1 and (at_start or at_end)):
        return None
    anything = f"{ANY_CHARACTER}*"
    return " ".join(filter(None, ("" if at_start else anything, format_choice(choices), "" if at_end else anything)))


class _PatternReader:
    """Reads one pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.rest = text
        self._depth = 0

    def read_choices(self) -> list[str]:
        """Read the alternatives up to a closing bracket or the end."""
        choices = [self._read_sequence()]
        while self.rest.startswith("|"):
            self.rest = self.rest[1:]
            choices.append(self._read_sequence())
        return choices

    def _read_sequence(self) -> str:
        parts: list[str] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._read_atom() + self._read_repeat())
        return " ".join(parts) or '""'

    def _read_atom(self) -> str:
        if self.rest.startswith("("):
            self.rest = self.rest[1:].removeprefix("?:")
            self._depth += 1
            if self.rest.startswith("?") or self._depth > MAX_PATTERN_DEPTH:
                raise _UnsupportedPatternError
            inner = " | ".join(self.read_choices())
            self._depth -= 1
            if not self.rest.startswith(")"):
                raise _UnsupportedPatternError
            self.rest = self.rest[1:]
            return f"({inner})"
        if self.rest.startswith("."):
            self.rest = self.rest[1:]
            return ANY_CHARACTER
        if match := _match_class(self.rest):
            self.rest = self.rest[match.end() :]
            return f"[{_CLASS_MEMBERS[match[1]]}]"
        if match := _match_set(self.rest):
            self.rest = self.rest[match.end() :]
            return f"[{_format_members(match[1], match[2])}]"
        if match := _match_plain(self.rest):
            self.rest = self.rest[match.end() :]
            return format_literal(match[1] or match[2])
        raise _UnsupportedPatternError

    def _read_repeat(self) -> str:
        match = _match_repeat(self.rest)
        if not match:
            return ""
        self.rest = self.rest[match.end() :]
        if self.rest[:1] in ("?", "+"):
            raise _UnsupportedPatternError
        sign, minimum, comma, maximum = match.groups()
        if sign:
            return sign
        if int(maximum or minimum) > MAX_REPEATS:
            raise _UnsupportedPatternError
        return f"{{{minimum}{comma or ''}{maximum or ''}}}"


def _format_members(negated: str, body: str) -> str:
    """Format the inside of a class. A negated class still excludes the characters that end the string."""
    parts = ['^"\\\\\\x00-\\x1F'] if negated else []
    at_edge = {0, len(body) - 1}
    for part in _iter_set_parts(body):
        if part[1]:
            parts.append(_CLASS_MEMBERS[part[1]])
        elif part[2] == "-" and part.start() not in at_edge:
            parts.append("-")
        else:
            parts.append(format_char_class(part[2].removeprefix("\\")))
    return "".join(parts)
