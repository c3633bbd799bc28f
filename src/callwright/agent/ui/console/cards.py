"""Cards: the view of one finished event. Each card is a function of its event alone."""

from __future__ import annotations

from functools import singledispatch

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

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
from callwright.agent.ui.console.diff_view import build_diff_view
from callwright.agent.ui.console.formatting import (
    describe_allowance,
    format_count,
    format_duration,
    format_line_counts,
    format_tokens,
    sanitize_text,
    sum_line_counts,
    to_one_line,
)

__all__ = ["build_card", "build_files_table", "build_line", "build_output_view", "build_tool_card", "format_file_stat"]

_TIER_LABELS: dict[Tier, tuple[str, str]] = {
    "none": ("not rated", "cyan"),
    "medium": ("medium risk", "yellow"),
    "high": ("high risk", "red"),
    "critical": ("critical: always needs approval", "bold red"),
}
_STATUS_MARKS: dict[ToolStatus, tuple[str, str, str]] = {
    "ok": ("✓", "green", ""),
    "error": ("✗", "red", ""),
    "denied": ("⊘", "yellow", "denied"),
    "stopped": ("■", "yellow", "stopped"),
    "unknown": ("?", "yellow", "interrupted; outcome unknown"),
}
_STOP_LABELS: dict[StopReason, tuple[str, str]] = {
    "done": ("Done", "green"),
    "unfinished": ("Not finished", "yellow"),
    "iterations": ("Stopped by a limit", "yellow"),
    "tokens": ("Stopped by a limit", "yellow"),
    "time": ("Stopped by a limit", "yellow"),
    "person": ("Stopped", "yellow"),
    "denied": ("Denied", "yellow"),
    "failed": ("Failed", "red"),
}
_MAX_OUTPUT_LINES = {True: 1, False: 5}
"""How many lines of a command's output stay when it is folded, by whether the command succeeded."""


def build_line(mark: str, style: str, text: Text, indent: int = 0) -> RenderableType:
    """Build a line with a mark and indented text."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style=style), text)
    return Padding(grid, (0, 0, 0, indent)) if indent else grid


def format_file_stat(file: FileStat) -> Text:
    """Format `+2 −1`, in colour."""
    return _color_line_counts(file.added, file.removed)


def _color_line_counts(added: int, removed: int) -> Text:
    plus, _, minus = format_line_counts(added, removed).partition(" ")
    return Text.assemble((plus, "green"), " ", (minus, "red"))


def build_files_table(files: tuple[FileStat, ...]) -> Table:
    """Build a table with a line for each file, and the sum of several."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    for file in files:
        state = "" if file.state == "changed" else file.state
        table.add_row(Text(sanitize_text(file.path)), *_color_line_counts(file.added, file.removed).split(" "), state)
    if len(files) > 1:
        table.add_row(
            Text(format_count(len(files), "file"), style="dim"),
            *_color_line_counts(*sum_line_counts(files)).split(" "),
            "",
        )
    return table


def build_tool_card(event: ToolFinished, output: str, why: str, indent: int) -> RenderableType:
    """Build the card of a call: its mark, its line, and the end of its output."""
    failed_command = event.exit_code not in (None, 0)
    mark, style, word = _STATUS_MARKS["error" if failed_command and event.status == "ok" else event.status]
    text = Text(to_one_line(event.view))
    for file in event.files:
        name = "" if len(event.files) == 1 else f"{sanitize_text(file.path)} "
        text.append(f"  {name}").append_text(format_file_stat(file))
    exit_code = f"exit {event.exit_code}" if failed_command else ""
    took = format_duration(event.seconds) if event.seconds else ""
    if details := " · ".join(filter(None, (word, to_one_line(why), exit_code, took))):
        text.append(f"  {details}", "dim")
    below = output or ("" if event.status != "error" else event.content)
    if not below.strip():
        return build_line(mark, style, text, indent)
    worked = event.status == "ok" and not failed_command
    folded = Padding(_fold_output(below, _MAX_OUTPUT_LINES[worked]), (0, 0, 0, indent + 2))
    return Group(build_line(mark, style, text, indent), folded)


def build_output_view(output: str) -> RenderableType:
    """Build the view of a command's whole output."""
    return Text(sanitize_text(output).strip("\n"), style="dim")


