"""GBNF, llama.cpp's grammar notation: how terminals are written, and a set of named rules.

vLLM accepts the same text: xgrammar's EBNF is this notation. Source: `grammars/README.md` of llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from callwright.input_limits import MAX_GRAMMAR_WORK, MAX_RULE_HINT_LENGTH, WorkBudget

__all__ = ["MAX_REPEATS", "GrammarRules", "format_char_class", "format_choice", "format_literal", "format_repetition"]

MAX_REPEATS = 500
"""The maximum repetitions of one item; a higher limit is dropped. llama.cpp refuses a grammar where the product of the
repetitions inside one rule reaches 2000 (`MAX_REPETITION_THRESHOLD` in `llama-grammar.cpp`)."""

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
_NAME_SEPARATORS = re.compile(r"[^a-z0-9]+")


def format_literal(text: str) -> str:
    """Format a terminal that matches exactly this text."""
    return '"' + "".join(_escape_char(char, '"') for char in text) + '"'


def format_char_class(chars: str) -> str:
    """Format characters as members of a character class, without its brackets."""
    return "".join(_escape_char(char, "[]^-") for char in chars)


def _escape_char(char: str, special: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char in special and char != '"':
        # Only a few escapes are supported there, and `\-` is not one of them.
        return f"\\x{ord(char):02X}"
    if char in special:
        return f"\\{char}"
    return f"\\x{ord(char):02X}" if ord(char) < 0x20 else char


def format_choice(choices: Sequence[str]) -> str:
    """Format alternatives, in brackets if there is more than one."""
    return choices[0] if len(choices) == 1 else f"({' | '.join(choices)})"


def format_repetition(item: str, minimum: int, maximum: int | None) -> str:
    """Format a repetition. Without a maximum, or with one that is too high, it is unlimited."""
    minimum = min(minimum, MAX_REPEATS)
    if maximum is None or maximum > MAX_REPEATS:
        return f"{item}*" if not minimum else f"{item}{{{minimum},}}"
    return f"{item}{{{minimum},{maximum}}}" if maximum else '""'


class GrammarRules:
    """Rules by name, the root first."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._next_numbers: dict[str, int] = {}
        self.budget = WorkBudget(MAX_GRAMMAR_WORK)
        """The work that schemas may still cause, measured in characters."""

    def add_rule(self, hint: str, body: str = "") -> str:
        """Add a rule under a name like the hint, and return the name. The body of a recursive rule can be set later."""
        base_name = _NAME_SEPARATORS.sub("-", hint[:MAX_RULE_HINT_LENGTH].lower()).strip("-") or "rule"
        name, number = base_name, self._next_numbers.get(base_name, 2)
        while name in self._rules:
            name = f"{base_name}-{number}"
            number += 1
        self._next_numbers[base_name] = number
        self._rules[name] = body
        return name

    def set_rule(self, name: str, body: str) -> str:
        """Set the body of a rule and return its name."""
        self._rules[name] = body
        return name

    @property
    def text(self) -> str:
        """The text of the grammar."""
        return "\n".join(f"{name} ::= {body}" for name, body in self._rules.items()) + "\n"
