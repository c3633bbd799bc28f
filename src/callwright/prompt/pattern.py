"""Regular expressions as GBNF, for the `pattern` of a string inside JSON.

Only what reads the same in both and needs no escape in JSON: literals, classes, groups, alternatives, repetitions and
the anchors at both ends. Anything else (look-around, back references, `\\b`) is None: the string is then not held to
its pattern, and the guard checks it when it is written.
"""

from __future__ import annotations

import re

from callwright.prompt.rules import REPEATS, char_class, either, literal

__all__ = ["ANY_CHARACTER", "pattern_rule"]

ANY_CHARACTER = r'[^"\\\x00-\x1F]'
"""Of a JSON string, without escapes."""

_CLASSES = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": " ",
    "D": '^"\\\\\\x00-\\x1F0-9',
    "W": '^"\\\\\\x00-\\x1F0-9A-Za-z_',
    "S": '^"\\\\\\x00-\\x20',
}
_REPEAT = re.compile(r"([*+?])|\{(\d+)(?:(,)(\d*))?\}").match
_SET = re.compile(r"\[(\^?)((?:\\[dws.\-/+*?()\[\]{}^$|]|[^\]\\\[\"\x00-\x1f])+)\]").match
_SET_PART = re.compile(r"\\([dws])|(\\?.)").finditer
_PLAIN = re.compile(r"\\([^\w\s\"\\])|([^\\\"\x00-\x1f.\[\](){}|*+?^$])").match
_CLASS = re.compile(r"\\([dwsDWS])").match


class _UnknownError(ValueError):
    """The pattern has something that is not translated."""


def pattern_rule(pattern: str) -> str | None:
    """What may stand between the quotes, as the right-hand side of a rule; None when that cannot be said."""
    begins, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[begins : len(pattern) - ends]
    reader = _Pattern(body)
    try:
        choices = reader.choices()
    except _UnknownError:
        return None
    # An anchor binds to its own alternative only: `^a|b$`.
    if reader.rest or (len(choices) > 1 and (begins or ends)):
        return None
    anything = f"{ANY_CHARACTER}*"
    return " ".join(filter(None, ("" if begins else anything, either(choices), "" if ends else anything)))


class _Pattern:
    """Reads one pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def choices(self) -> list[str]:
        """The alternatives up to a closing bracket or the end."""
        found = [self._sequence()]
        while self.rest.startswith("|"):
            self.rest = self.rest[1:]
            found.append(self._sequence())
        return found

    def _sequence(self) -> str:
        parts: list[str] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._atom() + self._repeat())
        return " ".join(parts) or '""'

    def _atom(self) -> str:
        if self.rest.startswith("("):
            self.rest = self.rest[1:].removeprefix("?:")
            if self.rest.startswith("?"):
                raise _UnknownError
            inner = " | ".join(self.choices())
            if not self.rest.startswith(")"):
                raise _UnknownError
            self.rest = self.rest[1:]
            return f"({inner})"
        if self.rest.startswith("."):
            self.rest = self.rest[1:]
            return ANY_CHARACTER
        if found := _CLASS(self.rest):
            self.rest = self.rest[found.end() :]
            return f"[{_CLASSES[found[1]]}]"
        if found := _SET(self.rest):
            self.rest = self.rest[found.end() :]
            return f"[{_members(found[1], found[2])}]"
        if found := _PLAIN(self.rest):
            self.rest = self.rest[found.end() :]
            return literal(found[1] or found[2])
        raise _UnknownError

    def _repeat(self) -> str:
        found = _REPEAT(self.rest)
        if not found:
            return ""
        self.rest = self.rest[found.end() :]
        if self.rest[:1] in ("?", "+"):
            raise _UnknownError
        sign, least, comma, most = found.groups()
        if sign:
            return sign
        if int(most or least) > REPEATS:
            raise _UnknownError
        return f"{{{least}{comma or ''}{most or ''}}}"


def _members(negated: str, body: str) -> str:
    """The inside of a class. What is not among them may still not end the string."""
    parts = ['^"\\\\\\x00-\\x1F'] if negated else []
    at_edge = {0, len(body) - 1}
    for part in _SET_PART(body):
        if part[1]:
            parts.append(_CLASSES[part[1]])
        elif part[2] == "-" and part.start() not in at_edge:
            parts.append("-")
        else:
            parts.append(char_class(part[2].removeprefix("\\")))
    return "".join(parts)
