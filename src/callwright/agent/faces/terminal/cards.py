"""How one event looks once it has happened. Each card is a function of its event alone."""

from __future__ import annotations

from functools import singledispatch

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from callwright.agent.faces.terminal.diffview import diff_view
from callwright.agent.faces.terminal.wording import allowance, clean, counts, duration, one_line, plural, tokens, total
from callwright.agent.policy import Tier
from callwright.agent.session_events import (
    ApprovalRequested,
    BranchCreated,
    ChangesKept,
    ChangesUndone,
    FileStat,
    HistoryCondensed,
    ModelNudged,
    SessionEvent,
    SessionResumed,
    StopReason,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    ToolFinished,
    ToolStatus,
    WarningIssued,
)

__all__ = ["card", "files_table", "line", "output_view", "stat", "tool_card"]

_TIERS: dict[Tier, tuple[str, str]] = {
    "none": ("not rated", "cyan"),
    "medium": ("medium risk", "yellow"),
    "high": ("high risk", "red"),
    "critical": ("critical: always asked", "bold red"),
}
_MARKS: dict[ToolStatus, tuple[str, str, str]] = {
    "ok": ("✓", "green", ""),
    "error": ("✗", "red", ""),
    "denied": ("⊘", "yellow", "denied"),
    "stopped": ("■", "yellow", "stopped"),
    "unknown": ("?", "yellow", "interrupted; it may have happened"),
}
_ENDINGS: dict[StopReason, tuple[str, str]] = {
    "done": ("Done", "green"),
    "unfinished": ("Not finished", "yellow"),
    "iterations": ("Stopped by a limit", "yellow"),
    "tokens": ("Stopped by a limit", "yellow"),
    "time": ("Stopped by a limit", "yellow"),
    "person": ("Stopped", "yellow"),
    "denied": ("Denied", "yellow"),
    "failed": ("Failed", "red"),
}
_OUTPUT_LINES = {True: 1, False: 5}
"""What is left of a command's output when it is folded, by whether the command worked."""


def line(mark: str, style: str, text: Text, indent: int = 0) -> RenderableType:
    """A mark and what belongs to it, indented also where it wraps."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style=style), text)
    return Padding(grid, (0, 0, 0, indent)) if indent else grid


def stat(file: FileStat) -> Text:
    """`+2 −1`, in colour."""
    return _stat(file.added, file.removed)


def _stat(added: int, removed: int) -> Text:
    plus, _, minus = counts(added, removed).partition(" ")
    return Text.assemble((plus, "green"), " ", (minus, "red"))


def files_table(files: tuple[FileStat, ...]) -> Table:
    """A line for each file, and the sum of several."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    for file in files:
        state = "" if file.state == "changed" else file.state
        table.add_row(Text(clean(file.path)), *_stat(file.added, file.removed).split(" "), state)
    if len(files) > 1:
        table.add_row(Text(plural(len(files), "file"), style="dim"), *_stat(*total(files)).split(" "), "")
    return table


def tool_card(event: ToolFinished, output: str, why: str, indent: int) -> RenderableType:
    """What came of a call: its mark, its line, and as much of its output as helps."""
    failed_command = event.exit_code not in (None, 0)
    mark, style, word = _MARKS["error" if failed_command and event.status == "ok" else event.status]
    text = Text(one_line(event.view))
    for file in event.files:
        name = "" if len(event.files) == 1 else f"{clean(file.path)} "
        text.append(f"  {name}").append_text(stat(file))
    exit_code = f"exit {event.exit_code}" if failed_command else ""
    took = duration(event.seconds) if event.seconds else ""
    if details := " · ".join(filter(None, (word, one_line(why), exit_code, took))):
        text.append(f"  {details}", "dim")
    below = output or ("" if event.status != "error" else event.content)
    if not below.strip():
        return line(mark, style, text, indent)
    worked = event.status == "ok" and not failed_command
    folded = Padding(_folded(below, _OUTPUT_LINES[worked]), (0, 0, 0, indent + 2))
    return Group(line(mark, style, text, indent), folded)


def output_view(output: str) -> RenderableType:
    """All that a command said."""
    return Text(clean(output).strip("\n"), style="dim")


