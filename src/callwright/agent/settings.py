"""What a person sets about the agent."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["AgentSettings", "TaskLimits"]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class TaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All of the settings that the loop's course depends on; kept with each task, so that it can be played again."""

    max_iterations: int = 50
    max_tokens: int = 0
    timeout_seconds: float = 0
    condense: float = 0.8


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[agent]` table: how far the agent may go by itself."""

    model: str = ""
    """The model that works; empty for the first that there is."""
    max_iterations: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    """Maximum number of model calls in one task."""
    max_tokens: _Count = 0
    """Maximum number of tokens that one task uses, over all its model calls; 0 = no limit."""
    timeout_seconds: _Seconds = 0
    """Maximum working time of one task; time spent waiting for a person does not count. 0 = no limit."""
    answer_tokens: _Count = 0
    """How long one answer of the model may be; 0 for a quarter of a small window, else for any length."""
    approve: Literal["ask", "commands", "edits", "all"] = "ask"
    """What is approved without asking: nothing, commands, edits of protected files, or both. What is critical is asked
    for whatever is said here."""
    branch: bool = False
    """Make a git branch for each task."""
    network: bool = True
    """Commands in the sandbox reach the network."""
    sandbox: Literal["auto", "always", "never"] = "auto"
    """Run commands in bubblewrap where it works, not at all without it, or without it."""
    command_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120
    """How long a command may run unless its call says otherwise."""
    condense: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    """How full the model's window may be before older messages are shortened."""
    instructions: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md")
    """Files of the workspace that the model is told at the start; the first one there is."""

    @property
    def limits(self) -> TaskLimits:
        """How far one task may go."""
        return TaskLimits(
            max_iterations=self.max_iterations,
            max_tokens=self.max_tokens,
            timeout_seconds=self.timeout_seconds,
            condense=self.condense,
        )
