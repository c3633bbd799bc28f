"""`search_workspace`: every line of every file that has a text or matches a pattern.

All files are searched, however many match: the total is true, and only what is shown is limited. Protected files are
left out unless the call names one, which somebody is asked about then.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import msgspec

from callwright.agent.tools.base import Arguments, Room
from callwright.agent.tools.form import Form
from callwright.agent.tools.lines import decoded, is_binary, lines_of
from callwright.agent.tools.names import globbed, similar
from callwright.agent.tools.pattern import compiled, escaped
from callwright.agent.tools.words import counted
from callwright.errors import ToolError

__all__ = ["tool"]

_SHOWN = 100
_CHARACTERS = 32 * 1024
_WIDTH = 240
_LARGEST_BYTES = 4 * 1024 * 1024
_SECONDS = 30.0


class _Search(msgspec.Struct, frozen=True, kw_only=True):
    """Search all files of the workspace for a text or a regular expression. Answers with path:line: text."""

    query: Annotated[
        str, msgspec.Meta(description="What to search for; plain text unless regex is true.", examples=["def main"])
    ]
    regex: Annotated[bool, msgspec.Meta(description="The query is a regular expression.")] = False
    path: Annotated[str, msgspec.Meta(description="Search only in this folder or file.")] = "."
    glob: Annotated[str, msgspec.Meta(description="Search only files that match, such as *.py.")] = ""
    match_case: Annotated[bool, msgspec.Meta(description="Upper and lower case are different.")] = False
    context: Annotated[int, msgspec.Meta(description="How many lines to show around each match.", ge=0, le=10)] = 0


class _Tally:
    """What a search found, of which some is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.matches = self.files = self.searched = self.large = self.protected = 0
        self.shown = 0
        self.stopped = False
        self._room = _CHARACTERS

    def show(self, lines: Iterable[tuple[str, bool]]) -> None:
        """Show these lines, as far as there is room; whether each is a match is said beside it."""
        for line, is_match in lines:
            self._room -= len(line) + 1
            if self.shown == _SHOWN or self._room < 0:
                return
            self.lines.append(line)
            self.shown += is_match


class _SearchWorkspace:
    form = Form("search_workspace", _Search)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, _line)

    def paths(self, arguments: Arguments) -> tuple[str, ...]:
        wanted = self.form.tried(arguments)
        return () if wanted is None else (wanted.path or ".",)

    async def read(self, arguments: Arguments, room: Room) -> str:
        wanted = self.form.read(arguments)
        if not wanted.query:
            raise ToolError("search_workspace needs a `query` that is not empty.")
        if "\n" in wanted.query.rstrip("\n") and not wanted.regex:
            raise ToolError("search_workspace looks at one line after the other: search for one line of the text.")
        return await asyncio.to_thread(_searched, wanted, room)


def _line(wanted: _Search) -> str:
    where = "" if wanted.path in {"", "."} else f" in {wanted.path}"
    return f"Search for {wanted.query!r}{where}{f' in {wanted.glob}' if wanted.glob else ''}"


def _searched(wanted: _Search, room: Room) -> str:
    pattern = wanted.query if wanted.regex else escaped(wanted.query.rstrip("\r\n"))
    matches = compiled(pattern, match_case=wanted.match_case)
    tally = _Tally()
    until = time.monotonic() + _SECONDS
    for path in _chosen(wanted, room, tally):
        if time.monotonic() > until:
            tally.stopped = True
            break
        _search_file(path, room, matches, wanted.context, tally)
    return _told(wanted, tally)


def _chosen(wanted: _Search, room: Room, tally: _Tally) -> Iterator[str]:
    """The files to search, by name."""
    path = wanted.path or "."
    match room.workspace.kind(path):
        case "file":
            yield room.workspace.relative(path)
            return
        case "folder":
            folder = room.workspace.relative(path)
        case _:
            raise ToolError(f"there is no folder or file {path!r}.{similar(path, room.workspace.files())}")
    fits = globbed(wanted.glob)
    inside = "" if folder == "." else f"{folder}/"
    for name in room.workspace.files(folder):
        if not (fits(name) or fits(name.removeprefix(inside))):
            continue
        if room.protected(name):
            tally.protected += 1
        else:
            yield name


def _search_file(path: str, room: Room, matches: Callable[[str], bool], context: int, tally: _Tally) -> None:
    try:
        data = room.workspace.read(path, _LARGEST_BYTES)
    except ToolError:  # too large, or gone since it was listed
        tally.large += 1
        return
    if is_binary(data):
        return
    tally.searched += 1
    lines = lines_of(decoded(data)[0])
    found = [at for at, line in enumerate(lines) if matches(line)]
    if not found:
        return
    tally.files += 1
    tally.matches += len(found)
    tally.show(_excerpts(path, lines, found[:_SHOWN], context, matches))


def _excerpts(
    path: str, lines: list[str], found: list[int], context: int, matches: Callable[[str], bool]
) -> Iterator[tuple[str, bool]]:
    """Matches as `path:line: text`, lines around them as `path-line- text`, a line of `--` where some are left out."""
    hits = set(found)
    last = -1
    for at in sorted({near for hit in found for near in range(hit - context, hit + context + 1)}):
        if not 0 <= at < len(lines):
            continue
        if context and last >= 0 and at > last + 1:
            yield "--", False
        last = at
        sign = ":" if at in hits else "-"
        yield f"{path}{sign}{at + 1}{sign} {_short(lines[at], matches)}", at in hits


def _short(line: str, matches: Callable[[str], bool]) -> str:
    """A line of bearable length with the match in it, which ends where the shortest beginning that matches does."""
    if len(line) <= _WIDTH:
        return line
    end = bisect_left(range(len(line)), True, key=lambda length: matches(line[:length]))
    start = max(min(end + _WIDTH // 4, len(line)) - _WIDTH, 0)
    return f"{'…' if start else ''}{line[start : start + _WIDTH]}{'…' if start + _WIDTH < len(line) else ''}"


def _told(wanted: _Search, tally: _Tally) -> str:
    left = [
        *([f"{counted(tally.protected, 'protected file')} left out"] if tally.protected else []),
        *([f"{counted(tally.large, 'file')} too large or unreadable"] if tally.large else []),
        *([f"the search was stopped after {_SECONDS:.0f} seconds"] if tally.stopped else []),
    ]
    notes = "".join(f"; {note}" for note in left)
    if not tally.matches:
        kind = "matches the pattern" if wanted.regex else "has the text"
        hint = "" if wanted.regex else " For a regular expression set regex to true."
        return f"No line {kind} {wanted.query!r}; {counted(tally.searched, 'file')} searched{notes}.{hint}"
    head = f"{counted(tally.matches, 'matching line')} in {tally.files} of {counted(tally.searched, 'file')}{notes}"
    if tally.shown < tally.matches:
        head += f". The first {tally.shown} are shown; narrow the search with path or glob"
    return "\n".join([f"{head}:", *tally.lines])


tool = _SearchWorkspace()
