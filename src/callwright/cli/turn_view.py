"""A turn on screen: reasoning dimmed, calls in boxes, repairs listed."""

from __future__ import annotations

import json

from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from callwright import Collected
from callwright.model import ToolCall

__all__ = ["build_call_panel", "print_turn"]


def print_turn(turn: Collected, console: Console | None = None) -> None:
    """Print a whole turn."""
    console = console or Console(highlight=False)
    if turn.reasoning:
        console.print(Text(turn.reasoning, style="dim italic"))
        console.print()
    if turn.text:
        console.print(Text(turn.text))
    for call in turn.tool_calls:
        console.print(build_call_panel(call))
    for repair in turn.repairs:
        console.print(Text.assemble(("repaired ", "yellow"), (repair.kind, "bold yellow"), f"  {repair.detail}"))
    for bad in turn.malformed:
        console.print(Text.assemble(("not a call ", "red"), f"{bad.reason}: ", (_shorten_text(bad.raw), "dim")))
    calls = len(turn.tool_calls)
    noun = "call" if calls == 1 else "calls"
    summary = f"{calls or 'no'} {noun} · finish: {turn.finish_reason} · dialect: {turn.dialect}"
    console.print(Text(f"{summary}{f' ({turn.why})' if turn.why else ''}", style="dim"))


def build_call_panel(call: ToolCall) -> Panel:
    """Build a box with a call and its indented arguments; red if the call is truncated."""
    try:
        body = json.dumps(json.loads(call.arguments), ensure_ascii=False, indent=2)
    except ValueError:
        body = call.arguments
    title = Text.assemble((f" {call.name} ", "bold"), (f"{call.id} ", "dim"))
    note = Text("the output ended inside this call", style="red") if not call.complete else Text("")
    lines = Syntax(body, "json", theme="ansi_dark", background_color="default", word_wrap=True)
    return Panel(
        lines if call.complete else Group(lines, note),
        title=title,
        title_align="left",
        border_style="green" if call.complete else "red",
    )


def _shorten_text(text: str, max_length: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"
