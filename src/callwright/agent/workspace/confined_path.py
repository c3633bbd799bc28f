"""Resolves a path from the workspace's root, step by step, without ever leaving it.

Invariant: the operating system never resolves more than one step. Each folder is opened relative to the folder before
it and not through a symlink; the target of a symlink is read and resolved in the same way. So there is no gap between
check and use: if a folder is replaced by a symlink meanwhile, the step fails and never leads out. `..` returns to the
folder that the walk came from, not to wherever that folder may have been moved.
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
# Syntax that a shell, a browser or Windows would expand. Nothing is expanded here: such a name is accepted only if a
# file with it exists.
_EXPANSION_SYNTAX = re.compile(
    r"~[\w.-]*(?:/|\Z) | \$\{?[A-Z_]+\}?(?:/|\Z) | %[A-Za-z_]+% | [A-Za-z][\w+.-]*:/ | .*\\ | .*[\x00-\x1f\x7f]",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class ConfinedPath:
    """The target of a path: a name in an open folder. The root itself has no name."""

    root_fd: int
    parts: list[str] = field(default_factory=list)
    status: os.stat_result | None = None
    """The status of the target, never of a symlink; None if it does not exist."""
    folder_fds: list[int | None] = field(default_factory=list)
    """A descriptor for each part that is an open folder; None for a part that does not exist or is not a folder."""

    @property
    def path(self) -> str:
        """Relative to the root, with forward slashes; `.` for the root."""
        return "/".join(self.parts) or "."

    @property
    def name(self) -> str:
        """The last part, as `dir_fd` calls take it."""
        return self.parts[-1] if self.parts else "."

    @property
    def parent_fd(self) -> int:
        """The open folder that contains the name."""
        return self._get_folder_fd(len(self.folder_fds) - 2)

    @property
    def folder_fd(self) -> int:
        """The target itself, which must be a folder."""
        return self._get_folder_fd(len(self.folder_fds) - 1)

    def _get_folder_fd(self, depth: int) -> int:
        if depth < 0:
            return self.root_fd
        found = self.folder_fds[depth]
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found

    def descend(self, name: str, status: os.stat_result | None) -> None:
        """Move one part further."""
        inside = self.folder_fd if status is not None and stat.S_ISDIR(status.st_mode) else None
        self.folder_fds.append(None if inside is None else os.open(name, _FOLDER_FLAGS, dir_fd=inside))
        self.parts.append(name)
        self.status = status

    def ascend(self) -> None:
        """Move back to the folder that the last step came from."""
        self.parts.pop()
        if (left := self.folder_fds.pop()) is not None:
            os.close(left)
        here = self.root_fd if not self.folder_fds else self.folder_fds[-1]
        self.status = None if here is None else os.fstat(here)

    def create_parents(self) -> None:
        """Create the missing folders above the name."""
        for depth, name in enumerate(self.parts[:-1]):
            if self.folder_fds[depth] is None:
                inside = self._get_folder_fd(depth - 1)
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=inside)
                self.folder_fds[depth] = os.open(name, _FOLDER_FLAGS, dir_fd=inside)

    def close(self) -> None:
        """Close the descriptors."""
        for each in (*self.folder_fds, self.root_fd):
            if each is not None:
                os.close(each)
        self.folder_fds.clear()


@contextmanager
def open_path(root: Path, identity: tuple[int, int], path: str) -> Iterator[ConfinedPath]:
    """Open the target of a path for the duration of the block. Raises `ToolError` when it is outside the workspace."""
    with _os_errors_as_tool_errors(path):
        target = ConfinedPath(os.open(root, _FOLDER_FLAGS))
        try:
            target.status = os.fstat(target.root_fd)
            if (target.status.st_dev, target.status.st_ino) != identity:
                raise ToolError(
                    "the workspace's folder has been replaced since the session started; restart the session"
                )
            _walk_path(target, root, path)
            yield target
        finally:
            target.close()


def quote_path(path: str) -> str:
    """Quote a path for a message: without control characters, and shortened."""
    return repr(path if len(path) <= 200 else f"{path[:200]}…")


@contextmanager
def _os_errors_as_tool_errors(path: str) -> Iterator[None]:
    """Convert errors of the operating system to `ToolError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"{quote_path(path)} does not exist") from error
    except PermissionError as error:
        raise ToolError(f"{quote_path(path)} cannot be opened: permission denied") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EINVAL}:
            raise ToolError(
                f"{quote_path(path)} was changed by another program in the meantime; read it again"
            ) from error
        raise ToolError(f"{quote_path(path)}: {(error.strerror or str(error)).lower()}") from error


def _walk_path(target: ConfinedPath, root: Path, path: str) -> None:
    if len(path) > _MAX_PATH_LENGTH:
        raise ToolError(f"{quote_path(path)} is too long for a path")
    if "\0" in path:
        raise ToolError(f"{quote_path(path)} contains a NUL character, which no path can contain")
    ahead = deque(_split_path(root, path, path))
    links = 0
    while ahead:
        name = ahead.popleft()
        if target.status is not None and not stat.S_ISDIR(target.status.st_mode):
            raise ToolError(f"{quote_path(target.path)} is a file, not a folder")
        if name in {"", "."}:
            continue
        if name == "..":
            if not target.parts:
                raise ToolError(_format_escape_error(path))
            target.ascend()
            continue
        status = _stat_entry(target, name)
        if status is not None and stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MAX_SYMLINKS:
                raise ToolError(f"{quote_path(path)} has too many symbolic links: they form a loop")
            link_text = os.readlink(name, dir_fd=target.folder_fd)
            ahead.extendleft(reversed(_split_path(root, link_text, path)))
            if link_text.startswith("/"):
                while target.parts:
                    target.ascend()
            continue
        if len(target.parts) == _MAX_DEPTH:
            raise ToolError(f"{quote_path(path)} is too deep: more than {_MAX_DEPTH} folders")
        target.descend(_find_real_name(target, name) if status else name, status)
    if target.status is None:
        _reject_expansions(path)


def _split_path(root: Path, text: str, path: str) -> list[str]:
    """Return the names of a path or of a symlink's target, starting at the root if it is absolute."""
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


def _stat_entry(target: ConfinedPath, name: str) -> os.stat_result | None:
    if target.status is None:
        return None
    try:
        return os.stat(name, dir_fd=target.folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _find_real_name(target: ConfinedPath, name: str) -> str:
    """Return the name as the folder stores it: on a case-insensitive system `.ENV` opens `.env` and is judged as
    that.
    """
    if name.isascii():
        other = name.swapcase()
        if other == name or _stat_entry(target, other) is None:
            return name
    with os.scandir(target.folder_fd) as scan:
        names = [each.name for each in scan]
    normalized = _stat_entry(target, name)
    if name in names or normalized is None:
        return name
    alike = [each for each in names if (found := _stat_entry(target, each)) and os.path.samestat(found, normalized)]
    return min(alike, key=lambda each: _normalize_case(each) != _normalize_case(name), default=name)


def _normalize_case(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def _reject_expansions(path: str) -> None:
    """Reject a path that does not exist and looks as if it should be expanded."""
    if _EXPANSION_SYNTAX.match(path):
        raise ToolError(
            f"{quote_path(path)} does not exist, and is taken as it is written: no '~', variables, addresses or "
            "backslashes. Write a path from the workspace's root, such as 'src/app.py'"
        )


def _format_escape_error(path: str) -> str:
    return f"{quote_path(path)} leads out of the workspace. Write a path from its root, such as 'src/app.py'"
