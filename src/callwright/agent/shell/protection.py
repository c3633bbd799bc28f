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
from callwright.agent.shell.sandbox import ProtectedPaths
from callwright.agent.workspace.workspace import Workspace

__all__ = ["make_protection_scanner"]

_SETTLE_TIME_NS = 2_000_000_000
"""A folder that changed within this time of being listed is listed again: it may change once more in the same tick."""
_DEPENDENCY_FOLDERS = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"})
"""Other people's files, and many: certificates that programs need are no secrets. What was moved there still is one."""
_GIT_EXECUTABLE_PATHS = ("config", "config.worktree", "hooks", "modules/*/config", "modules/*/hooks")
"""What makes git run programs, and so may not be changed; git must read it, or nothing works."""


class _ListedFolder(NamedTuple):
    """A folder as it was listed."""

    identity: tuple[int, int, int]
    """The folder itself, and when it changed."""
    listed_at_ns: int
    folders: tuple[str, ...]
    protected: ProtectedPaths


def make_protection_scanner(
    workspace: Workspace, policy: Policy, *, clock: Callable[[], int] = time.time_ns
) -> Callable[[], ProtectedPaths]:
    """What is protected at the moment: hidden where reading is to be asked for, read-only where only writing is."""
    return _ProtectionScanner(workspace.root, policy, clock).scan


class _ProtectionScanner:
    def __init__(self, root: Path, policy: Policy, clock: Callable[[], int]) -> None:
        self._root = root
        self._policy = policy
        self._clock = clock
        self._folder_cache: dict[str, _ListedFolder] = {}
        self._secret_inodes: set[int] = set()
        """The numbers by which the file system knows the files that were hidden once."""

    def scan(self) -> ProtectedPaths:
        """Go through all folders."""
        found: dict[str, _ListedFolder] = {}
        ahead = [""]
        while ahead:
            path = ahead.pop()
            if folder := self._scan_folder(path):
                found[path] = folder
                ahead.extend(f"{path}{name}/" for name in folder.folders)
        self._folder_cache = {
            path: it for path, it in found.items() if it.listed_at_ns - it.identity[2] > _SETTLE_TIME_NS
        }
        every = [folder.protected for folder in found.values()]
        return ProtectedPaths(
            hidden=tuple(path for each in every for path in each.hidden),
            read_only=tuple(path for each in every for path in each.read_only),
            immovable=tuple(path for each in every for path in each.immovable),
        )

    def _scan_folder(self, path: str) -> _ListedFolder | None:
        now = self._clock()
        try:
            status = os.lstat(self._root / path)
            mark = (status.st_dev, status.st_ino, status.st_ctime_ns)
            if (known := self._folder_cache.get(path)) and known.identity == mark:
                return known
            if not stat.S_ISDIR(status.st_mode):
                return None
            with os.scandir(self._root / path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            return None  # gone meanwhile, or nobody may look into it: no command may either
        folders = tuple(entry.name for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False))
        protected = self._classify_entries(path, [entry for entry in entries if entry.name not in folders])
        return _ListedFolder(mark, now, folders, protected)

    def _classify_entries(self, folder: str, entries: list[os.DirEntry[str]]) -> ProtectedPaths:
        theirs = not _DEPENDENCY_FOLDERS.isdisjoint(folder.split("/"))
        hidden: list[str] = []
        read_only: list[str] = []
        kept: list[str] = []
        for entry in entries:
            path = f"{folder}{entry.name}"
            if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                kept.append(path)
                read_only.extend(self._iter_git_paths(path))
            elif entry.inode() in self._secret_inodes:
                hidden.append(path)
            elif theirs or self._policy.judge_file(path, "write").decision == "allow":
                continue
            elif self._policy.judge_file(path, "read").decision == "allow":
                read_only.append(path)
            else:
                self._secret_inodes.add(entry.inode())
                hidden.append(path)
        return ProtectedPaths(hidden=tuple(hidden), read_only=tuple(read_only), immovable=tuple(kept))

    def _iter_git_paths(self, path: str) -> Iterator[str]:
        for pattern in _GIT_EXECUTABLE_PATHS:
            yield from (str(found.relative_to(self._root)) for found in (self._root / path).glob(pattern))
