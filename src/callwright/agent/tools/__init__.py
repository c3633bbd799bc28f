"""The table of built-in tools. Each tool is a module with the tool's name."""

from __future__ import annotations

from callwright.agent.tools import (
    apply_patch,
    edit_file,
    get_diagnostics,
    list_files,
    read_file,
    run_terminal_command,
    search_workspace,
    write_file,
)
from callwright.agent.tools.base import Tool
from callwright.agent.tools.tool_plugins import ToolPlugin, load_plugins

__all__ = ["BUILTIN_TOOLS", "Tool", "ToolPlugin", "find_tool", "load_plugins"]

BUILTIN_TOOLS: tuple[Tool, ...] = (
    read_file.tool,
    list_files.tool,
    search_workspace.tool,
    edit_file.tool,
    write_file.tool,
    apply_patch.tool,
    run_terminal_command.tool,
    get_diagnostics.tool,
)

_TOOLS_BY_NAME = {tool.spec.name: tool for tool in BUILTIN_TOOLS}


def find_tool(name: str) -> Tool | None:
    """Return the built-in tool with this name."""
    return _TOOLS_BY_NAME.get(name)