def _folded(output: str, most: int) -> RenderableType:
    lines = [text for text in clean(output).split("\n") if text.strip()]
    hidden = len(lines) - most
    shown = ([f"… {plural(hidden, 'line')}"] if hidden > 0 else []) + lines[-most:]
    return Text("\n".join(f"│ {text}" for text in shown), style="dim", no_wrap=True, overflow="ellipsis")


@singledispatch
def card(event: SessionEvent) -> RenderableType | None:
    """How an event looks; None for one that is not seen by itself."""
    return None


@card.register
def _(event: SessionResumed) -> RenderableType:
    return Text(f"Opened again, with {clean(event.model)}.", style="dim")


@card.register
def _(event: TaskStarted) -> RenderableType:
    return line("›", "bold cyan", Text(clean(event.text), style="bold"))


@card.register
def _(event: BranchCreated) -> RenderableType:
    return Text(f"On the git branch {clean(event.branch)}, made from {clean(event.previous)}.", style="dim")


@card.register
def _(event: ApprovalRequested) -> RenderableType:
    word, style = _TIERS[event.tier]
    body: list[RenderableType] = []
    if event.command:
        body.append(line("$", "bold", Text(clean(event.command), style="bold")))
        if event.folder:
            body.append(Text(f"in {clean(event.folder)}", style="dim"))
    body.append(Text.assemble((f"{word}  ", style), clean(event.why)))
    if event.remember:
        how_long = "from now on" if event.subject == "server" else "until this session ends"
        body.append(Text(f"“Always” would allow, {how_long}:", style="dim"))
        body += [line("  •", "dim", Text(clean(allowance(rule)))) for rule in event.remember]
    panel = Panel(
        Group(*body), title=Text(f" {one_line(event.title)} ", style="bold"), title_align="left", border_style=style
    )
    # The diff comes first: however long it is, what is asked stays on the screen.
    return Group(diff_view(event.diff), Text(), panel) if event.diff else panel


@card.register
def _(event: ModelNudged) -> RenderableType:
    return line("→", "dim", Text(f"The model was told: {one_line(event.text)}", style="dim"))


@card.register
def _(event: HistoryCondensed) -> RenderableType:
    return Text(f"Older messages were shortened, {tokens(event.before)} to {tokens(event.after)}.", style="dim")


@card.register
def _(event: ChangesKept) -> RenderableType:
    return line("✓", "green", Text(f"Kept: {_names(event.paths, event.hunk)}"))


@card.register
def _(event: ChangesUndone) -> RenderableType:
    done = [line("↶", "yellow", Text(f"Taken back: {_names(event.paths, event.hunk)}"))] if event.paths else []
    return Group(*done, *(line("!", "yellow", Text(clean(conflict))) for conflict in event.conflicts))


@card.register
def _(event: WarningIssued) -> RenderableType:
    return line("!", "yellow", Text(clean(event.text), style="yellow"))


@card.register
def _(event: TaskStopped) -> RenderableType:
    word, style = _ENDINGS[event.reason]
    if event.reason == "done":
        return line("✓", style, Text(word, style=f"bold {style}"))
    return line("■", style, Text.assemble((f"{word}: ", f"bold {style}"), clean(event.text)))


@card.register
def _(event: TaskSummarized) -> RenderableType:
    parts: list[RenderableType] = []
    if event.files:
        parts.append(Padding(files_table(event.files), (0, 0, 0, 2)))
    for mark, style, word, calls in (("✗", "red", "failed", event.failed), ("⊘", "yellow", "denied", event.denied)):
        parts += [line(mark, style, Text(f"{one_line(call)}  {word}"), 2) for call in calls]
    done = f"{plural(len(event.done), 'call')} done" if event.done else ""
    figures = (plural(event.turns, "turn"), done, tokens(event.tokens), duration(event.seconds))
    parts.append(Text("  " + " · ".join(filter(None, figures)), style="dim"))
    return Group(*parts)


def _names(paths: tuple[str, ...], hunk: str) -> str:
    names = clean(", ".join(paths)) or "nothing"
    return f"one change of {names}" if hunk else names
