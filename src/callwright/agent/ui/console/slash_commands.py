"""Slash commands of the terminal: `/diff`, `/undo` and so on."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from callwright.agent.session_api import FileReview, SessionCatalog, SessionRow
from callwright.agent.session_events import FileStat
from callwright.agent.ui.console.approval_prompt import prompt_for_choice
from callwright.agent.ui.console.cards import build_files_table, build_output_view
from callwright.agent.ui.console.diff_view import build_diff_view
from callwright.agent.ui.console.formatting import (
    format_age,
    format_count,
    format_folder,
    format_line_counts,
    sanitize_text,
    to_one_line,
)
from callwright.agent.ui.console.session_screen import SessionScreen
from callwright.agent.ui.console.session_transcript import SessionTranscript
from callwright.errors import MisuseError

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

__all__ = ["SLASH_COMMANDS", "SlashCompleter", "build_review_view", "build_sessions_table", "run_slash_command"]


class CommandContext(NamedTuple):
    """What a command can access."""

    screen: SessionScreen
    sessions: SessionCatalog
    home: str


class SlashCommand(NamedTuple):
    """One command; `run` receives the text after its name, and returns whether to quit."""

    usage: str
    summary: str
    run: Callable[[CommandContext, str], Awaitable[bool | None]]


async def run_slash_command(context: CommandContext, line: str) -> bool:
    """Run a line that begins with a slash; true to quit. Raises `MisuseError` if it cannot be run."""
    name, _, rest = line[1:].strip().partition(" ")
    command = SLASH_COMMANDS.get(name)
    if command is None:
        raise MisuseError(f"unknown command /{to_one_line(name)}; /help lists all commands")
    return bool(await command.run(context, rest.strip()))


class SlashCompleter(Completer):
    """Completes the names of commands, and the files that some of them take."""

    def __init__(self, transcript: SessionTranscript) -> None:
        self._transcript = transcript

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield all completions of the line."""
        text = document.text_before_cursor
        name, space, rest = text.partition(" ")
        if not text.startswith("/") or "\n" in text:
            return
        if not space:
            for each, command in SLASH_COMMANDS.items():
                if f"/{each}".startswith(name):
                    yield Completion(f"/{each}", start_position=-len(name), display_meta=command.summary)
        elif name[1:] in ("diff", "keep", "undo"):
            for file in self._transcript.files:
                if file.path.startswith(rest):
                    yield Completion(
                        file.path, start_position=-len(rest), display_meta=format_line_counts(file.added, file.removed)
                    )


def build_sessions_table(rows: Iterable[SessionRow], *, home: str, now: float) -> Table:
    """Build a table of sessions. If space is short, the task and the workspace are shortened."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    cells = [
        (
            row,
            format_age(now - row.updated),
            format_line_counts(row.added, row.removed) if row.added or row.removed else "",
        )
        for row in rows
    ]
    table.add_column("id", no_wrap=True, style="bold", min_width=max((len(row.id) for row, _, _ in cells), default=0))
    table.add_column("task", no_wrap=True, overflow="ellipsis", min_width=8)
    table.add_column("when", no_wrap=True, min_width=max((len(when) for _, when, _ in cells), default=0))
    table.add_column("state", no_wrap=True, min_width=11)
    table.add_column("lines", no_wrap=True, min_width=max((len(changed) for _, _, changed in cells), default=0))
    table.add_column("workspace", no_wrap=True, overflow="ellipsis", style="dim", min_width=8)
    for row, when, changed in cells:
        state = Text(row.state, style=_STATE_STYLES[row.state])
        table.add_row(
            Text(row.id), Text(to_one_line(row.title)), when, state, changed, Text(format_folder(row.workspace, home))
        )
    return table


async def _show_help(context: CommandContext, _: str) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, command in SLASH_COMMANDS.items():
        table.add_row(Text(f"/{name} {command.usage}".rstrip(), style="bold"), command.summary)
    for keys, about in _KEY_HELP.items():
        table.add_row(Text(keys, style="bold"), about)
    context.screen.print(table)


async def _show_diff(context: CommandContext, arguments: str) -> None:
    reviews = await context.screen.session.review_changes()
    selected = [_find_review(reviews, arguments)] if arguments else reviews
    context.screen.print(*map(build_review_view, selected) if selected else [Text("No changes to undo.", style="dim")])


def build_review_view(review: FileReview) -> RenderableType:
    """Build the view of a file's changes, each with the number that `/undo` and `/keep` take."""
    title = Text.assemble((sanitize_text(review.path), "bold"), f"  {format_line_counts(review.added, review.removed)}")
    if review.changed_by_user:
        title.append("  changed by you since", "yellow")
    if not review.hunks:
        return Group(title, build_diff_view(review.diff), Text())
    hunks = (
        Group(Text(f"change {number}", style="dim"), Padding(build_diff_view(hunk.text), (0, 0, 0, 2)))
        for number, hunk in enumerate(review.hunks, 1)
    )
    return Group(title, *hunks, Text())


