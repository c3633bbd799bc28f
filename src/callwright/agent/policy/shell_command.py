"""What a command line is taken apart into: simple commands, their redirections, and what was wrong with the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from callwright.agent.policy.judgement import Tier
from callwright.agent.policy.shell_words import CommandStream, ShellWord

if TYPE_CHECKING:
    from callwright.agent.policy.shell_script import ShellScript

__all__ = ["WORKSPACE_CONTEXT", "Redirection", "ScriptContext", "ScriptProblem", "ShellCommand"]


class Redirection(NamedTuple):
    """`> target`, `2>> target`, `< target`; a target that is a number is another descriptor."""

    operator: str
    target: ShellWord

    @property
    def can_write(self) -> bool:
        """It may change its target."""
        to_descriptor = self.operator.endswith("&") and self.target.text.rstrip("-").isdigit()
        return ">" in self.operator and not to_descriptor and self.target.text != "-"


class ShellCommand(NamedTuple):
    """One simple command, as far as the text tells."""

    argv: tuple[ShellWord, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    stdin: CommandStream | None = None
    folder: str | None = "."
    """Where it runs: relative to the workspace, absolute, below `~`, or None if that is unknown."""
    script: ShellScript | None = None
    """The script that it stands in: whose variables and functions a script of its own sees."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.argv[0].known_text.rpartition("/")[2] if self.argv else ""

    def with_argv(self, argv: Sequence[ShellWord]) -> ShellCommand:
        """The same surroundings with another program, for what a wrapper runs."""
        return self._replace(argv=tuple(argv), assignments=(), redirections=())


class ScriptProblem(NamedTuple):
    """Why a text cannot be trusted to be what it looks like."""

    tier: Tier
    why: str


class ScriptContext(NamedTuple):
    """Where a script runs: in which folder, within which other script, with which parameters and input."""

    folder: str | None = "."
    parent: ShellScript | None = None
    parameters: tuple[str, ...] = ()
    """`$0` and the positional parameters."""
    stdin: CommandStream | None = None
    alias: str = ""
    """The alias that it stands for."""


WORKSPACE_CONTEXT = ScriptContext()
"""At the top of the workspace, within nothing."""
