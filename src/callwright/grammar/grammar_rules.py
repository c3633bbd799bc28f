"""GBNF, llama.cpp's notation for grammars: how its terminals are written, and a set of rules with names.

vLLM takes the same text: xgrammar's EBNF is this notation. Source: `grammars/README.md` of llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["MAX_REPEATS", "GrammarRules", "format_char_class", "format_choice", "format_literal", "format_repetition"]

MAX_REPEATS = 500
"""Of one thing in a row; beyond it no limit is set. llama.cpp refuses a grammar where the repetitions inside one rule,
multiplied, come to 2000 (`MAX_REPETITION_THRESHOLD` in `llama-grammar.cpp`)."""

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_NAME_SEPARATORS = re.compile(r"[^a-z0-9]+")


def format_literal(text: str) -> str:
    """A terminal that is exactly this text."""
    return '"' + "".join(_escape_char(char, '"') for char in text) + '"'


def format_char_class(chars: str) -> str:
    """Characters as members of a class, without its brackets."""
    return "".join(_escape_char(char, "[]^-") for char in chars)


def _escape_char(char: str, special: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char in special and char != '"':
        # Only a few escapes are known there, and `\-` is not one of them.
        return f"\\x{ord(char):02X}"
    if char in special:
        return f"\\{char}"
    return f"\\x{ord(char):02X}" if ord(char) < 0x20 else char


def format_choice(choices: Sequence[str]) -> str:
    """One of several, in brackets where there is more than one."""
    return choices[0] if len(choices) == 1 else f"({' | '.join(choices)})"


def format_repetition(what: str, least: int, most: int | None) -> str:
    """So many in a row. Where there is no end to it, or one too far off, there is none."""
    least = min(least, MAX_REPEATS)
    if most is None or most > MAX_REPEATS:
        return f"{what}*" if not least else f"{what}{{{least},}}"
    return f"{what}{{{least},{most}}}" if most else '""'


class GrammarRules:
    """Rules by name, the root first."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def add_rule(self, hint: str, body: str = "") -> str:
        """Take a rule in under a name like the hint; returns the name. The body of a rule that calls itself can be set
        afterwards."""
        wanted = _NAME_SEPARATORS.sub("-", hint.lower()).strip("-") or "rule"
        name, number = wanted, 1
        while name in self._rules:
            number += 1
            name = f"{wanted}-{number}"
        self._rules[name] = body
        return name

    def set_rule(self, name: str, body: str) -> str:
        """Say what a rule is; returns its name."""
        self._rules[name] = body
        return name

    @property
    def text(self) -> str:
        """The grammar."""
        return "\n".join(f"{name} ::= {body}" for name, body in self._rules.items()) + "\n"
