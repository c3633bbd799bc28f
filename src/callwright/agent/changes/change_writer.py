"""Reads, writes and cleans up the files of checkpoints.

Paths are canonical, without symlinks; a path that has become a symlink since then is not followed.
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
"""The name that `Workspace.write_file` uses for the temporary file that it renames."""


class ChangeWriter:
    """Writes changes to files of the workspace after comparing their content."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def build_snapshot(self, change: FileChange, task: int, call: str) -> Snapshot:
        """Build the snapshot row of a planned change. Raises `ToolError` when its path leads out of the workspace."""
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
        """Return the current content of a file, or an error if the path is no longer a regular file."""
        try:
            if self._workspace.resolve_path(path) != path:
                return ToolError(f"{path} is a symbolic link now, or one of its parent folders is")
            if self._workspace.get_kind(path) == "missing":
                return None
            return self._workspace.read_file(path, _MAX_FILE_BYTES)
        except ToolError as error:
            return error

    def describe_differences(self, changes: Iterable[FileChange]) -> str:
        """List the files that differ from the state that their changes expect, with the reason; empty if none does."""
        return "; ".join(description for change in changes if (description := self._describe_difference(change)))

    def count_written(self, changes: Iterable[FileChange]) -> int:
        """Return how many of the changes are written, counting from the first; changes are written in order."""
        return sum(1 for _ in takewhile(lambda change: self.read_current(change.path) == change.after, changes))

    def _describe_difference(self, change: FileChange) -> str:
        now = self.read_current(change.path)
        if isinstance(now, ToolError):
            return str(now)
        if now == change.before:
            return ""
        if change.before is None:
            return f"{change.path} was created in the meantime: read it first"
        if now is None:
            return f"{change.path} no longer exists"
        return f"{change.path} was changed since it was read: read it again"

    def write_changes(self, changes: Iterable[FileChange]) -> tuple[int, str]:
        """Write the changes in order. Returns how many were written, and why the next one was not."""
        written = 0
        try:
            for change in changes:
                self._write_file(change, None)
                written += 1
        except ToolError as error:
            return written, str(error)
        return written, ""

    def write_undo(self, change: FileChange, mode: int | None) -> str:
        """Write a change that undoes another one; returns the reason if that failed. `mode` is for a restored file."""
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
        """Delete the temporary file of an interrupted write of this content."""
        folder = next(_iter_parents(path), ".")
        with suppress(ToolError):
            if self._workspace.resolve_path(folder) != folder or self._workspace.get_kind(folder) != "folder":
                return
            for entry in self._workspace.list_entries(folder):
                if entry.kind == "file" and _LEFTOVER_NAME.fullmatch(entry.name):
                    left = f"{folder}/{entry.name}"
                    # Another session may be writing here: delete only files that this one can have written.
                    if content is not None and content.startswith(self._workspace.read_file(left, _MAX_FILE_BYTES)):
                        self._workspace.delete(left)

    def remove_empty_folders(self, rows: Sequence[Snapshot], paths: Sequence[str]) -> None:
        """Delete the folders of these files that are empty now, if they were created for files of these rows."""
        created = {
            folder for row in rows if row.folder for folder in _iter_parents(row.path) if _is_below(folder, row.folder)
        }
        left = {folder for path in paths for folder in _iter_parents(path)}
        for folder in sorted(created & left, key=len, reverse=True):
            with suppress(ToolError):
                is_there = (
                    self._workspace.resolve_path(folder) == folder and self._workspace.get_kind(folder) == "folder"
                )
                if is_there and not self._workspace.list_entries(folder):
                    self._workspace.delete(folder)


def _iter_parents(path: str) -> Iterator[str]:
    """Yield the folders of a file, from the innermost to the one below the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_below(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(f"{top}/")
