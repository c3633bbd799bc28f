"""The parts of a parsed command line: simple commands, their redirections, and problems with the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from callwright.agent.policy.judgement import Tier
from callwright.agent.policy.shell_words import CommandStream, ShellWord

if TYPE_CHECKING:
    from callwright.agent.policy.shell_script import ShellScript

__all__ = ["WORKSPACE_CONTEXT", "Redirection", "ScriptContext", "ScriptProblem", "ShellCommand"]


class Redirection(NamedTuple):
    """`> target`, `2>> target`, `< target`; a numeric target is another descriptor."""

    operator: str
    target: ShellWord

    @property
    def can_write(self) -> bool:
        """Whether it may change its target."""
        to_descriptor = self.operator.endswith("&") and self.target.text.rstrip("-").isdigit()
        return ">" in self.operator and not to_descriptor and self.target.text != "-"


class ShellCommand(NamedTuple):
    """One simple command, as far as its text determines it."""

    argv: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    stdin: CommandStream | None = None
    folder: str | None = "."
    """The folder in which it runs: relative to the workspace, absolute, below `~`, or None if unknown."""
    script: ShellScript | None = None
    """The script that contains it; a nested script sees the variables and functions of this one."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.argv[0].known_text.rpartition("/")[2] if self.argv else ""

    def with_argv(self, argv: Sequence[ShellWord]) -> ShellCommand:
        """Return the command with another program, for what a wrapper runs."""
        return self._replace(argv=tuple(argv), assignments=(), redirections=())


class ScriptProblem(NamedTuple):
    """Why a text may not do what it seems to do."""

    tier: Tier
    why: str


class ScriptContext(NamedTuple):
    """Where a script runs: its folder, the script around it, its parameters and its input."""

    folder: str | None = "."
    parent: ShellScript | None = None
    parameters: tuple[str, ...] = ()
    """`$0` and the positional parameters."""
    stdin: CommandStream | None = None
    alias: str = ""
    """The alias that the script expands."""


WORKSPACE_CONTEXT = ScriptContext()
"""The top of the workspace, outside any script."""
