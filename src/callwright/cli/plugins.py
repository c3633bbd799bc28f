"""`callwright plugins`: list the installed plugins, and why one was skipped."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from callwright.cli.subcommands import add_subcommand

__all__ = ["add_command", "run_plugins"]


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = add_subcommand(commands, "plugins", "list the installed plugins: dialects, backends, profiles, tools")
    parser.add_argument("--json", action="store_true", help="output JSON")
    parser.set_defaults(run=run_plugins)


def run_plugins(arguments: argparse.Namespace) -> int:
    """Print the plugins. The exit code is 1 when one of them was skipped."""
    from callwright.agent.tools import BUILTIN_TOOLS
    from callwright.agent.tools.tool_plugins import load_plugins as load_tools
    from callwright.plugins import load_plugins

    report = load_plugins()
    tools, tool_warnings = load_tools([tool.spec.name for tool in BUILTIN_TOOLS])
    rows = [(plugin.group, plugin.name, plugin.origin) for plugin in report.plugins]
    rows += [("callwright.tools", plugin.tool.spec.name, plugin.origin) for plugin in tools]
    warnings = [*report.warnings, *tool_warnings]
    if arguments.json:
        plugins = [{"group": group, "name": name, "package": package} for group, name, package in rows]
        print(json.dumps({"plugins": plugins, "skipped": warnings}, ensure_ascii=False, indent=2))
        return 1 if warnings else 0
    console = Console(highlight=False)
    if rows:
        table = Table("group", "name", "package", box=None, pad_edge=False)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
    elif not warnings:
        console.print("No plugins are installed. docs/extending.md shows how to write one.")
    for warning in warnings:
        console.print(Text.assemble(("warning: ", "bold yellow"), warning))
    return 1 if warnings else 0
