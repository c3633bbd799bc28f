"""The way from the workspace's root to one file, step by step, and never out of it.

Invariant: no step is taken by the operating system on its own. Each folder on the way is opened from the folder before
it and not through a symlink; a symlink is read and its text walked like the rest. So there is no moment between the
check and the use: what is swapped for a symlink on the way makes the step fail, and never leads out. `..` goes back to
the folder that the walk came from, not to wherever that folder may have been moved meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from callwright.errors import ToolError

__all__ = ["ConfinedPath", "open_path", "quote_path"]

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PATH_LENGTH = 4096
_MAX_DEPTH = 128
_MAX_SYMLINKS = 40
# What a shell, a browser or Windows would make a path of. Nothing here expands them: a file of that name is meant only
# where there is one.
_EXPANSION_SYNTAX = re.compile(
    r"~[\w.-]*(?:/|\Z) | \$\{?[A-Z_]+\}?(?:/|\Z) | %[A-Za-z_]+% | [A-Za-z][\w+.-]*:/ | .*\\ | .*[\x00-\x1f\x7f]",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class ConfinedPath:
    """Where a path leads: a name in a folder that is open. The root itself has no name."""

    root_fd: int
    parts: list[str] = field(default_factory=list)
    status: os.stat_result | None = None
    """Of what is there, never of a symlink; None where nothing is."""
    folder_fds: list[int | None] = field(default_factory=list)
    """A descriptor for each part that is an open folder; None for one that is not there yet, or is no folder."""

    @property
    def path(self) -> str:
        """From the root, with forward slashes; `.` for the root."""
        return "/".join(self.parts) or "."

    @property
    def name(self) -> str:
        """The last part, as `dir_fd` calls take it."""
        return self.parts[-1] if self.parts else "."

    @property
    def parent_fd(self) -> int:
        """The open folder that the name is in."""
        return self._get_folder_fd(len(self.folder_fds) - 2)

    @property
    def folder_fd(self) -> int:
        """The place itself, which is a folder."""
        return self._get_folder_fd(len(self.folder_fds) - 1)

    def _get_folder_fd(self, depth: int) -> int:
        if depth < 0:
            return self.root_fd
        found = self.folder_fds[depth]
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found

    def descend(self, name: str, status: os.stat_result | None) -> None:
        """One part further."""
        inside = self.folder_fd if status is not None and stat.S_ISDIR(status.st_mode) else None
        self.folder_fds.append(None if inside is None else os.open(name, _FOLDER_FLAGS, dir_fd=inside))
        self.parts.append(name)
        self.status = status

    def ascend(self) -> None:
        """To the folder that the last step came from."""
        self.parts.pop()
        if (left := self.folder_fds.pop()) is not None:
            os.close(left)
        here = self.root_fd if not self.folder_fds else self.folder_fds[-1]
        self.status = None if here is None else os.fstat(here)

    def create_parents(self) -> None:
        """The folders on the way to the name, where they are missing."""
        for depth, name in enumerate(self.parts[:-1]):
            if self.folder_fds[depth] is None:
                inside = self._get_folder_fd(depth - 1)
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=inside)
                self.folder_fds[depth] = os.open(name, _FOLDER_FLAGS, dir_fd=inside)

    def close(self) -> None:
        """Give the descriptors back."""
        for each in (*self.folder_fds, self.root_fd):
            if each is not None:
                os.close(each)
        self.folder_fds.clear()


@contextmanager
def open_path(root: Path, identity: tuple[int, int], path: str) -> Iterator[ConfinedPath]:
    """Where a path leads, for as long as the block runs. `ToolError` when it leads out."""
    with _os_errors_as_tool_errors(path):
        here = ConfinedPath(os.open(root, _FOLDER_FLAGS))
        try:
            here.status = os.fstat(here.root_fd)
            if (here.status.st_dev, here.status.st_ino) != identity:
                raise ToolError("the workspace's folder was replaced by another one since the session began")
            _walk_path(here, root, path)
            yield here
        finally:
            here.close()


def quote_path(path: str) -> str:
    """A path in a sentence: quoted, without control characters, and not endless."""
    return repr(path if len(path) <= 200 else f"{path[:200]}…")


@contextmanager
def _os_errors_as_tool_errors(path: str) -> Iterator[None]:
    """The system's errors as sentences about a path."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"{quote_path(path)} does not exist") from error
    except PermissionError as error:
        raise ToolError(f"{quote_path(path)} cannot be opened: permission denied") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EINVAL}:
            raise ToolError(f"{quote_path(path)} was changed by somebody else meanwhile; look again") from error
        raise ToolError(f"{quote_path(path)}: {(error.strerror or str(error)).lower()}") from error


