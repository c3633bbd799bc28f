"""`callwright smoke`: does a running gateway answer as clients need it, on every wire?"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from callwright.cli.gateway_client import add_key_option, fetch_models, get_default_url, normalize_url
from callwright.cli.wire_checks import WIRE_CHECKS

if TYPE_CHECKING:
    from callwright.cli.http_client import HttpClient
    from callwright.cli.smoke_trials import TrialOutcome

__all__ = ["add_command", "run_smoke"]

_EXAMPLES = """\
examples:
  callwright smoke                                    the gateway on this machine, its first model
  callwright smoke http://10.0.0.7:8787 -m coder      another gateway, one of its models
  callwright smoke --json                             for programs

The exit code is 0 when everything passed, 1 when something failed, 2 when there is no gateway.
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "smoke",
        help="try a running gateway on all four wires",
        description="Ask a running gateway for text and tool calls, whole and streamed, on all four wires, and\n"
        "hold its answers to what the strictest clients demand.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "url", nargs="?", default=get_default_url(), type=normalize_url, metavar="URL", help="its address"
    )
    add_key_option(parser)
    parser.add_argument("-m", "--model", default="", metavar="NAME", help="the model to ask (the first one)")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds for one request (120)")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    parser.set_defaults(run=run_smoke)


def run_smoke(arguments: argparse.Namespace) -> int:
    """Try everything and report."""
    return asyncio.run(_run_all_trials(arguments))


async def _run_all_trials(arguments: argparse.Namespace) -> int:
    from callwright.cli.http_client import HttpClient

    async with HttpClient(arguments.url, key=arguments.key, seconds=arguments.timeout) as gateway:
        models = [entry["id"] for entry in await fetch_models(gateway)]
        tell = _report_json if arguments.json else _report_table
        seen = await tell(gateway, arguments.model or models[0])
    return 0 if all(outcome.ok for outcome in seen) else 1


async def _report_json(gateway: HttpClient, model: str) -> list[TrialOutcome]:
    from callwright.cli.smoke_trials import run_trials

    seen = [outcome async for outcome in run_trials(gateway, model)]
    report = {"url": gateway.url, "model": model, "ok": all(outcome.ok for outcome in seen), "trials": seen}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    return seen


async def _report_table(gateway: HttpClient, model: str) -> list[TrialOutcome]:
    from callwright.cli.smoke_trials import run_trials

    console = Console(highlight=False)
    console.print(Text.assemble((gateway.url, "bold"), "  model ", (model, "bold"), "\n"))
    seen: list[TrialOutcome] = []
    with Live(_build_table(seen), console=console, auto_refresh=False) as live:
        async for outcome in run_trials(gateway, model):
            seen.append(outcome)
            live.update(_build_table(seen), refresh=True)
    console.print()
    failed = [outcome for outcome in seen if not outcome.ok]
    for outcome in failed:
        where = (f"✗ {outcome.wire}: {outcome.trial}  ", "bold red")
        console.print(Text.assemble(where, outcome.reason))
    seconds = sum(outcome.seconds for outcome in seen)
    ending = f"{len(seen) - len(failed)} of {len(seen)} passed in {seconds:.1f} s"
    console.print(Text(ending, style="bold red" if failed else "bold green"))
    return seen


def _build_table(seen: Sequence[TrialOutcome]) -> Table:
    """Trials down, wires across; a cell fills when its trial is over."""
    from callwright.cli.smoke_trials import TRIAL_WIRES

    cells = {(outcome.trial, outcome.wire): _format_cell(outcome) for outcome in seen}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for shape in WIRE_CHECKS:
        table.add_column(shape.name, no_wrap=True, min_width=9)
    for name, wires in TRIAL_WIRES.items():
        pending = {shape.name: Text("·" if shape.name in wires else "", style="dim") for shape in WIRE_CHECKS}
        table.add_row(name, *(cells.get((name, wire), cell) for wire, cell in pending.items()))
    return table


def _format_cell(outcome: TrialOutcome) -> Text:
    spent = f"{outcome.seconds * 1000:.0f} ms" if outcome.seconds < 1 else f"{outcome.seconds:.1f} s"
    return Text.assemble(("✓ ", "bold green") if outcome.ok else ("✗ ", "bold red"), (spent, "dim"))
