"""The files that checkpoints write, as they are now: looked at, written, and tidied up after.

A path is the file's own name, without symlinks on the way; what has become one since is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile

from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.three_way_merge import FileContent
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from callwright.store.snapshots import Snapshot, compute_digest

__all__ = ["ChangeWriter"]

_MAX_FILE_BYTES = 256 * 1024 * 1024
_LEFTOVER_NAME = re.compile(r"\.callwright-[0-9a-f]{16}\.tmp")
"""As `Workspace.write` names the file that it is going to rename."""


class ChangeWriter:
    """The workspace, for files that are known by content."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def build_snapshot(self, change: FileChange, task: int, call: str) -> Snapshot:
        """The row of a change that is going to be made. `ToolError` when its path leads out."""
        path = self._workspace.resolve_path(change.path)
        names = [None if each is None else compute_digest(each) for each in (change.before, change.after)]
        missing = [folder for folder in _iter_parents(path) if self._workspace.get_kind(folder) == "missing"]
        return Snapshot(
            path=path,
            task=task,
            call=call,
            before=names[0],
            after=names[1],
            mode=None if change.before is None else self._workspace.get_mode(path),
            folder=missing[-1] if missing else "",
        )

    def read_current(self, path: str) -> FileContent | ToolError:
        """What the file is; the error, where it cannot be one of ours any more."""
        try:
            if self._workspace.resolve_path(path) != path:
                return ToolError(f"{path} is a symbolic link now, or a folder on the way to it is one")
            if self._workspace.get_kind(path) == "missing":
                return None
            return self._workspace.read_file(path, _MAX_FILE_BYTES)
        except ToolError as error:
            return error

    def describe_differences(self, changes: Iterable[FileChange]) -> str:
        """Which files are not what their changes take them for, and why; empty when all are."""
        return "; ".join(said for change in changes if (said := self._describe_difference(change)))

    def count_written(self, changes: Iterable[FileChange]) -> int:
        """How many of them are made, from the first on; they are made in order."""
        return sum(1 for _ in takewhile(lambda change: self.read_current(change.path) == change.after, changes))

    def _describe_difference(self, change: FileChange) -> str:
        now = self.read_current(change.path)
        if isinstance(now, ToolError):
            return str(now)
        if now == change.before:
            return ""
        if change.before is None:
            return f"{change.path} is there meanwhile: read it first"
        if now is None:
            return f"{change.path} is not there any more"
        return f"{change.path} was changed since it was read: read it again"

    def write_changes(self, changes: Iterable[FileChange]) -> tuple[int, str]:
        """Write one after the other; how many were written, and why the next one was not."""
        made = 0
        try:
            for change in changes:
                self._write_file(change, None)
                made += 1
        except ToolError as error:
            return made, str(error)
        return made, ""

    def write_undo(self, change: FileChange, mode: int | None) -> str:
        """Write one that takes another back; returns why not. `mode` is for a file that comes back."""
        if change.before == change.after:
            return ""
        try:
            if not (problem := self._describe_difference(change)):
                self._write_file(change, mode)
        except ToolError as error:
            return str(error)
        return problem

    def _write_file(self, change: FileChange, mode: int | None) -> None:
        if change.after is None:
            self._workspace.delete(change.path)
        else:
            self._workspace.write_file(change.path, change.after, mode=mode)

    def remove_leftovers(self, path: str, content: FileContent) -> None:
        """Delete what a write of this content left behind when it was interrupted."""
        folder = next(_iter_parents(path), ".")
        with suppress(ToolError):
            if self._workspace.resolve_path(folder) != folder or self._workspace.get_kind(folder) != "folder":
                return
            for entry in self._workspace.list_entries(folder):
                if entry.kind == "file" and _LEFTOVER_NAME.fullmatch(entry.name):
                    left = f"{folder}/{entry.name}"
                    # Another session may be writing here: only what can be ours is.
                    if content is not None and content.startswith(self._workspace.read_file(left, _MAX_FILE_BYTES)):
                        self._workspace.delete(left)

    def remove_empty_folders(self, rows: Sequence[Snapshot], paths: Sequence[str]) -> None:
        """Delete the folders of these files that are empty now, where they were made for files of these rows."""
        made = {
            folder for row in rows if row.folder for folder in _iter_parents(row.path) if _is_below(folder, row.folder)
        }
        left = {folder for path in paths for folder in _iter_parents(path)}
        for folder in sorted(made & left, key=len, reverse=True):
            with suppress(ToolError):
                is_there = (
                    self._workspace.resolve_path(folder) == folder and self._workspace.get_kind(folder) == "folder"
                )
                if is_there and not self._workspace.list_entries(folder):
                    self._workspace.delete(folder)


def _iter_parents(path: str) -> Iterator[str]:
    """The folders that a file is in, from the innermost to the one below the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_below(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(f"{top}/")
