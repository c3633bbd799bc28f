"""`list_files`: what is in a folder, or every file that a glob means."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from posixpath import join, normpath
from typing import Annotated

import msgspec

from callwright.agent.tools.base import Arguments, Room
from callwright.agent.tools.form import Form
from callwright.agent.tools.names import globbed, similar
from callwright.agent.tools.words import counted, sized
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_ENTRIES = 300
_CHARACTERS = 32 * 1024


class _List(msgspec.Struct, frozen=True, kw_only=True):
    """List the files and folders of the workspace. Files that git ignores are left out."""

    path: Annotated[
        str,
        msgspec.Meta(description="The folder, from the workspace's root. The default is the root.", examples=["src"]),
    ] = "."
    depth: Annotated[int, msgspec.Meta(description="How many levels of folders to show.", ge=1, le=20)] = 1
    glob: Annotated[
        str, msgspec.Meta(description="List all files below the folder that match, such as *.py or src/**/*.ts.")
    ] = ""


class _ListFiles:
    form = Form("list_files", _List)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, _line)

    def paths(self, arguments: Arguments) -> tuple[str, ...]:
        wanted = self.form.tried(arguments)
        return () if wanted is None else (wanted.path or ".",)

    async def read(self, arguments: Arguments, room: Room) -> str:
        return await asyncio.to_thread(_listed, self.form.read(arguments), room.workspace)


def _line(wanted: _List) -> str:
    where = "the workspace" if wanted.path in {"", "."} else wanted.path
    return f"List {wanted.glob} in {where}" if wanted.glob else f"List {where}"


def _listed(wanted: _List, workspace: Workspace) -> str:
    folder = _existing(wanted.path or ".", workspace)
    files = list(workspace.files(folder))
    if wanted.glob:
        return _matching(wanted.glob, folder, files)
    listing = _Listing(workspace, files)
    lines = list(listing.lines(folder, wanted.depth))
    head = f"{counted(len(files), 'file')} in {_named(folder)}"
    left = f", {counted(listing.ignored, 'entry', 'entries')} left out that git ignores" if listing.ignored else ""
    return _bounded(f"{head}{left}", lines, "list one of its folders, or use glob")


def _existing(path: str, workspace: Workspace) -> str:
    match workspace.kind(path):
        case "missing":
            raise ToolError(f"there is no folder {path!r}.{similar(path, workspace.files())}")
        case "folder":
            return workspace.relative(path)
        case _:
            raise ToolError(f"{path!r} is a file, not a folder; read_file reads it.")


def _matching(glob: str, folder: str, files: list[str]) -> str:
    """Globs are taken from the folder, and from the root, where that is what was meant."""
    matches = globbed(glob)
    inside = "" if folder == "." else f"{folder}/"
    found = [name for name in files if matches(name.removeprefix(inside)) or matches(name)]
    if not found:
        return f"No file in {_named(folder)} matches {glob}; {counted(len(files), 'file')} looked at."
    return _bounded(
        f"{counted(len(found), 'file')} in {_named(folder)} matching {glob}", found, "make the glob narrower"
    )


class _Listing:
    """Folders with what is in them, and a count of what is left out."""

    def __init__(self, workspace: Workspace, files: list[str]) -> None:
        self._workspace = workspace
        self._files = frozenset(files)
        self._below: Counter[str] = Counter()
        self.ignored = 0
        for name in files:
            parts = name.split("/")
            self._below.update("/".join(parts[:depth]) for depth in range(1, len(parts)))

    def lines(self, folder: str, depth: int) -> Iterator[str]:
        """A line for each entry: folders first, then files with their sizes, then what is neither."""
        entries = self._workspace.entries(folder)
        for entry in (each for each in entries if each.kind == "folder"):
            path = normpath(join(folder, entry.name))
            count = self._below[path]
            if not count and (entry.name == ".git" or self._workspace.entries(path)):
                self.ignored += 1
            elif depth == 1 or not count:
                yield f"{path}/ ({counted(count, 'file')})" if count else f"{path}/ (empty)"
            else:
                yield f"{path}/"
                yield from self.lines(path, depth - 1)
        for entry in (each for each in entries if each.kind != "folder"):
            path = normpath(join(folder, entry.name))
            if path in self._files:
                yield f"{path} ({sized(entry.size)})"
            elif entry.kind == "file":
                self.ignored += 1
            else:
                yield f"{path} (a link that leads nowhere or out of the workspace, or a device)"


def _bounded(head: str, lines: list[str], more: str) -> str:
    if not lines:
        return f"{head}."
    sizes = accumulate(len(line) + 1 for line in lines[:_ENTRIES])
    shown = [line for line, size in zip(lines, sizes, strict=False) if size <= _CHARACTERS]
    left = len(lines) - len(shown)
    return "\n".join([f"{head}:", *shown, *([f"({left} more; {more})"] if left else [])])


def _named(folder: str) -> str:
    return "the workspace" if folder == "." else f"{folder}/"


tool = _ListFiles()
