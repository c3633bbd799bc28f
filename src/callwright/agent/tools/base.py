"""What every tool of the agent is, and the room that it works in.

A tool is one of three kinds, and each can do only what its kind allows. A `Reader` looks at the workspace and answers.
An `Editor` says which files would become what, and writes nothing: whether that happens is decided by others, on the
very change that they are shown. A `Runner` says which command it wants; one terminal runs them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.workspace.workspace import Workspace
from callwright.model import ToolSpec

__all__ = [
    "CommandTool",
    "EditTool",
    "ExternalTool",
    "ReadTool",
    "TerminalCommand",
    "Tool",
    "ToolArguments",
    "ToolContext",
]

ToolArguments = Mapping[str, Any]
"""What a call says, after its JSON was read; aliases of names are settled by the tool's own struct."""


class TerminalCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command for the terminal."""

    text: str
    folder: str = ""
    """Where to run it, from the workspace's root; empty for where the terminal is."""
    seconds: float | None = None
    """How long it may take; None for as long as the settings say."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may use while it runs."""

    workspace: Workspace
    report_progress: Callable[[str], None]
    """Progress for the person who watches, in whole lines; the model does not see it."""
    is_protected: Callable[[str], bool] = lambda path: False
    """Whether a file may be read only when a person was asked: what goes through many files leaves it out."""
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.defpath})
    """What programs that a tool starts are told, without anybody's keys."""
    wrap_command: Callable[[Sequence[str], Path], Sequence[str]] = lambda command, folder: command
    """How such a program is started here, in a folder: in the sandbox, where there is one."""
    allows_project_code: bool = True
    """Such programs may run code of the workspace: settings that are programs, build scripts."""


class _BaseTool(Protocol):
    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        ...

    def describe_call(self, arguments: ToolArguments) -> str:
        """A call in one line, for people: `Read src/app.py, lines 1 to 80`. Never fails, whatever the arguments."""
        ...


@runtime_checkable
class ReadTool(_BaseTool, Protocol):
    """Looks, changes nothing."""

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        """The files and folders that it is going to open, as the call names them: protected ones are asked for."""
        ...

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        """What it found, for the model, within limits. `ToolError` says what was wrong and what to do."""
        ...


@runtime_checkable
class EditTool(_BaseTool, Protocol):
    """Changes files."""

    def plan_changes(self, arguments: ToolArguments, workspace: Workspace) -> tuple[FileChange, ...]:
        """What the files become. Writes nothing. `ToolError` when it cannot be done."""
        ...

    def describe_deferred_content(self, arguments: ToolArguments) -> str:
        """What the file should hold, in words, where a call leaves its content to a second answer (A-13); or empty."""
        ...

    def fill_content(self, arguments: ToolArguments, content: str) -> dict[str, Any]:
        """The same call with the content that was written for it."""
        ...


@runtime_checkable
class CommandTool(_BaseTool, Protocol):
    """Runs a command."""

    def build_command(self, arguments: ToolArguments) -> TerminalCommand:
        """The command that it wants. `ToolError` when the call names none."""
        ...

    def replace_command(self, arguments: ToolArguments, text: str) -> dict[str, Any]:
        """The same call with the command as the person changed it."""
        ...


@runtime_checkable
class ExternalTool(_BaseTool, Protocol):
    """A tool that somebody else brought, by an entry point or from an MCP server: what it does is not known."""

    async def call(self, arguments: ToolArguments, context: ToolContext) -> str:
        """Do it. `ToolError` for a result that is an error."""
        ...


Tool = ReadTool | EditTool | CommandTool | ExternalTool
