"""The settings of the agent."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["AgentSettings", "TaskLimits"]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class TaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that affect the loop; stored with each task, so that it can be replayed."""

    max_iterations: int = 50
    max_tokens: int = 0
    timeout_seconds: float = 0
    condense: float = 0.8


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[agent]` table: the model and the limits of the agent."""

    model: str = ""
    """Name of the model that the agent uses; empty = the first model."""
    max_iterations: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    """Maximum number of model calls in one task."""
    max_tokens: _Count = 0
    """Maximum number of tokens that one task uses, over all its model calls; 0 = no limit."""
    timeout_seconds: _Seconds = 0
    """Maximum running time of one task; time spent waiting for approvals does not count. 0 = no limit."""
    answer_tokens: _Count = 0
    """Maximum number of tokens in one answer; 0 = a quarter of the context window if that is small, else no limit."""
    approve: Literal["ask", "commands", "edits", "all"] = "ask"
    """What runs without approval: nothing, commands, edits of protected files, or both. Critical commands always need
    approval.
    """
    branch: bool = False
    """Create a git branch for each task."""
    network: bool = True
    """Whether commands in the sandbox can use the network."""
    sandbox: Literal["auto", "always", "never"] = "auto"
    """Run commands in bubblewrap if it works (auto), refuse to run without it (always), or run without it (never)."""
    command_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120
    """Timeout of a command, unless its call sets another one."""
    condense: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    """How full the model's context window may be (0 to 1) before older messages are shortened."""
    instructions: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md")
    """Files of the workspace with instructions for the model; the first one that exists is used."""

    @property
    def limits(self) -> TaskLimits:
        """The limits of one task."""
        return TaskLimits(
            max_iterations=self.max_iterations,
            max_tokens=self.max_tokens,
            timeout_seconds=self.timeout_seconds,
            condense=self.condense,
        )
