"""The kinds of tools, and the context in which they run.

There are three kinds, and each can do only what its kind allows. A `ReadTool` reads the workspace and returns text. An
`EditTool` plans the new contents of files and writes nothing: the session decides about exactly the planned change. A
`CommandTool` returns the command that it needs; one terminal runs all commands.
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
"""The arguments of a call, parsed from JSON; the tool's own struct resolves aliases of names."""


class TerminalCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command for the terminal."""

    text: str
    folder: str = ""
    """The folder to run it in, relative to the workspace's root; empty for the terminal's current folder."""
    seconds: float | None = None
    """Its timeout; None for the default of the settings."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may use while it runs."""

    workspace: Workspace
    report_progress: Callable[[str], None]
    """Reports progress to the user, in whole lines; the model does not see it."""
    is_protected: Callable[[str], bool] = lambda path: False
    """Whether reading a file needs approval; tools that read many files skip such files."""
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.defpath})
    """The environment of the programs that a tool starts, without credentials."""
    wrap_command: Callable[[Sequence[str], Path], Sequence[str]] = lambda command, folder: command
    """Returns the argv that starts such a program in a folder: inside the sandbox, if there is one."""
    allows_project_code: bool = True
    """Whether such programs may run code of the workspace: configuration that is code, build scripts."""


class _BaseTool(Protocol):
    @property
    def spec(self) -> ToolSpec:
        """The description of the tool for the model."""
        ...

    def describe_call(self, arguments: ToolArguments) -> str:
        """Describe a call in one line for the user: `Read src/app.py, lines 1 to 80`. Accepts any arguments."""
        ...


@runtime_checkable
class ReadTool(_BaseTool, Protocol):
    """Reads the workspace and changes nothing."""

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        """Return the files and folders that the call will open, as it names them; protected ones need approval."""
        ...

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        """Return the result for the model, within limits. A `ToolError` says what was wrong and what to do."""
        ...


@runtime_checkable
class EditTool(_BaseTool, Protocol):
    """Changes files."""

    def plan_changes(self, arguments: ToolArguments, workspace: Workspace) -> tuple[FileChange, ...]:
        """Return the new contents of the files. Writes nothing. Raises `ToolError` when that is impossible."""
        ...

    def describe_deferred_content(self, arguments: ToolArguments) -> str:
        """Describe the content that a call leaves to a second answer (A-13), or return an empty string."""
        ...

    def fill_content(self, arguments: ToolArguments, content: str) -> dict[str, Any]:
        """Return the call with the content that the model wrote for it."""
        ...


@runtime_checkable
class CommandTool(_BaseTool, Protocol):
    """Runs a command."""

    def build_command(self, arguments: ToolArguments) -> TerminalCommand:
        """Return the command to run. Raises `ToolError` when the call names none."""
        ...

    def replace_command(self, arguments: ToolArguments, text: str) -> dict[str, Any]:
        """Return the call with the command as the user changed it."""
        ...


@runtime_checkable
class ExternalTool(_BaseTool, Protocol):
    """A tool from a plugin or an MCP server, whose effects are unknown."""

    async def call(self, arguments: ToolArguments, context: ToolContext) -> str:
        """Run the tool. Raises `ToolError` for a result that is an error."""
        ...


Tool = ReadTool | EditTool | CommandTool | ExternalTool
