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

from callwright.cli.running import add_key, address, default_url, listing
from callwright.cli.shapes import SHAPES

if TYPE_CHECKING:
    from callwright.cli.fetch import Peer
    from callwright.cli.trials import Outcome

__all__ = ["add", "run"]

_EXAMPLES = """\
examples:
  callwright smoke                                    the gateway on this machine, its first model
  callwright smoke http://10.0.0.7:8787 -m coder      another gateway, one of its models
  callwright smoke --json                             for programs

The exit code is 0 when everything passed, 1 when something failed, 2 when there is no gateway.
"""


def add(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "smoke",
        help="try a running gateway on all four wires",
        description="Ask a running gateway for text and tool calls, whole and streamed, on all four wires, and\n"
        "hold its answers to what the strictest clients demand.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", nargs="?", default=default_url(), type=address, metavar="URL", help="its address")
    add_key(parser)
    parser.add_argument("-m", "--model", default="", metavar="NAME", help="the model to ask (the first one)")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds for one request (120)")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Try everything and report."""
    return asyncio.run(_smoke(arguments))


async def _smoke(arguments: argparse.Namespace) -> int:
    from callwright.cli.fetch import Peer

    async with Peer(arguments.url, key=arguments.key, seconds=arguments.timeout) as gateway:
        models = [entry["id"] for entry in await listing(gateway)]
        tell = _tell_json if arguments.json else _tell
        seen = await tell(gateway, arguments.model or models[0])
    return 0 if all(outcome.ok for outcome in seen) else 1


async def _tell_json(gateway: Peer, model: str) -> list[Outcome]:
    from callwright.cli.trials import outcomes

    seen = [outcome async for outcome in outcomes(gateway, model)]
    report = {"url": gateway.url, "model": model, "ok": all(outcome.ok for outcome in seen), "trials": seen}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    return seen


async def _tell(gateway: Peer, model: str) -> list[Outcome]:
    from callwright.cli.trials import outcomes

    console = Console(highlight=False)
    console.print(Text.assemble((gateway.url, "bold"), "  model ", (model, "bold"), "\n"))
    seen: list[Outcome] = []
    with Live(_table(seen), console=console, auto_refresh=False) as live:
        async for outcome in outcomes(gateway, model):
            seen.append(outcome)
            live.update(_table(seen), refresh=True)
    console.print()
    failed = [outcome for outcome in seen if not outcome.ok]
    for outcome in failed:
        where = (f"✗ {outcome.wire}: {outcome.trial}  ", "bold red")
        console.print(Text.assemble(where, outcome.reason))
    seconds = sum(outcome.seconds for outcome in seen)
    ending = f"{len(seen) - len(failed)} of {len(seen)} passed in {seconds:.1f} s"
    console.print(Text(ending, style="bold red" if failed else "bold green"))
    return seen


def _table(seen: Sequence[Outcome]) -> Table:
    """Trials down, wires across; a cell fills when its trial is over."""
    from callwright.cli.trials import WIRES

    cells = {(outcome.trial, outcome.wire): _cell(outcome) for outcome in seen}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for shape in SHAPES:
        table.add_column(shape.name, no_wrap=True, min_width=9)
    for name, wires in WIRES.items():
        pending = {shape.name: Text("·" if shape.name in wires else "", style="dim") for shape in SHAPES}
        table.add_row(name, *(cells.get((name, wire), cell) for wire, cell in pending.items()))
    return table


def _cell(outcome: Outcome) -> Text:
    spent = f"{outcome.seconds * 1000:.0f} ms" if outcome.seconds < 1 else f"{outcome.seconds:.1f} s"
    return Text.assemble(("✓ ", "bold green") if outcome.ok else ("✗ ", "bold red"), (spent, "dim"))
