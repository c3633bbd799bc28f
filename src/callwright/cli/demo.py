"""`callwright demo`: parse a sample stream on screen and print the events and the finished turn."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from rich.console import Console
from rich.text import Text

from callwright import Parser, collect, get_dialect
from callwright.cli import turn_view
from callwright.cli.subcommands import add_subcommand
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, Malformed, ReasoningDelta, TextDelta

__all__ = ["add_command", "run_demo"]

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"},
                    "overwrite": {"type": "boolean"},
                },
                "required": ["path", "content"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "run_tests",
            "parameters": {"type": "object", "properties": {"retries": {"type": "integer"}}},
        },
    },
]

_SAMPLE_STREAM = """<think>
The page needs a greeting. Then the tests.
</think>

I'll write the page and run the tests.
<tool_call>
{"name": "write_file", "arguments": {"path": "hi.html", "content": "<b>\\"Hi\\" </tool_call>\\n", "overwrite": "true"}}
</tool_call>
<tool_call>
{"name": "run_tests", "arguments": {"retries": "2",}}
</tool_call>"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    about = "watch a sample stream being parsed, chunk by chunk"
    parser = add_subcommand(commands, "demo", about)
    parser.add_argument(
        "--delay",
        type=float,
        default=0.03,
        metavar="SECONDS",
        help="pause between chunks (default: %(default)s)",
    )
    parser.set_defaults(run=run_demo)


def run_demo(arguments: argparse.Namespace) -> int:
    """Print the sample output, the events while it streams in, and the finished turn."""
    console = Console(highlight=False)
    console.print(Text("Model output, streamed four characters at a time:", style="bold"))
    console.print(Text(_SAMPLE_STREAM, style="cyan"))
    console.print(Text("\nEvents while it streams:", style="bold"))
    parser = Parser(get_dialect("hermes"), _TOOLS)
    pause = arguments.delay if sys.stdout.isatty() else 0
    events: list[Event] = []
    for start in range(0, len(_SAMPLE_STREAM), 4):
        events += _print_events(console, parser.feed(_SAMPLE_STREAM[start : start + 4]))
        time.sleep(pause)
    events += _print_events(console, parser.close())
    console.print(Text("\nThe finished turn:", style="bold"))
    turn_view.print_turn(collect(events), console)
    console.print(Text("\nNext: callwright parse --help, callwright dialects", style="dim"))
    return 0


def _print_events(console: Console, events: list[Event]) -> list[Event]:
    for event in events:
        match event:
            case TextDelta():
                console.print(Text(event.text), end="")
            case ReasoningDelta():
                console.print(Text(event.text, style="dim italic"), end="")
            case CallStart():
                console.print(
                    Text.assemble("\n", (f"call {event.index} ", "green"), (event.name, "bold green"), " "), end=""
                )
            case CallDelta():
                console.print(Text(event.text, style="green"), end="")
            case CallEnd() | Malformed() | Finish():
                console.print()
            case _:
                pass
    return events
