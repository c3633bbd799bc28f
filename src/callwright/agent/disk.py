"""The files that checkpoints write, as they are now: looked at, written, and tidied up after.

A path is the file's own name, without symlinks on the way; what has become one since is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile

from callwright.agent.change import Change
from callwright.agent.merge import Content
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError
from callwright.store.snapshots import Snapshot, compute_digest

__all__ = ["Disk"]

_LARGEST_BYTES = 256 * 1024 * 1024
_LEFTOVER = re.compile(r"\.callwright-[0-9a-f]{16}\.tmp")
"""As `Workspace.write` names the file that it is going to rename."""


class Disk:
    """The workspace, for files that are known by content."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def planned(self, change: Change, task: int, call: str) -> Snapshot:
        """The row of a change that is going to be made. `ToolError` when its path leads out."""
        path = self._workspace.relative(change.path)
        names = [None if each is None else compute_digest(each) for each in (change.before, change.after)]
        missing = [folder for folder in _parents(path) if self._workspace.kind(folder) == "missing"]
        return Snapshot(
            path=path,
            task=task,
            call=call,
            before=names[0],
            after=names[1],
            mode=None if change.before is None else self._workspace.mode(path),
            folder=missing[-1] if missing else "",
        )

    def look(self, path: str) -> Content | ToolError:
        """What the file is; the error, where it cannot be one of ours any more."""
        try:
            if self._workspace.relative(path) != path:
                return ToolError(f"{path} is a symbolic link now, or a folder on the way to it is one")
            if self._workspace.kind(path) == "missing":
                return None
            return self._workspace.read(path, _LARGEST_BYTES)
        except ToolError as error:
            return error

    def differing(self, changes: Iterable[Change]) -> str:
        """Which files are not what their changes take them for, and why; empty when all are."""
        return "; ".join(said for change in changes if (said := self._differs(change)))

    def written(self, changes: Iterable[Change]) -> int:
        """How many of them are made, from the first on; they are made in order."""
        return sum(1 for _ in takewhile(lambda change: self.look(change.path) == change.after, changes))

    def _differs(self, change: Change) -> str:
        now = self.look(change.path)
        if isinstance(now, ToolError):
            return str(now)
        if now == change.before:
            return ""
        if change.before is None:
            return f"{change.path} is there meanwhile: read it first"
        if now is None:
            return f"{change.path} is not there any more"
        return f"{change.path} was changed since it was read: read it again"

    def write_all(self, changes: Iterable[Change]) -> tuple[int, str]:
        """Write one after the other; how many were written, and why the next one was not."""
        made = 0
        try:
            for change in changes:
                self._write(change, None)
                made += 1
        except ToolError as error:
            return made, str(error)
        return made, ""

    def put_back(self, change: Change, mode: int | None) -> str:
        """Write one that takes another back; returns why not. `mode` is for a file that comes back."""
        if change.before == change.after:
            return ""
        try:
            if not (problem := self._differs(change)):
                self._write(change, mode)
        except ToolError as error:
            return str(error)
        return problem

    def _write(self, change: Change, mode: int | None) -> None:
        if change.after is None:
            self._workspace.delete(change.path)
        else:
            self._workspace.write(change.path, change.after, mode=mode)

    def clear(self, path: str, content: Content) -> None:
        """Delete what a write of this content left behind when it was interrupted."""
        folder = next(_parents(path), ".")
        with suppress(ToolError):
            if self._workspace.relative(folder) != folder or self._workspace.kind(folder) != "folder":
                return
            for entry in self._workspace.entries(folder):
                if entry.kind == "file" and _LEFTOVER.fullmatch(entry.name):
                    left = f"{folder}/{entry.name}"
                    # Another session may be writing here: only what can be ours is.
                    if content is not None and content.startswith(self._workspace.read(left, _LARGEST_BYTES)):
                        self._workspace.delete(left)

    def tidy(self, rows: Sequence[Snapshot], paths: Sequence[str]) -> None:
        """Delete the folders of these files that are empty now, where they were made for files of these rows."""
        made = {folder for row in rows if row.folder for folder in _parents(row.path) if _is_below(folder, row.folder)}
        left = {folder for path in paths for folder in _parents(path)}
        for folder in sorted(made & left, key=len, reverse=True):
            with suppress(ToolError):
                is_there = self._workspace.relative(folder) == folder and self._workspace.kind(folder) == "folder"
                if is_there and not self._workspace.entries(folder):
                    self._workspace.delete(folder)


def _parents(path: str) -> Iterator[str]:
    """The folders that a file is in, from the innermost to the one below the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _is_below(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(f"{top}/")
