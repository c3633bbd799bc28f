"""`callwright models`: list the models of the configuration, of this machine or of a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from callwright.cli.gateway_client import add_key_option, fetch_models, normalize_url

if TYPE_CHECKING:
    from callwright.config import Config

__all__ = ["add_command", "run_models"]

_COLUMNS = {
    "name": ("name", "id"),
    "backend": ("backend",),
    "kind": ("kind",),
    "dialect": ("dialect",),
    "context": ("context", "context_length"),
    "tools": ("tools",),
}
"""Each column, and the keys of its value in the configuration and in a gateway's model list."""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.cli.startup import add_model_options

    parser = commands.add_parser(
        "models",
        help="list the available models",
        description="List the models that serve would offer, or those of a running gateway.",
    )
    parser.add_argument("--url", type=normalize_url, metavar="URL", help="use a running gateway at URL")
    add_key_option(parser)
    parser.add_argument("--json", action="store_true", help="output JSON")
    add_model_options(parser)
    parser.set_defaults(run=run_models)


def run_models(arguments: argparse.Namespace) -> int:
    """List the models."""
    rows, failures = asyncio.run(_list_from_gateway(arguments)) if arguments.url else _list_from_config(arguments)
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    console = Console(highlight=False)
    if rows:
        console.print(_build_table(rows))
    for name, reason in failures.items():
        console.print(Text.assemble((f"{name}: ", "bold red"), reason))
    return 0 if rows else 1


async def _list_from_gateway(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from callwright.cli.http_client import HttpClient
    from callwright.cli.startup import check_url_flags

    check_url_flags(arguments)

    async with HttpClient(arguments.url, key=arguments.key, seconds=10) as gateway:
        return await fetch_models(gateway), {}


def _list_from_config(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from callwright.cli.startup import build_config_loader

    return asyncio.run(_list_from_backends(build_config_loader(arguments).load()))


async def _list_from_backends(config: Config) -> tuple[list[dict[str, Any]], dict[str, str]]:
    import msgspec

    from callwright.app import build_engine

    engine = build_engine(config)
    try:
        failures = await engine.refresh_models()
        rows = [
            {**msgspec.to_builtins(model), "tools": engine.get_route(model.name).settings.tools}
            for model in engine.models
        ]
    finally:
        await engine.close()
    return rows, failures


def _build_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Build a table of the columns that are not empty."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    values = {column: [_format_cell(row, keys) for row in rows] for column, keys in _COLUMNS.items()}
    columns = [column for column in _COLUMNS if any(values[column])]
    for column in columns:
        table.add_column(column, style="bold green" if column == "name" else "", overflow="fold")
    for number in range(len(rows)):
        table.add_row(*(Text(values[column][number]) for column in columns))
    return table


def _format_cell(row: dict[str, Any], keys: Sequence[str]) -> str:
    value = next((row[key] for key in keys if row.get(key)), "")
    return f"{value:,}" if isinstance(value, int) else str(value)
