"""What a person can say to the face instead of to the model: `/diff`, `/undo` and so on."""

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

from callwright.agent.faces.base import FileReview, SessionList, SessionRow
from callwright.agent.faces.terminal.asking import choose
from callwright.agent.faces.terminal.cards import files_table, output_view
from callwright.agent.faces.terminal.diffview import diff_view
from callwright.agent.faces.terminal.screen import Screen
from callwright.agent.faces.terminal.transcript import Transcript
from callwright.agent.faces.terminal.wording import ago, clean, counts, one_line, place, plural
from callwright.agent.session_events import FileStat
from callwright.errors import MisuseError

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

__all__ = ["COMMANDS", "SlashCompleter", "obey", "review_view", "sessions_table"]


class Desk(NamedTuple):
    """What a command can reach."""

    screen: Screen
    sessions: SessionList
    home: str


class SlashCommand(NamedTuple):
    """One command; `run` is given what follows its name, and returns whether to leave."""

    usage: str
    about: str
    run: Callable[[Desk, str], Awaitable[bool | None]]


async def obey(desk: Desk, line: str) -> bool:
    """Do what a line that begins with a slash says; true to leave. `MisuseError` when it cannot be done."""
    name, _, rest = line[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise MisuseError(f"there is no /{one_line(name)}; /help shows what there is")
    return bool(await command.run(desk, rest.strip()))


class SlashCompleter(Completer):
    """Completes the names of commands, and the files that can be named after some."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """All that the line can go on with."""
        text = document.text_before_cursor
        name, space, rest = text.partition(" ")
        if not text.startswith("/") or "\n" in text:
            return
        if not space:
            for each, command in COMMANDS.items():
                if f"/{each}".startswith(name):
                    yield Completion(f"/{each}", start_position=-len(name), display_meta=command.about)
        elif name[1:] in ("diff", "keep", "undo"):
            for file in self._transcript.files:
                if file.path.startswith(rest):
                    yield Completion(
                        file.path, start_position=-len(rest), display_meta=counts(file.added, file.removed)
                    )


def sessions_table(rows: Iterable[SessionRow], *, home: str, now: float) -> Table:
    """Sessions as a list. Where there is no room the task and the workspace give way."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    cells = [
        (row, ago(now - row.updated), counts(row.added, row.removed) if row.added or row.removed else "")
        for row in rows
    ]
    table.add_column("id", no_wrap=True, style="bold", min_width=max((len(row.id) for row, _, _ in cells), default=0))
    table.add_column("task", no_wrap=True, overflow="ellipsis", min_width=8)
    table.add_column("when", no_wrap=True, min_width=max((len(when) for _, when, _ in cells), default=0))
    table.add_column("state", no_wrap=True, min_width=11)
    table.add_column("lines", no_wrap=True, min_width=max((len(changed) for _, _, changed in cells), default=0))
    table.add_column("workspace", no_wrap=True, overflow="ellipsis", style="dim", min_width=8)
    for row, when, changed in cells:
        state = Text(row.state, style=_STATES[row.state])
        table.add_row(Text(row.id), Text(one_line(row.title)), when, state, changed, Text(place(row.workspace, home)))
    return table


async def _help(desk: Desk, _: str) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, command in COMMANDS.items():
        table.add_row(Text(f"/{name} {command.usage}".rstrip(), style="bold"), command.about)
    for keys, about in _KEYS.items():
        table.add_row(Text(keys, style="bold"), about)
    desk.screen.print(table)


async def _diff(desk: Desk, words: str) -> None:
    reviews = await desk.screen.session.review()
    wanted = [_named(reviews, words)] if words else reviews
    desk.screen.print(
        *map(review_view, wanted) if wanted else [Text("No changes that could be taken back.", style="dim")]
    )


def review_view(review: FileReview) -> RenderableType:
    """A file's changes, each with the number that `undo` and `keep` know it by."""
    title = Text.assemble((clean(review.path), "bold"), f"  {counts(review.added, review.removed)}")
    if review.disturbed:
        title.append("  you changed it since", "yellow")
    if not review.hunks:
        return Group(title, diff_view(review.diff), Text())
    hunks = (
        Group(Text(f"change {number}", style="dim"), Padding(diff_view(hunk.text), (0, 0, 0, 2)))
        for number, hunk in enumerate(review.hunks, 1)
    )
    return Group(title, *hunks, Text())


