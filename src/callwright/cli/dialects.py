"""`callwright dialects`: list every dialect with its shape, its models and an example; also as the README's table."""

from __future__ import annotations

import argparse
import json
from typing import Any

from callwright import Dialect
from callwright.cli.subcommands import add_subcommand
from callwright.dialect_plugins import load_dialect_plugins
from callwright.dialects import REGISTRY

__all__ = ["add_command", "render_example", "render_markdown_table", "run_dialects"]

_SHAPE_SUMMARIES = {
    "J1": "tag + one JSON object",
    "J2": "marker + JSON array",
    "J3": "header + JSON arguments",
    "X1": "<function=…>",
    "X2": "arg_key / arg_value",
    "X3": "invoke / parameter",
    "X4": "element per argument",
    "P": "Python calls",
    "G": "Gemma",
    "B": "bare JSON or prompted formats",
    "auto": "detects the dialect",
}


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    about = "list every dialect with its models and an example"
    parser = add_subcommand(commands, "dialects", about)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="output JSON")
    form.add_argument("--markdown", action="store_true", help="output the table of the README")
    parser.set_defaults(run=run_dialects)


def run_dialects(arguments: argparse.Namespace) -> int:
    """List the dialects, with those of plugins, except in the README's table."""
    if not arguments.markdown:
        load_dialect_plugins()
    if arguments.json:
        print(json.dumps([_describe_dialect(dialect) for dialect in REGISTRY.values()], ensure_ascii=False, indent=2))
    elif arguments.markdown:
        print(render_markdown_table())
    else:
        _print_table()
    return 0


def render_example(dialect: Dialect) -> str:
    """Render the example call in this dialect."""
    return dialect.render_call(dialect.build_sample_call("get_weather", {"city": "Oslo", "days": 2}))


def _describe_dialect(dialect: Dialect) -> dict[str, Any]:
    return {
        "name": dialect.name,
        "shape": dialect.shape,
        "summary": _SHAPE_SUMMARIES.get(dialect.shape, dialect.shape),
        "models": dialect.models,
        "source": dialect.source,
        "parsers": list(dialect.parsers),
        "patterns": list(dialect.patterns),
        "reasoning": [[think.open, think.close] for think in dialect.reasoning_tags],
        "example": render_example(dialect),
    }


def render_markdown_table() -> str:
    """Render the table of the README: one row per dialect."""
    rows = [
        f"| `{dialect.name}` | {dialect.shape} | {_escape_cell(dialect.models)} | "
        f"`{_escape_cell(_shorten_line(render_example(dialect), 96))}` |"
        for dialect in REGISTRY.values()
    ]
    return "\n".join(["| id | shape | models | example |", "| --- | --- | --- | --- |", *rows])


def _shorten_line(text: str, max_length: int) -> str:
    line = text.replace("\n", "⏎")
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def _print_table() -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("dialect", style="bold green", no_wrap=True)
    table.add_column("shape", no_wrap=True)
    table.add_column("models", ratio=2)
    table.add_column("example", ratio=3)
    for dialect in REGISTRY.values():
        example = Text(_shorten_line(render_example(dialect), 110), style="dim")
        table.add_row(dialect.name, dialect.shape, Text(dialect.models), example)
    console.print(table)
    console.print(
        Text("\nParse with one: callwright parse -d NAME (a dialect, model or vLLM parser name).", style="dim")
    )
