"""Facts about programs from `programs.toml`: which options take a value, what runs commands, which words are files."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from callwright.agent.policy.command_options import CommandOptions, parse_options
from callwright.agent.policy.judgement import Tier
from callwright.agent.policy.shell_command import ShellCommand
from callwright.agent.policy.shell_words import ShellWord

__all__ = ["ProgramFacts", "find_subcommand", "get_program_facts"]


class ProgramFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Facts about a program or one of its subcommands; `programs.toml` explains each field."""

    value_options: tuple[str, ...] = ()
    runs: Literal["rest", "joined"] | None = None
    skip_operands: int = 0
    script_options: tuple[str, ...] = ()
    takes_assignments: bool = False
    may_download: bool = False
    tier: Tier | None = None
    why: str = ""
    output_operands: Literal["all", "last", "rest"] | None = None
    non_file_operands: Literal["none", "all", "first"] = "none"

    def parse_argv(self, argv: Sequence[ShellWord]) -> CommandOptions:
        """Parse the words of a command of this program; for a wrapper, those before the command that it runs."""
        return parse_options(argv, self.value_options, stop_at_operand=self.runs == "rest")


_NO_FACTS = ProgramFacts()


@cache
def _load_programs() -> dict[str, ProgramFacts]:
    text = files("callwright.agent.policy").joinpath("programs.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, ProgramFacts])


@cache
def _list_parent_programs() -> frozenset[str]:
    return frozenset(name.partition(" ")[0] for name in _load_programs() if " " in name)


def get_program_facts(name: str) -> ProgramFacts:
    """Return the facts about a program; empty facts if it is not in the file."""
    return _load_programs().get(name, _NO_FACTS)


def find_subcommand(command: ShellCommand) -> tuple[ProgramFacts, tuple[ShellWord, ...]] | None:
    """Return the facts about a command's subcommand and its words from there on, if the file has such facts."""
    if command.name not in _list_parent_programs():
        return None
    options = get_program_facts(command.name).parse_argv(command.argv)
    for skip in {0, options.ambiguous_count}:
        words = options.operands[skip:]
        for length in (2, 1):
            found = _load_programs().get(" ".join([command.name, *(word.known_text for word in words[:length])]))
            if found and len(words) >= length:
                at = next(at for at, word in enumerate(command.argv) if word is words[length - 1])
                return found, command.argv[at:]
    return None