async def _keep(desk: Desk, words: str) -> None:
    if task := _task(words):
        await desk.screen.session.keep(task=task)
        return
    path, hunk = await _target(desk, words)
    await desk.screen.session.keep(path, hunk)


async def _undo(desk: Desk, words: str) -> None:
    session = desk.screen.session
    task = _task(words)
    path, hunk = ("", "") if task else await _target(desk, words)
    files = desk.screen.transcript.files
    if not path and not task and len(files) > 1:
        if await choose(f"Take back the changes of {plural(len(files), 'file')}?", _YES_NO, otherwise="n") == "n":
            return
    undone = await session.undo(path, hunk, task=task)
    if undone.conflicts:
        desk.screen.catch_up()
        if await choose("Take back anyway, with your own changes?", _YES_NO, otherwise="n") == "y":
            await session.undo(path, hunk, task=task, force=True)


def _task(words: str) -> int:
    """The task that is meant by `task NUMBER`; 0 for none."""
    found = re.fullmatch(r"task\s+(\d+)", words.strip())
    return int(found[1]) if found else 0


async def _target(desk: Desk, words: str) -> tuple[str, str]:
    """The file and the hunk that are meant by `PATH`, by `PATH NUMBER`, or by nothing for everything."""
    if not words:
        return "", ""
    reviews = await desk.screen.session.review()
    path, _, number = words.rpartition(" ")
    if not number.isdecimal() or any(review.path == words for review in reviews):
        return _named(reviews, words).path, ""
    hunks = _named(reviews, path.strip()).hunks
    if not 1 <= int(number) <= len(hunks):
        raise MisuseError(f"{path.strip()} has no change {number}; /diff shows their numbers")
    return path.strip(), hunks[int(number) - 1].id


def _named(reviews: Iterable[FileReview], path: str) -> FileReview:
    for review in reviews:
        if review.path == path:
            return review
    raise MisuseError(f"{one_line(path)} has no changes that could be taken back; /files shows those that have")


async def _files(desk: Desk, _: str) -> None:
    files: tuple[FileStat, ...] = desk.screen.transcript.files
    desk.screen.print(files_table(files) if files else Text("No files are changed.", style="dim"))


async def _sessions(desk: Desk, words: str) -> None:
    desk.screen.print(sessions_table(await desk.sessions.rows(words, limit=20), home=desk.home, now=time.time()))


async def _thinking(desk: Desk, _: str) -> None:
    transcript = desk.screen.transcript
    transcript.thinking = not transcript.thinking
    word = "shown" if transcript.thinking else "folded"
    desk.screen.print(Text(f"What the model thinks is {word} from now on.", style="dim"))
    if transcript.thinking and transcript.thought.strip():
        desk.screen.print(Text(clean(transcript.thought.strip()), style="dim italic"))


async def _output(desk: Desk, _: str) -> None:
    output = desk.screen.transcript.output
    desk.screen.print(output_view(output) if output.strip() else Text("No command has said anything.", style="dim"))


async def _stop(desk: Desk, _: str) -> None:
    if not desk.screen.session.busy:
        raise MisuseError("nothing is being worked on; Ctrl-C stops a task while it runs")
    desk.screen.session.stop()


async def _quit(desk: Desk, _: str) -> bool:
    return True


_STATES = {"working": "green", "interrupted": "yellow", "idle": "dim"}
_YES_NO = {"y": "yes", "n": "no"}
_KEYS = {
    "Alt-Enter": "a new line in what you write",
    "Ctrl-C": "stop the task; again: leave",
    "Ctrl-T": "show or fold what the model thinks",
    "Ctrl-D": "leave",
}
COMMANDS = {
    "help": SlashCommand("", "what can be said", _help),
    "diff": SlashCommand("[FILE]", "the changes, numbered", _diff),
    "undo": SlashCommand("[task N | FILE [NUMBER]]", "take back all changes, a task's, a file's, or one", _undo),
    "keep": SlashCommand("[task N | FILE [NUMBER]]", "keep changes: they can no longer be taken back", _keep),
    "files": SlashCommand("", "the files that are changed", _files),
    "output": SlashCommand("", "all that the last command said", _output),
    "thinking": SlashCommand("", "show or fold what the model thinks", _thinking),
    "sessions": SlashCommand("[WORDS]", "other sessions", _sessions),
    "stop": SlashCommand("", "stop the task", _stop),
    "quit": SlashCommand("", "leave; the session can be opened again", _quit),
}
"""In the order of the help."""
