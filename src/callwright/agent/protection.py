"""Which files of a workspace commands may not have: those that the policy protects, for the sandbox (A-15)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from callwright.agent.policy import Policy
from callwright.agent.sandbox import Protected
from callwright.agent.workspace import Workspace

__all__ = ["protected_files"]

_FRESH_SECONDS = 2.0
"""A workspace is not walked again for every command of a quick row of them."""
_MOST = 50_000
_SKIPPED = frozenset({"node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"})
"""Other people's files, and many."""


def protected_files(
    workspace: Workspace, policy: Policy, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[], Protected]:
    """What is protected at the moment: hidden where reading is to be asked for, read-only where only writing is."""
    known: list[tuple[float, Protected]] = []

    def look() -> Protected:
        now = clock()
        if not known or now - known[0][0] > _FRESH_SECONDS:
            known[:] = [(now, _found(workspace, policy))]
        return known[0][1]

    return look


def _found(workspace: Workspace, policy: Policy) -> Protected:
    hidden, read_only = [], []
    for path in _names(workspace):
        if policy.file(path, "write").decision == "allow":
            continue
        # Git itself must read what is its own, or nothing of it works.
        if path.startswith(".git/") or policy.file(path, "read").decision == "allow":
            read_only.append(path)
        else:
            hidden.append(path)
    return Protected(hidden=tuple(hidden), read_only=tuple(read_only))


def _names(workspace: Workspace) -> Iterator[str]:
    """Files, also those that git ignores: a `.env` is one. Of `.git` only what makes it run programs."""
    count = 0
    for folder, folders, files in os.walk(workspace.root):
        here = os.path.relpath(folder, workspace.root)
        prefix = "" if here == "." else f"{here}/".replace(os.sep, "/")
        if not prefix:
            yield from (name for name in (".git/config", ".git/hooks") if (workspace.root / name).exists())
        folders[:] = [name for name in folders if name not in _SKIPPED and name != ".git"]
        for name in files:
            count += 1
            if count > _MOST:
                return
            yield f"{prefix}{name}"
