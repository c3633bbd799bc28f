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

__all__ = ["Place", "place", "said"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PATH = 4096
_DEEPEST = 128
_MOST_LINKS = 40
# What a shell, a browser or Windows would make a path of. Nothing here expands them: a file of that name is meant only
# where there is one.
_EXPANDED = re.compile(
    r"~[\w.-]*(?:/|\Z) | \$\{?[A-Z_]+\}?(?:/|\Z) | %[A-Za-z_]+% | [A-Za-z][\w+.-]*:/ | .*\\ | .*[\x00-\x1f\x7f]",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class Place:
    """Where a path leads: a name in a folder that is open. The root itself has no name."""

    root: int
    parts: list[str] = field(default_factory=list)
    status: os.stat_result | None = None
    """Of what is there, never of a symlink; None where nothing is."""
    folders: list[int | None] = field(default_factory=list)
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
    def parent(self) -> int:
        """The open folder that the name is in."""
        return self._at(len(self.folders) - 2)

    @property
    def folder(self) -> int:
        """The place itself, which is a folder."""
        return self._at(len(self.folders) - 1)

    def _at(self, depth: int) -> int:
        if depth < 0:
            return self.root
        found = self.folders[depth]
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found

    def step(self, name: str, status: os.stat_result | None) -> None:
        """One part further."""
        inside = self.folder if status is not None and stat.S_ISDIR(status.st_mode) else None
        self.folders.append(None if inside is None else os.open(name, _FOLDER, dir_fd=inside))
        self.parts.append(name)
        self.status = status

    def back(self) -> None:
        """To the folder that the last step came from."""
        self.parts.pop()
        if (left := self.folders.pop()) is not None:
            os.close(left)
        here = self.root if not self.folders else self.folders[-1]
        self.status = None if here is None else os.fstat(here)

    def make_folders(self) -> None:
        """The folders on the way to the name, where they are missing."""
        for depth, name in enumerate(self.parts[:-1]):
            if self.folders[depth] is None:
                inside = self._at(depth - 1)
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=inside)
                self.folders[depth] = os.open(name, _FOLDER, dir_fd=inside)

    def close(self) -> None:
        """Give the descriptors back."""
        for each in (*self.folders, self.root):
            if each is not None:
                os.close(each)
        self.folders.clear()


@contextmanager
def place(root: Path, identity: tuple[int, int], path: str) -> Iterator[Place]:
    """Where a path leads, for as long as the block runs. `ToolError` when it leads out."""
    with _told(path):
        here = Place(os.open(root, _FOLDER))
        try:
            here.status = os.fstat(here.root)
            if (here.status.st_dev, here.status.st_ino) != identity:
                raise ToolError("the workspace's folder was replaced by another one since the session began")
            _walk(here, root, path)
            yield here
        finally:
            here.close()


def said(path: str) -> str:
    """A path in a sentence: quoted, without control characters, and not endless."""
    return repr(path if len(path) <= 200 else f"{path[:200]}…")


@contextmanager
def _told(path: str) -> Iterator[None]:
    """The system's errors as sentences about a path."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"{said(path)} does not exist") from error
    except PermissionError as error:
        raise ToolError(f"{said(path)} cannot be opened: permission denied") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.EINVAL}:
            raise ToolError(f"{said(path)} was changed by somebody else meanwhile; look again") from error
        raise ToolError(f"{said(path)}: {(error.strerror or str(error)).lower()}") from error


def _walk(here: Place, root: Path, path: str) -> None:
    if len(path) > _LONGEST_PATH:
        raise ToolError(f"{said(path)} is too long for a path")
    if "\0" in path:
        raise ToolError(f"{said(path)} has a NUL in it, which no path can have")
    ahead = deque(_parts(root, path, path))
    links = 0
    while ahead:
        name = ahead.popleft()
        if here.status is not None and not stat.S_ISDIR(here.status.st_mode):
            raise ToolError(f"{said(here.path)} is a file, not a folder")
        if name in {"", "."}:
            continue
        if name == "..":
            if not here.parts:
                raise ToolError(_leads_out(path))
            here.back()
            continue
        status = _look(here, name)
        if status is not None and stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise ToolError(f"{said(path)} goes round in circles: too many symbolic links")
            target = os.readlink(name, dir_fd=here.folder)
            ahead.extendleft(reversed(_parts(root, target, path)))
            if target.startswith("/"):
                while here.parts:
                    here.back()
            continue
        if len(here.parts) == _DEEPEST:
            raise ToolError(f"{said(path)} is too deep: more than {_DEEPEST} folders")
        here.step(_spelled(here, name) if status else name, status)
    if here.status is None:
        _check_meant(path)


def _parts(root: Path, text: str, path: str) -> list[str]:
    """The names of a path or of a symlink's target, from the root where it is absolute."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{said(path)} is not valid text") from error
    parts = text.split("/")
    if not text.startswith("/"):
        return parts
    above = [part for part in str(root).split("/") if part]
    rest = deque(parts)
    for part in above:
        while rest and rest[0] in {"", "."}:
            rest.popleft()
        if not rest or rest.popleft() != part:
            raise ToolError(_leads_out(path))
    return list(rest)


def _look(here: Place, name: str) -> os.stat_result | None:
    if here.status is None:
        return None
    try:
        return os.stat(name, dir_fd=here.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _spelled(here: Place, name: str) -> str:
    """The name as the folder has it: where case does not count, `.ENV` opens `.env` and must be judged as that."""
    if name.isascii():
        other = name.swapcase()
        if other == name or _look(here, other) is None:
            return name
    with os.scandir(here.folder) as scan:
        names = [each.name for each in scan]
    wanted = _look(here, name)
    if name in names or wanted is None:
        return name
    alike = [each for each in names if (found := _look(here, each)) and os.path.samestat(found, wanted)]
    return min(alike, key=lambda each: _folded(each) != _folded(name), default=name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


def _check_meant(path: str) -> None:
    """Something that is not there, and whose name looks as if it were to be expanded, is a misunderstanding."""
    if _EXPANDED.match(path):
        raise ToolError(
            f"{said(path)} does not exist, and is taken as it is written: no '~', variables, addresses or backslashes. "
            "Write a path from the workspace's root, such as 'src/app.py'"
        )


def _leads_out(path: str) -> str:
    return f"{said(path)} leads out of the workspace. Write a path from its root, such as 'src/app.py'"
