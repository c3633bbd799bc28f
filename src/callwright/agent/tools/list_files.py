"""`list_files`: lists a folder, or every file that matches a glob."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from posixpath import join, normpath
from typing import Annotated

import msgspec

from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.agent.tools.path_match import compile_glob, suggest_paths
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.tools.text_format import format_count, format_size
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_MAX_ENTRIES = 300
_MAX_CHARACTERS = 32 * 1024


class _ListArguments(msgspec.Struct, frozen=True, kw_only=True):
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
    signature = ToolSignature("list_files", _ListArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, _describe_call)

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        parsed = self.signature.try_parse(arguments)
        return () if parsed is None else (parsed.path or ".",)

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        return await asyncio.to_thread(_list_folder, self.signature.parse(arguments), context.workspace)


def _describe_call(parsed: _ListArguments) -> str:
    folder = "the workspace" if parsed.path in {"", "."} else parsed.path
    return f"List {parsed.glob} in {folder}" if parsed.glob else f"List {folder}"


def _list_folder(parsed: _ListArguments, workspace: Workspace) -> str:
    folder = _require_folder(parsed.path or ".", workspace)
    files = list(workspace.iter_files(folder))
    if parsed.glob:
        return _list_matching(parsed.glob, folder, files)
    listing = _FolderListing(workspace, files)
    lines = list(listing.iter_lines(folder, parsed.depth))
    head = f"{format_count(len(files), 'file')} in {_format_folder(folder)}"
    left = (
        f", {format_count(listing.ignored_count, 'entry', 'entries')} left out that git ignores"
        if listing.ignored_count
        else ""
    )
    return _limit_lines(f"{head}{left}", lines, "list one of its folders, or use glob")


def _require_folder(path: str, workspace: Workspace) -> str:
    match workspace.get_kind(path):
        case "missing":
            raise ToolError(f"there is no folder {path!r}.{suggest_paths(path, workspace.iter_files())}")
        case "folder":
            return workspace.resolve_path(path)
        case _:
            raise ToolError(f"{path!r} is a file, not a folder; read_file reads it.")


def _list_matching(glob: str, folder: str, files: list[str]) -> str:
    """Match a glob from the folder, or from the root if it matches nothing there."""
    matches = compile_glob(glob)
    inside = "" if folder == "." else f"{folder}/"
    found = [name for name in files if matches(name.removeprefix(inside)) or matches(name)]
    if not found:
        return f"No file in {_format_folder(folder)} matches {glob}; {format_count(len(files), 'file')} searched."
    return _limit_lines(
        f"{format_count(len(found), 'file')} in {_format_folder(folder)} matching {glob}",
        found,
        "use a narrower glob",
    )


class _FolderListing:
    """Lists folders with their entries, and counts what is omitted."""

    def __init__(self, workspace: Workspace, files: list[str]) -> None:
        self._workspace = workspace
        self._files = frozenset(files)
        self._file_counts: Counter[str] = Counter()
        self.ignored_count = 0
        for name in files:
            parts = name.split("/")
            self._file_counts.update("/".join(parts[:depth]) for depth in range(1, len(parts)))

    def iter_lines(self, folder: str, depth: int) -> Iterator[str]:
        """Yield a line for each entry: folders first, then files with their sizes, then other entries."""
        entries = self._workspace.list_entries(folder)
        for entry in (each for each in entries if each.kind == "folder"):
            path = normpath(join(folder, entry.name))
            count = self._file_counts[path]
            if not count and (entry.name == ".git" or self._workspace.list_entries(path)):
                self.ignored_count += 1
            elif depth == 1 or not count:
                yield f"{path}/ ({format_count(count, 'file')})" if count else f"{path}/ (empty)"
            else:
                yield f"{path}/"
                yield from self.iter_lines(path, depth - 1)
        for entry in (each for each in entries if each.kind != "folder"):
            path = normpath(join(folder, entry.name))
            if path in self._files:
                yield f"{path} ({format_size(entry.size_bytes)})"
            elif entry.kind == "file":
                self.ignored_count += 1
            else:
                yield f"{path} (a broken link, a link out of the workspace, or a device)"


def _limit_lines(head: str, lines: list[str], more: str) -> str:
    if not lines:
        return f"{head}."
    sizes = accumulate(len(line) + 1 for line in lines[:_MAX_ENTRIES])
    selected = [line for line, size in zip(lines, sizes, strict=False) if size <= _MAX_CHARACTERS]
    omitted = len(lines) - len(selected)
    return "\n".join([f"{head}:", *selected, *([f"({omitted} more; {more})"] if omitted else [])])


def _format_folder(folder: str) -> str:
    return "the workspace" if folder == "." else f"{folder}/"


tool = _ListFiles()
