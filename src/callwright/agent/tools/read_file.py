"""`read_file`: a file, or some of its lines, with their numbers."""

from __future__ import annotations

import asyncio
import shlex
from typing import Annotated

import msgspec

from callwright.agent.tools.base import Arguments, Room
from callwright.agent.tools.form import Form
from callwright.agent.tools.lines import decoded, lines_of
from callwright.agent.tools.names import similar
from callwright.agent.tools.words import counted, cut, sized
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_LINES = 400
_CHARACTERS = 64 * 1024
_LONGEST_LINE = 2000
_LARGEST_BYTES = 16 * 1024 * 1024


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """Read a text file of the workspace. Lines come with their numbers, at most 400 at once."""

    path: Annotated[
        str, msgspec.Meta(description="The file, from the workspace's root.", examples=["src/app.py"], min_length=1)
    ]
    start_line: Annotated[int, msgspec.Meta(description="The first line to read, counted from 1.")] = 1
    end_line: Annotated[int, msgspec.Meta(description="The last line to read. Leave it out to read on.")] = 0
    limit: Annotated[int, msgspec.Meta(description="How many lines to read, instead of end_line.")] = 0


class _ReadFile:
    form = Form("read_file", _Read)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, _line)

    def paths(self, arguments: Arguments) -> tuple[str, ...]:
        wanted = self.form.tried(arguments)
        return () if wanted is None else (wanted.path,)

    async def read(self, arguments: Arguments, room: Room) -> str:
        return await asyncio.to_thread(_shown, self.form.read(arguments), room.workspace)


def _line(wanted: _Read) -> str:
    first, last = _range(wanted)
    if first == 1 and not last:
        return f"Read {wanted.path}"
    return f"Read {wanted.path}, {_span(first, last)}" if last else f"Read {wanted.path}, from line {first}"


def _range(wanted: _Read) -> tuple[int, int]:
    """The first and the last line, 0 where none is said. Models also count from 0, and say -1 for the end."""
    first = max(wanted.start_line, 1)
    return first, max(wanted.end_line, 0) or (first + wanted.limit - 1 if wanted.limit > 0 else 0)


def _span(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _shown(wanted: _Read, workspace: Workspace) -> str:
    path = _existing(wanted.path, workspace)
    try:
        data = workspace.read(path, _LARGEST_BYTES)
    except ToolError as error:
        raise ToolError(
            f"{error}. A command shows part of a large file: sed -n '1,100p' {shlex.quote(path)}"
        ) from error
    try:
        text, note = decoded(data)
    except ToolError as error:
        raise ToolError(f"{path} cannot be read as text: {error} of {sized(len(data))}.") from error
    lines = lines_of(text)
    first, last = _range(wanted)
    if not lines:
        return f"{path} is empty."
    if first > len(lines):
        raise ToolError(f"{path} has only {counted(len(lines), 'line')}; start_line {first} is behind its end.")
    if last and last < first:
        raise ToolError(f"end_line {last} is before start_line {first}.")
    taken = _taken(lines, first, min(last or len(lines), len(lines)))
    notes = [note] if note else []
    notes += ["Windows line endings"] if "\r\n" in text else []
    return _page(path, lines, first, taken, notes)


def _existing(path: str, workspace: Workspace) -> str:
    match workspace.kind(path):
        case "missing":
            raise ToolError(
                f"there is no file {path!r}.{similar(path, workspace.files())} list_files shows what is there."
            )
        case "folder":
            raise ToolError(f"{path!r} is a folder; list_files shows what is in it.")
        case _:
            return workspace.relative(path)


def _taken(lines: list[str], first: int, last: int) -> list[str]:
    """As many of the lines as one answer takes."""
    taken: list[str] = []
    room = _CHARACTERS
    for line in lines[first - 1 : min(last, first - 1 + _LINES)]:
        shown = cut(line, _LONGEST_LINE)
        room -= len(shown) + 1
        if room < 0:
            break
        taken.append(shown)
    return taken


def _page(path: str, lines: list[str], first: int, taken: list[str], notes: list[str]) -> str:
    last = first + len(taken) - 1
    width = len(str(last))
    about = "".join(f"; {note}" for note in notes)
    head = f"{path}, {_span(first, last)} of {len(lines)}{about}:"
    body = [f"{number:>{width}}\t{line}" for number, line in enumerate(taken, first)]
    rest = (
        [f"({counted(len(lines) - last, 'more line')}; go on with start_line {last + 1})"] if last < len(lines) else []
    )
    return "\n".join([head, *body, *rest])


tool = _ReadFile()