async def _keep_changes(context: CommandContext, arguments: str) -> None:
    if task := _parse_task(arguments):
        await context.screen.session.keep_changes(task=task)
        return
    path, hunk = await _find_target(context, arguments)
    await context.screen.session.keep_changes(path, hunk)


async def _undo_changes(context: CommandContext, arguments: str) -> None:
    session = context.screen.session
    task = _parse_task(arguments)
    path, hunk = ("", "") if task else await _find_target(context, arguments)
    files = context.screen.transcript.files
    if not path and not task and len(files) > 1:
        if (
            await prompt_for_choice(f"Undo the changes to {format_count(len(files), 'file')}?", _YES_NO, otherwise="n")
            == "n"
        ):
            return
    undone = await session.undo_changes(path, hunk, task=task)
    if undone.conflicts:
        context.screen.print_new_events()
        if await prompt_for_choice("Undo anyway, including your own changes?", _YES_NO, otherwise="n") == "y":
            await session.undo_changes(path, hunk, task=task, force=True)


def _parse_task(arguments: str) -> int:
    """Parse `task NUMBER`; 0 for anything else."""
    found = re.fullmatch(r"task\s+(\d+)", arguments.strip())
    return int(found[1]) if found else 0


async def _find_target(context: CommandContext, arguments: str) -> tuple[str, str]:
    """Find the file and the hunk of `PATH` or `PATH NUMBER`; empty strings stand for everything."""
    if not arguments:
        return "", ""
    reviews = await context.screen.session.review_changes()
    path, _, number = arguments.rpartition(" ")
    if not number.isdecimal() or any(review.path == arguments for review in reviews):
        return _find_review(reviews, arguments).path, ""
    hunks = _find_review(reviews, path.strip()).hunks
    if not 1 <= int(number) <= len(hunks):
        raise MisuseError(f"{path.strip()} has no change {number}; /diff shows the numbers")
    return path.strip(), hunks[int(number) - 1].id


def _find_review(reviews: Iterable[FileReview], path: str) -> FileReview:
    for review in reviews:
        if review.path == path:
            return review
    raise MisuseError(f"{to_one_line(path)} has no changes to undo; /files lists the changed files")


async def _show_files(context: CommandContext, _: str) -> None:
    files: tuple[FileStat, ...] = context.screen.transcript.files
    context.screen.print(build_files_table(files) if files else Text("No changed files.", style="dim"))


async def _show_sessions(context: CommandContext, arguments: str) -> None:
    context.screen.print(
        build_sessions_table(
            await context.sessions.list_sessions(arguments, limit=20), home=context.home, now=time.time()
        )
    )


async def _toggle_thinking(context: CommandContext, _: str) -> None:
    transcript = context.screen.transcript
    transcript.thinking = not transcript.thinking
    word = "shown" if transcript.thinking else "hidden"
    context.screen.print(Text(f"The model's thinking is now {word}.", style="dim"))
    if transcript.thinking and transcript.last_thought.strip():
        context.screen.print(Text(sanitize_text(transcript.last_thought.strip()), style="dim italic"))


async def _show_output(context: CommandContext, _: str) -> None:
    output = context.screen.transcript.last_output
    context.screen.print(build_output_view(output) if output.strip() else Text("No command output yet.", style="dim"))


async def _stop_task(context: CommandContext, _: str) -> None:
    if not context.screen.session.is_busy:
        raise MisuseError("no task is running; Ctrl-C stops a running task")
    context.screen.session.stop()


async def _quit_session(context: CommandContext, _: str) -> bool:
    return True


_STATE_STYLES = {"working": "green", "interrupted": "yellow", "idle": "dim"}
_YES_NO = {"y": "yes", "n": "no"}
_KEY_HELP = {
    "Alt-Enter": "insert a new line",
    "Ctrl-C": "stop the task; press again to quit",
    "Ctrl-T": "show or hide the model's thinking",
    "Ctrl-D": "quit",
}
SLASH_COMMANDS = {
    "help": SlashCommand("", "show this help", _show_help),
    "diff": SlashCommand("[FILE]", "show the changes, numbered", _show_diff),
    "undo": SlashCommand(
        "[task N | FILE [NUMBER]]", "undo all changes, those of a task or a file, or one", _undo_changes
    ),
    "keep": SlashCommand("[task N | FILE [NUMBER]]", "keep changes; they can no longer be undone", _keep_changes),
    "files": SlashCommand("", "list the changed files", _show_files),
    "output": SlashCommand("", "show the whole output of the last command", _show_output),
    "thinking": SlashCommand("", "show or hide the model's thinking", _toggle_thinking),
    "sessions": SlashCommand("[WORDS]", "list sessions", _show_sessions),
    "stop": SlashCommand("", "stop the task", _stop_task),
    "quit": SlashCommand("", "quit; the session can be resumed", _quit_session),
}
"""In the order of the help."""
