"""`callwright usage`: show requests and tokens of a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table
from rich.text import Text

from callwright.cli.gateway_client import add_key_option, fetch_json, get_default_url, normalize_url

__all__ = ["add_command", "run_usage"]

_SUM_COLUMNS = ("requests", "prompt_tokens", "completion_tokens")


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "usage",
        help="show requests and tokens of a running gateway",
        description="Show the requests and tokens of a running gateway by day, key, model or client.",
    )
    parser.add_argument(
        "--url",
        type=normalize_url,
        default=get_default_url(),
        metavar="URL",
        help="URL of the gateway (default: %(default)s)",
    )
    add_key_option(parser)
    parser.add_argument(
        "--group-by",
        default="model,client",
        metavar="LIST",
        help="columns to group by: day, key, model, client (default: %(default)s)",
    )
    parser.add_argument("--since", default="", metavar="DATE", help="only usage since DATE, e.g. 2026-11-01")
    parser.add_argument("--json", action="store_true", help="output JSON")
    parser.set_defaults(run=run_usage)


def run_usage(arguments: argparse.Namespace) -> int:
    """Show the usage."""
    rows = asyncio.run(_fetch_rows(arguments))
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    console = Console(highlight=False)
    console.print(_build_table(rows) if rows else Text("No usage yet.", style="dim"))
    return 0


async def _fetch_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from callwright.cli.http_client import HttpClient

    query = {"by": arguments.group_by, **({"since": arguments.since} if arguments.since else {})}
    async with HttpClient(arguments.url, key=arguments.key, seconds=10) as gateway:
        rows: list[dict[str, Any]] = (await fetch_json(gateway, f"/v1/usage?{urlencode(query)}"))["data"]
    return rows


def _build_table(rows: list[dict[str, Any]]) -> Table:
    groups = [key for key in rows[0] if key not in _SUM_COLUMNS]
    totals = [sum(row[key] for row in rows) for key in _SUM_COLUMNS]
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", footer_style="bold")
    for key in groups:
        table.add_column(key, footer="total" if key == groups[0] else "")
    for key, total in zip(_SUM_COLUMNS, totals, strict=True):
        table.add_column(key.replace("_", " "), justify="right", footer=f"{total:,}")
    for row in rows:
        table.add_row(*(Text(str(row[key]) or "–") for key in groups), *(f"{row[key]:,}" for key in _SUM_COLUMNS))
    table.show_footer = len(rows) > 1
    return table
