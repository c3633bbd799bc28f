"""What a command line is taken apart into: simple commands, their redirections, and what was wrong with the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from callwright.agent.policy.values import Tier
from callwright.agent.policy.words import Stream, Word

if TYPE_CHECKING:
    from callwright.agent.policy.shell import Script

__all__ = ["NOWHERE", "Around", "Command", "Redirection", "Trouble"]


class Redirection(NamedTuple):
    """`> target`, `2>> target`, `< target`; a target that is a number is another descriptor."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """It may change its target."""
        to_descriptor = self.operator.endswith("&") and self.target.text.rstrip("-").isdigit()
        return ">" in self.operator and not to_descriptor and self.target.text != "-"


class Command(NamedTuple):
    """One simple command, as far as the text tells."""

    argv: tuple[Word, ...]
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    stdin: Stream | None = None
    place: str | None = "."
    """Where it runs: relative to the workspace, absolute, below `~`, or None if that is unknown."""
    body: Script | None = None
    """The script that it stands in: whose variables and functions a script of its own sees."""

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.argv[0].bare.rpartition("/")[2] if self.argv else ""

    def running(self, argv: Sequence[Word]) -> Command:
        """The same surroundings with another program, for what a wrapper runs."""
        return self._replace(argv=tuple(argv), assignments=(), redirections=())


class Trouble(NamedTuple):
    """Why a text cannot be trusted to be what it looks like."""

    tier: Tier
    why: str


class Around(NamedTuple):
    """Where a script runs: in which folder, within which other script, with which parameters and input."""

    place: str | None = "."
    parent: Script | None = None
    given: tuple[str, ...] = ()
    """`$0` and the positional parameters."""
    stdin: Stream | None = None
    alias: str = ""
    """The alias that it stands for."""


NOWHERE = Around()
"""At the top of the workspace, within nothing."""
