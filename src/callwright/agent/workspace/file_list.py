"""Lists the source files below a folder.

Invariant: only names are read; no file is opened, and no symlink is followed. In a repository git provides the list,
and nothing from the repository's configuration is run for it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["list_git_files", "walk_files"]

_REPOSITORY_FOLDERS = frozenset({".git", ".hg", ".svn"})
_SKIPPED_FOLDERS = _REPOSITORY_FOLDERS | {
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".gradle",
    ".terraform",
}
# Tools mark folders that they can recreate (https://bford.info/cachedir/): cargo, mypy, pytest, ruff.
_CACHE_TAG = "CACHEDIR.TAG"
_GIT_TIMEOUT_S = 30


def list_git_files(root: Path, folder: str) -> list[str] | None:
    """Return the tracked and untracked files below a folder; None without git or outside a repository."""
    git = shutil.which("git")
    if git is None:
        return None
    # `core.fsmonitor` names a program that git would run, and the project controls the file that sets it.
    command = [git, "-c", "core.fsmonitor=false", "--literal-pathspecs", "ls-files"]
    command += ["--cached", "--others", "--exclude-standard", "-z", "--", folder]
    # Not the agent's own environment: in a session started by a git hook, GIT_DIR would name another repository.
    environment = {"PATH": os.defpath, "HOME": str(Path.home()), "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        process = subprocess.run(  # noqa: S603  # every word of it is ours, or stands behind `--`
            command, cwd=root, env=environment, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if process.returncode != 0:
        return None
    listed = sorted({os.fsdecode(name).rstrip("/") for name in process.stdout.split(b"\0") if name})
    return [name for entry in listed for name in _expand_entry(root, entry)]


def walk_files(folder: int, prefix: str) -> Iterator[str]:
    """Yield the files below an open folder, sorted within each folder; `prefix` is its path from the root."""
    for here, folders, names, inside in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        if _CACHE_TAG in names and here != ".":
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        for name in sorted(names):
            if _is_file(name, inside):
                yield Path(prefix, here, name).as_posix()


def _expand_entry(root: Path, name: str) -> Iterator[str]:
    """Yield the files of a line of git's list: a file, or a nested repository, of which git lists only the folder."""
    try:
        status = os.lstat(root / name)
        if stat.S_ISREG(status.st_mode):
            yield name
        elif stat.S_ISDIR(status.st_mode):
            folder = os.open(root / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                yield from walk_files(folder, name)
            finally:
                os.close(folder)
    except OSError:
        return  # deleted, but still in the index


def _is_file(name: str, folder: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
