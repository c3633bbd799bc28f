"""Parses the words of a command into options, their values, and operands.

Which options take a value depends on the program (`programs.toml`). Where that is unknown, a word after an option may
be its value: `CommandOptions.can_start_with` considers every possible reading.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from callwright.agent.policy.shell_words import ShellWord

__all__ = ["CommandOptions", "parse_options"]

_CLUSTER = re.compile(r"-[A-Za-z0-9]+")


class CommandOptions(NamedTuple):
    """The words of a command after its name."""

    flags: tuple[str, ...]
    """As written: `-rf`, `--force`, `--output=x`."""
    values: tuple[tuple[str, ShellWord], ...]
    """The options that take a value, each with its value."""
    operands: tuple[ShellWord, ...]
    ambiguous_count: int
    """How many of the first operands may be values of the options before them."""
    first_operand_index: int
    """The index of the first operand in argv, or the length of argv if there is none."""

    def has_flag(self, flag: str) -> bool:
        """Return whether a flag is present: `-f` also within `-rf`, `--force` also abbreviated or with a value."""
        return any(_matches_flag(flag, written) for written in self.flags)

    def has_any_flag(self, flags: Collection[str]) -> bool:
        """Return whether any of the flags is present."""
        return any(self.has_flag(flag) for flag in flags)

    def iter_values(self, *names: str) -> Iterator[ShellWord]:
        """Yield all values of an option, under any of its names."""
        return (word for name, word in self.values if name in names)

    def starts_with(self, tokens: Sequence[Collection[str]]) -> bool:
        """Return whether the operands begin with these tokens, in the strict reading."""
        return _matches_tokens(self.operands, tokens)

    def can_start_with(self, tokens: Sequence[Collection[str]]) -> bool:
        """Return whether they begin with these tokens in any reading of which words are option values."""
        return any(_matches_tokens(self.operands[skip:], tokens) for skip in range(self.ambiguous_count + 1))


def parse_options(
    argv: Sequence[ShellWord], takes_value: Collection[str] = (), *, stop_at_operand: bool = False
) -> CommandOptions:
    """Parse argv. With `stop_at_operand`, everything from the first operand on is an operand."""
    flags: list[str] = []
    values: list[tuple[str, ShellWord]] = []
    operands: list[ShellWord] = []
    ambiguous, after_option, rest, at = 0, False, len(argv), 1
    while at < len(argv):
        text = argv[at].known_text
        if text == "--" or not text.startswith("-") or text == "-":
            start = at + (text == "--")
            rest = min(rest, start)
            if start > at or stop_at_operand:
                operands += argv[start:]
                break
            ambiguous += after_option and ambiguous == len(operands)
            operands.append(argv[at])
            after_option = False
            at += 1
            continue
        name, sign, joined = text.partition("=")
        flags.append(text)
        after_option = not sign
        if sign and text.startswith("--"):
            values.append((name, ShellWord(joined)))
        elif short := _parse_short_option(text, takes_value):
            flag, value = short
            if value:
                values.append((flag, ShellWord(value)))
            elif at + 1 < len(argv):
                at += 1
                values.append((flag, argv[at]))
            after_option = False
        at += 1
    return CommandOptions(tuple(flags), tuple(values), tuple(operands), ambiguous, rest)


def _parse_short_option(text: str, takes_value: Collection[str]) -> tuple[str, str] | None:
    """Return the option of a word that takes a value, and the value if it is in the same word (`-n5`, `-xn5`)."""
    if text in takes_value:
        return text, ""
    if not text.startswith("--"):
        for at, letter in enumerate(text[1:], 1):
            if f"-{letter}" in takes_value:
                return f"-{letter}", text[at + 1 :]
    return None


def _matches_flag(flag: str, written: str) -> bool:
    if flag.startswith("--"):
        name = written.partition("=")[0]
        return name == flag or (len(name) > 3 and flag.startswith(name))
    if len(flag) == 2:
        return written == flag or (bool(_CLUSTER.fullmatch(written)) and flag[1] in written[1:])
    return written == flag or written.startswith(f"{flag}=")


def _matches_tokens(operands: Sequence[ShellWord], tokens: Sequence[Collection[str]]) -> bool:
    if len(operands) < len(tokens):
        return False
    return all(
        any(fnmatchcase(word.known_text, choice) for choice in choices)
        for word, choices in zip(operands, tokens, strict=False)
    )