def _walk_path(here: ConfinedPath, root: Path, path: str) -> None:
    if len(path) > _MAX_PATH_LENGTH:
        raise ToolError(f"{quote_path(path)} is too long for a path")
    if "\0" in path:
        raise ToolError(f"{quote_path(path)} has a NUL in it, which no path can have")
    ahead = deque(_split_path(root, path, path))
    links = 0
    while ahead:
        name = ahead.popleft()
        if here.status is not None and not stat.S_ISDIR(here.status.st_mode):
            raise ToolError(f"{quote_path(here.path)} is a file, not a folder")
        if name in {"", "."}:
            continue
        if name == "..":
            if not here.parts:
                raise ToolError(_format_escape_error(path))
            here.ascend()
            continue
        status = _stat_entry(here, name)
        if status is not None and stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MAX_SYMLINKS:
                raise ToolError(f"{quote_path(path)} goes round in circles: too many symbolic links")
            target = os.readlink(name, dir_fd=here.folder_fd)
            ahead.extendleft(reversed(_split_path(root, target, path)))
            if target.startswith("/"):
                while here.parts:
                    here.ascend()
            continue
        if len(here.parts) == _MAX_DEPTH:
            raise ToolError(f"{quote_path(path)} is too deep: more than {_MAX_DEPTH} folders")
        here.descend(_find_real_name(here, name) if status else name, status)
    if here.status is None:
        _reject_expansions(path)


def _split_path(root: Path, text: str, path: str) -> list[str]:
    """The names of a path or of a symlink's target, from the root where it is absolute."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{quote_path(path)} is not valid text") from error
    parts = text.split("/")
    if not text.startswith("/"):
        return parts
    above = [part for part in str(root).split("/") if part]
    rest = deque(parts)
    for part in above:
        while rest and rest[0] in {"", "."}:
            rest.popleft()
        if not rest or rest.popleft() != part:
            raise ToolError(_format_escape_error(path))
    return list(rest)


def _stat_entry(here: ConfinedPath, name: str) -> os.stat_result | None:
    if here.status is None:
        return None
    try:
        return os.stat(name, dir_fd=here.folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _find_real_name(here: ConfinedPath, name: str) -> str:
    """The name as the folder has it: where case does not count, `.ENV` opens `.env` and must be judged as that."""
    if name.isascii():
        other = name.swapcase()
        if other == name or _stat_entry(here, other) is None:
            return name
    with os.scandir(here.folder_fd) as scan:
        names = [each.name for each in scan]
    wanted = _stat_entry(here, name)
    if name in names or wanted is None:
        return name
    alike = [each for each in names if (found := _stat_entry(here, each)) and os.path.samestat(found, wanted)]
    return min(alike, key=lambda each: _normalize_case(each) != _normalize_case(name), default=name)


def _normalize_case(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def _reject_expansions(path: str) -> None:
    """Something that is not there, and whose name looks as if it were to be expanded, is a misunderstanding."""
    if _EXPANSION_SYNTAX.match(path):
        raise ToolError(
            f"{quote_path(path)} does not exist, and is taken as it is written: no '~', variables, addresses or "
            "backslashes. Write a path from the workspace's root, such as 'src/app.py'"
        )


def _format_escape_error(path: str) -> str:
    return f"{quote_path(path)} leads out of the workspace. Write a path from its root, such as 'src/app.py'"
