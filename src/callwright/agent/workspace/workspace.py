"""The folder that tools work in, and the only paths that they can access.

Invariant: nothing outside the folder is read, listed, written or deleted through a `Workspace`, even while other
programs swap folders and symlinks (`confined_path` resolves paths). A hard link to a file outside cannot be
distinguished from a file; it can be read, and a write never changes the outside file, because writing replaces the name
and not the content. File systems mounted in the folder, and the folders above the root, are under the user's control
and are followed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from callwright.agent.workspace.confined_path import ConfinedPath, open_path, quote_path
from callwright.agent.workspace.file_list import list_git_files, walk_files
from callwright.errors import ConfigError, ToolError

__all__ = ["EntryKind", "FolderEntry", "Workspace"]

EntryKind = Literal["file", "folder", "missing", "other"]

_READ_LIMIT_BYTES = 10 * 1024 * 1024
# Opened without blocking: a FIFO without a writer would block the reader forever.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderEntry(NamedTuple):
    """One entry of a folder."""

    name: str
    kind: EntryKind
    size_bytes: int


class Workspace:
    """A folder with confined access. Paths are relative to its root, or absolute and inside it."""

    root: Path
    """The real path of the folder."""

    def __init__(self, root: Path) -> None:
        try:
            self.root = root.resolve(strict=True)
            status = self.root.stat()
        except (OSError, RuntimeError) as error:
            raise ConfigError([f"the workspace {quote_path(str(root))} does not exist"]) from error
        if not stat.S_ISDIR(status.st_mode):
            raise ConfigError([f"the workspace {quote_path(str(root))} is not a folder"])
        if self.root.parent == self.root:
            raise ConfigError(["the root of the file system cannot be a workspace: start in your project's folder"])
        self._identity = (status.st_dev, status.st_ino)

    def resolve_path(self, path: str) -> str:
        """Return the canonical name of a path's target: from the root, with `/`, without symlinks, `.` for the root."""
        with open_path(self.root, self._identity, path) as found:
            return found.path

    def get_kind(self, path: str) -> EntryKind:
        """Return the kind of a path's target."""
        with open_path(self.root, self._identity, path) as found:
            return _get_kind(found.status)

    def read_file(self, path: str, limit_bytes: int = _READ_LIMIT_BYTES) -> bytes:
        """Read a whole file. Raises `ToolError` if it does not exist or exceeds the limit."""
        with open_path(self.root, self._identity, path) as found:
            _check_file(found, path)
            with os.fdopen(os.open(found.name, _READ_FLAGS, dir_fd=found.parent_fd), "rb") as file:
                size = os.fstat(file.fileno())
                if not stat.S_ISREG(size.st_mode):
                    raise ToolError(f"{quote_path(path)} was changed by another program in the meantime; read it again")
                data = file.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise ToolError(
                f"{quote_path(path)} is too large: {max(size.st_size, len(data)):,} bytes, {limit_bytes:,} at most"
            )
        return data

    def get_mode(self, path: str) -> int:
        """Return the mode of a path's target."""
        with open_path(self.root, self._identity, path) as found:
            if found.status is None:
                raise ToolError(f"{quote_path(path)} does not exist")
            return stat.S_IMODE(found.status.st_mode) & 0o777

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Replace or create a file, with its folders: completely or not at all, even in a crash.

        A file keeps its mode; `mode` is for a new one. A symlink stays as it is: its target is written.
        """
        with open_path(self.root, self._identity, path) as found:
            if found.status is not None:
                _check_file(found, path)
                if not found.status.st_mode & 0o222:
                    raise ToolError(f"{quote_path(path)} is read-only")
            elif path.endswith("/"):
                raise ToolError(f"{quote_path(path)} names a folder; remove the slash at its end to name a file")
            found.create_parents()
            _replace_file(found, data, mode)

    def delete(self, path: str) -> None:
        """Delete a file or an empty folder. For a symlink, its target is deleted."""
        with open_path(self.root, self._identity, path) as found:
            match _get_kind(found.status):
                case "folder" if not found.parts:
                    raise ToolError("the workspace itself cannot be deleted")
                case "folder":
                    os.rmdir(found.name, dir_fd=found.parent_fd)
                case _:
                    _check_file(found, path)
                    os.unlink(found.name, dir_fd=found.parent_fd)

    def list_entries(self, path: str = ".") -> list[FolderEntry]:
        """List one folder by name. A symlink counts as its target, or as `other` if it leads out of the workspace."""
        with open_path(self.root, self._identity, path) as found:
            _check_folder(found, path)
            listed = []
            with os.scandir(found.folder_fd) as scan:
                for each in scan:
                    with suppress(FileNotFoundError):
                        listed.append((each.name, each.stat(follow_symlinks=False)))
            target = found.path
        return [self._build_entry(target, name, status) for name, status in sorted(listed, key=lambda pair: pair[0])]

    def iter_files(self, path: str = ".") -> Iterator[str]:
        """Yield every file below a folder, by name from the root. Symlinks, `.git` and files ignored by git are
        skipped.

        Without git, a short list of folders with generated files is skipped instead.
        """
        with open_path(self.root, self._identity, path) as found:
            _check_folder(found, path)
            listed = list_git_files(self.root, found.path)
            if listed is None:
                listed = list(walk_files(found.folder_fd, found.path))
        yield from (name for name in listed if _is_valid_text(name))

    def _build_entry(self, folder: str, name: str, status: os.stat_result) -> FolderEntry:
        kind = _get_kind(status)
        if stat.S_ISLNK(status.st_mode):
            with suppress(ToolError):
                kind = self.get_kind(f"{folder}/{name}")
        return FolderEntry(
            os.fsencode(name).decode(errors="backslashreplace"), kind, status.st_size if kind == "file" else 0
        )


def _is_valid_text(name: str) -> bool:
    """Return whether a call can name it: a name that is not UTF-8 can only be listed."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _get_kind(status: os.stat_result | None) -> EntryKind:
    if status is None:
        return "missing"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(status.st_mode) else "other"


def _check_file(found: ConfinedPath, path: str) -> None:
    match _get_kind(found.status):
        case "missing":
            raise ToolError(f"{quote_path(path)} does not exist")
        case "folder":
            raise ToolError(f"{quote_path(path)} is a folder, not a file")
        case "other":
            raise ToolError(f"{quote_path(path)} is a device, a pipe or a socket, not a file")
        case "file":
            pass


def _check_folder(found: ConfinedPath, path: str) -> None:
    match _get_kind(found.status):
        case "missing":
            raise ToolError(f"{quote_path(path)} does not exist")
        case "file" | "other":
            raise ToolError(f"{quote_path(path)} is not a folder")
        case "folder":
            pass


def _replace_file(found: ConfinedPath, data: bytes, mode: int | None) -> None:
    """Write a new file beside the old one, sync it to disk, and rename it."""
    beside = f".callwright-{secrets.token_hex(8)}.tmp"
    parent, old = found.parent_fd, found.status
    try:
        with os.fdopen(os.open(beside, _CREATE_FLAGS, 0o666, dir_fd=parent), "wb") as file:
            file.write(data)
            file.flush()
            if old is None and mode is not None:
                os.fchmod(file.fileno(), mode)
            if old is not None:
                os.fchmod(file.fileno(), old.st_mode & 0o777)
                with suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fsync(file.fileno())
        os.rename(beside, found.name, src_dir_fd=parent, dst_dir_fd=parent)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=parent)
    os.fsync(parent)
