"""Finds the files of a workspace that the policy protects, so that the sandbox can hide them from commands (A-15).

Invariant: a scan reflects the current files, so that what one command creates or moves is protected from the next. A
folder is only listed again after an entry in it was created, moved or deleted; its change time shows that, and no
command can set it. 20,000 files in 1,000 folders take half a second once, and 15 milliseconds after that.
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
"""Third-party files in large numbers: certificates that programs need are not secrets. A secret moved there still
is.
"""
_GIT_EXECUTABLE_PATHS = ("config", "config.worktree", "hooks", "modules/*/config", "modules/*/hooks")
"""Paths that make git run programs and so must not be changed; git must be able to read them."""


class _ListedFolder(NamedTuple):
    """A listed folder."""

    identity: tuple[int, int, int]
    """The identity of the folder and its change time."""
    listed_at_ns: int
    folders: tuple[str, ...]
    protected: ProtectedPaths


def make_protection_scanner(
    workspace: Workspace, policy: Policy, *, clock: Callable[[], int] = time.time_ns
) -> Callable[[], ProtectedPaths]:
    """Return a scanner: hidden are paths whose reading needs approval, read-only are those whose writing does."""
    return _ProtectionScanner(workspace.root, policy, clock).scan


class _ProtectionScanner:
    def __init__(self, root: Path, policy: Policy, clock: Callable[[], int]) -> None:
        self._root = root
        self._policy = policy
        self._clock = clock
        self._folder_cache: dict[str, _ListedFolder] = {}
        self._secret_inodes: set[int] = set()
        """The inodes of the files that were hidden once."""

    def scan(self) -> ProtectedPaths:
        """Scan all folders."""
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
            if (cached := self._folder_cache.get(path)) and cached.identity == mark:
                return cached
            if not stat.S_ISDIR(status.st_mode):
                return None
            with os.scandir(self._root / path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            return None  # deleted meanwhile, or unreadable: no command can read it either
        folders = tuple(entry.name for entry in entries if entry.name != ".git" and entry.is_dir(follow_symlinks=False))
        protected = self._classify_entries(path, [entry for entry in entries if entry.name not in folders])
        return _ListedFolder(mark, now, folders, protected)

    def _classify_entries(self, folder: str, entries: list[os.DirEntry[str]]) -> ProtectedPaths:
        is_dependency = not _DEPENDENCY_FOLDERS.isdisjoint(folder.split("/"))
        hidden: list[str] = []
        read_only: list[str] = []
        immovable: list[str] = []
        for entry in entries:
            path = f"{folder}{entry.name}"
            if entry.name == ".git" and entry.is_dir(follow_symlinks=False):
                immovable.append(path)
                read_only.extend(self._iter_git_paths(path))
            elif entry.inode() in self._secret_inodes:
                hidden.append(path)
            elif is_dependency or self._policy.judge_file(path, "write").decision == "allow":
                continue
            elif self._policy.judge_file(path, "read").decision == "allow":
                read_only.append(path)
            else:
                self._secret_inodes.add(entry.inode())
                hidden.append(path)
        return ProtectedPaths(hidden=tuple(hidden), read_only=tuple(read_only), immovable=tuple(immovable))

    def _iter_git_paths(self, path: str) -> Iterator[str]:
        for pattern in _GIT_EXECUTABLE_PATHS:
            yield from (str(found.relative_to(self._root)) for found in (self._root / path).glob(pattern))
