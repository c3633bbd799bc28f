"""Which files of a workspace commands may not have: those that the policy protects, for the sandbox (A-15).

Invariant: what is found is what is there at that moment, so that what one command makes or moves is protected from the
next. A folder is only listed again when something in it was made, moved or deleted, which its change time tells, and
which no command can set: 20,000 files in 1,000 folders take half a second once, and 15 milliseconds after that.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from callwright.agent.policy import Policy
from callwright.agent.sandbox import Protected
from callwright.agent.workspace import Workspace

__all__ = ["protected_files"]

_SETTLED_NS = 2_000_000_000
"""A folder that changed within this time of being listed is listed again: it may change once more in the same tick."""
_THEIRS = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"})
"""Other people's files, and many: certificates that programs need are no secrets. What was moved there still is one."""
_PROGRAMS_OF_GIT = ("config", "config.worktree", "hooks", "modules/*/config", "modules/*/hooks")
"""What makes git run programs, and so may not be changed; git must read it, or nothing works."""


class _Folder(NamedTuple):
    """A folder as it was listed."""

    mark: tuple[int, int, int]
    """The folder itself, and when it changed."""
    listed: int
    folders: tuple[str, ...]
    protected: Protected


def protected_files(
    workspace: Workspace, policy: Policy, *, clock: Callable[[], int] = time.time_ns
) -> Callable[[], Protected]:
    """What is protected at the moment: hidden where reading is to be asked for, read-only where only writing is."""
    return _Looking(workspace.root, policy, clock).look


class _Looking:
    def __init__(self, root: Path, policy: Policy, clock: Callable[[], int]) -> None:
        self._root = root
        self._policy = policy
        self._clock = clock
        self._known: dict[str, _Folder] = {}
        self._secrets: set[int] = set()
        """The numbers by which the file system knows the files that were hidden once."""

    def look(self) -> Protected:
        """Go through all folders."""
        found: dict[str, _Folder] = {}
        ahead = [""]
        while ahead:
            path = ahead.pop()
            if folder := self._folder(path):
                found[path] = folder
                ahead.extend(f"{path}{name}/" for name in folder.folders)
        self._known = {path: it for path, it in found.items() if it.listed - it.mark[2] > _SETTLED_NS}
        every = [folder.protected for folder in found.values()]
        return Protected(
            hidden=tuple(path for each in every for path in each.hidden),
            read_only=tuple(path for each in every for path in each.read_only),
            kept=tuple(path for each in every for path in each.kept),
        )

    def _folder(self, path: str) -> _Folder | None:
        now = self._clock()
        try:
            status = os.lstat(self._root / path)
            mark = (status.st_dev, status.st_ino, status.st_ctime_ns)
            if (known := self._known.get(path)) and known.mark == mark:
                return known
            if not stat.S_ISDIR(status.st_mode):
                return None
            with os.scandir(self._root / path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            return None  # gone meanwhile, or nobody may look into it: no command may either
        folders = tuple(entry.name for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False))
        protected = self._judged(path, [entry for entry in entries if entry.name not in folders])
        return _Folder(mark, now, folders, protected)

    def _judged(self, folder: str, entries: list[os.DirEntry[str]]) -> Protected:
        theirs = not _THEIRS.isdisjoint(folder.split("/"))
        hidden: list[str] = []
        read_only: list[str] = []
        kept: list[str] = []
        for entry in entries:
            path = f"{folder}{entry.name}"
            if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                kept.append(path)
                read_only.extend(self._of_git(path))
            elif entry.inode() in self._secrets:
                hidden.append(path)
            elif theirs or self._policy.file(path, "write").decision == "allow":
                continue
            elif self._policy.file(path, "read").decision == "allow":
                read_only.append(path)
            else:
                self._secrets.add(entry.inode())
                hidden.append(path)
        return Protected(hidden=tuple(hidden), read_only=tuple(read_only), kept=tuple(kept))

    def _of_git(self, path: str) -> Iterator[str]:
        for pattern in _PROGRAMS_OF_GIT:
            yield from (str(found.relative_to(self._root)) for found in (self._root / path).glob(pattern))