def _fold_output(output: str, max_lines: int) -> RenderableType:
    lines = [text for text in sanitize_text(output).split("\n") if text.strip()]
    hidden = len(lines) - max_lines
    visible = ([f"… {format_count(hidden, 'line')}"] if hidden > 0 else []) + lines[-max_lines:]
    return Text("\n".join(f"│ {text}" for text in visible), style="dim", no_wrap=True, overflow="ellipsis")


@singledispatch
def build_card(event: SessionEvent) -> RenderableType | None:
    """Build the card of an event; None for one without a card."""
    return None


@build_card.register
def _(event: SessionResumed) -> RenderableType:
    return Text(f"Reopened with {sanitize_text(event.model)}.", style="dim")


@build_card.register
def _(event: TaskStarted) -> RenderableType:
    return build_line("›", "bold cyan", Text(sanitize_text(event.text), style="bold"))


@build_card.register
def _(event: BranchCreated) -> RenderableType:
    return Text(
        f"On the git branch {sanitize_text(event.branch)}, created from {sanitize_text(event.previous)}.", style="dim"
    )


@build_card.register
def _(event: ApprovalRequested) -> RenderableType:
    word, style = _TIER_LABELS[event.tier]
    body: list[RenderableType] = []
    if event.command:
        body.append(build_line("$", "bold", Text(sanitize_text(event.command), style="bold")))
        if event.folder:
            body.append(Text(f"in {sanitize_text(event.folder)}", style="dim"))
    body.append(Text.assemble((f"{word}  ", style), sanitize_text(event.why)))
    if event.remember:
        how_long = "from now on" if event.subject == "server" else "until this session ends"
        body.append(Text(f"“Always” allows, {how_long}:", style="dim"))
        body += [build_line("  •", "dim", Text(sanitize_text(describe_allowance(rule)))) for rule in event.remember]
    panel = Panel(
        Group(*body), title=Text(f" {to_one_line(event.title)} ", style="bold"), title_align="left", border_style=style
    )
    # The diff comes first: however long it is, the approval stays on the screen.
    return Group(build_diff_view(event.diff), Text(), panel) if event.diff else panel


@build_card.register
def _(event: ModelNudged) -> RenderableType:
    return build_line("→", "dim", Text(f"Message to the model: {to_one_line(event.text)}", style="dim"))


@build_card.register
def _(event: HistoryCondensed) -> RenderableType:
    return Text(
        f"Older messages were shortened, {format_tokens(event.before)} to {format_tokens(event.after)}.", style="dim"
    )


@build_card.register
def _(event: ChangesKept) -> RenderableType:
    return build_line("✓", "green", Text(f"Kept: {_format_paths(event.paths, event.hunk)}"))


@build_card.register
def _(event: ChangesUndone) -> RenderableType:
    undone = (
        [build_line("↶", "yellow", Text(f"Undone: {_format_paths(event.paths, event.hunk)}"))] if event.paths else []
    )
    return Group(*undone, *(build_line("!", "yellow", Text(sanitize_text(conflict))) for conflict in event.conflicts))


@build_card.register
def _(event: WarningIssued) -> RenderableType:
    return build_line("!", "yellow", Text(sanitize_text(event.text), style="yellow"))


@build_card.register
def _(event: TaskStopped) -> RenderableType:
    word, style = _STOP_LABELS[event.reason]
    if event.reason == "done":
        return build_line("✓", style, Text(word, style=f"bold {style}"))
    return build_line("■", style, Text.assemble((f"{word}: ", f"bold {style}"), sanitize_text(event.text)))


@build_card.register
def _(event: TaskSummarized) -> RenderableType:
    parts: list[RenderableType] = []
    if event.files:
        parts.append(Padding(build_files_table(event.files), (0, 0, 0, 2)))
    for mark, style, word, calls in (("✗", "red", "failed", event.failed), ("⊘", "yellow", "denied", event.denied)):
        parts += [build_line(mark, style, Text(f"{to_one_line(call)}  {word}"), 2) for call in calls]
    done = f"{format_count(len(event.done), 'call')} done" if event.done else ""
    figures = (format_count(event.turns, "turn"), done, format_tokens(event.tokens), format_duration(event.seconds))
    parts.append(Text("  " + " · ".join(filter(None, figures)), style="dim"))
    return Group(*parts)


def _format_paths(paths: tuple[str, ...], hunk: str) -> str:
    names = sanitize_text(", ".join(paths)) or "nothing"
    return f"one change of {names}" if hunk else names
