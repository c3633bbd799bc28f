"""Facts about programs, from `programs.toml`: which options take a value, what runs what, which words are files."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from callwright.agent.policy.command import Command
from callwright.agent.policy.options import Options, options_of
from callwright.agent.policy.values import Tier
from callwright.agent.policy.words import Word

__all__ = ["Program", "program", "under"]


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known about a program, or about one of its subcommands; the file says what each field means."""

    values: tuple[str, ...] = ()
    runs: Literal["rest", "joined"] | None = None
    skip: int = 0
    text: tuple[str, ...] = ()
    assigns: bool = False
    fetches: bool = False
    tier: Tier | None = None
    why: str = ""
    writes: Literal["all", "last", "rest"] | None = None
    plain: Literal["none", "all", "first"] = "none"

    def options(self, argv: Sequence[Word]) -> Options:
        """The words of a command of this program; of a wrapper, those before the command that it runs."""
        return options_of(argv, self.values, first_ends=self.runs == "rest")


_UNKNOWN = Program()


@cache
def _programs() -> dict[str, Program]:
    text = files("callwright.agent.policy").joinpath("programs.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Program])


@cache
def _with_subcommands() -> frozenset[str]:
    return frozenset(name.partition(" ")[0] for name in _programs() if " " in name)


def program(name: str) -> Program:
    """What is known about a program; nothing, if it is not in the file."""
    return _programs().get(name, _UNKNOWN)


def under(command: Command) -> tuple[Program, tuple[Word, ...]] | None:
    """The facts about the subcommand of a command, and its words from there on, if it has some of its own."""
    if command.name not in _with_subcommands():
        return None
    options = program(command.name).options(command.argv)
    for skip in {0, options.loose}:
        words = options.operands[skip:]
        for length in (2, 1):
            found = _programs().get(" ".join([command.name, *(word.bare for word in words[:length])]))
            if found and len(words) >= length:
                at = next(at for at, word in enumerate(command.argv) if word is words[length - 1])
                return found, command.argv[at:]
    return None
