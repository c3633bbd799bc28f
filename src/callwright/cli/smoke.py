"""`callwright smoke`: test a running gateway on every wire, as strictly as the strictest clients."""

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
  callwright smoke                                test the local gateway
  callwright smoke http://10.0.0.7:8787 -m coder  test one model of another one
  callwright smoke --json                         output JSON

exit codes: 0 all passed, 1 something failed, 2 no gateway found
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "smoke",
        help="test a running gateway on all four APIs",
        description="Test a running gateway: request text and tool calls on all four APIs, streamed\n"
        "and not, and check the responses as strictly as the strictest clients do.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "url",
        nargs="?",
        default=get_default_url(),
        type=normalize_url,
        metavar="URL",
        help="URL of the gateway (default: %(default)s)",
    )
    add_key_option(parser)
    parser.add_argument("-m", "--model", default="", metavar="NAME", help="model to test (default: the first)")
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="timeout of one request (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="output JSON")
    parser.set_defaults(run=run_smoke)


def run_smoke(arguments: argparse.Namespace) -> int:
    """Run all trials and print a report."""
    return asyncio.run(_run_all_trials(arguments))


async def _run_all_trials(arguments: argparse.Namespace) -> int:
    from callwright.cli.http_client import HttpClient

    async with HttpClient(arguments.url, key=arguments.key, seconds=arguments.timeout) as gateway:
        models = [entry["id"] for entry in await fetch_models(gateway)]
        report = _report_json if arguments.json else _report_table
        outcomes = await report(gateway, arguments.model or models[0])
    return 0 if all(outcome.ok for outcome in outcomes) else 1


async def _report_json(gateway: HttpClient, model: str) -> list[TrialOutcome]:
    from callwright.cli.smoke_trials import run_trials

    outcomes = [outcome async for outcome in run_trials(gateway, model)]
    report = {"url": gateway.url, "model": model, "ok": all(outcome.ok for outcome in outcomes), "trials": outcomes}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    return outcomes


async def _report_table(gateway: HttpClient, model: str) -> list[TrialOutcome]:
    from callwright.cli.smoke_trials import run_trials

    console = Console(highlight=False)
    console.print(Text.assemble((gateway.url, "bold"), "  model ", (model, "bold"), "\n"))
    outcomes: list[TrialOutcome] = []
    with Live(_build_table(outcomes), console=console, auto_refresh=False) as live:
        async for outcome in run_trials(gateway, model):
            outcomes.append(outcome)
            live.update(_build_table(outcomes), refresh=True)
    console.print()
    failed = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in failed:
        where = (f"✗ {outcome.wire}: {outcome.trial}  ", "bold red")
        console.print(Text.assemble(where, outcome.reason))
    seconds = sum(outcome.seconds for outcome in outcomes)
    summary = f"{len(outcomes) - len(failed)} of {len(outcomes)} passed in {seconds:.1f} s"
    console.print(Text(summary, style="bold red" if failed else "bold green"))
    return outcomes


def _build_table(outcomes: Sequence[TrialOutcome]) -> Table:
    """Build the table: one row per trial, one column per wire. Cells without an outcome show a dot."""
    from callwright.cli.smoke_trials import TRIAL_WIRES

    cells = {(outcome.trial, outcome.wire): _format_cell(outcome) for outcome in outcomes}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for check in WIRE_CHECKS:
        table.add_column(check.name, no_wrap=True, min_width=9)
    for name, wires in TRIAL_WIRES.items():
        pending = {check.name: Text("·" if check.name in wires else "", style="dim") for check in WIRE_CHECKS}
        table.add_row(name, *(cells.get((name, wire), cell) for wire, cell in pending.items()))
    return table


def _format_cell(outcome: TrialOutcome) -> Text:
    duration = f"{outcome.seconds * 1000:.0f} ms" if outcome.seconds < 1 else f"{outcome.seconds:.1f} s"
    return Text.assemble(("✓ ", "bold green") if outcome.ok else ("✗ ", "bold red"), (duration, "dim"))
