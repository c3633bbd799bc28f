"""Classifies a path by its text alone: in the workspace, in the system, in a home folder, elsewhere, or unknown."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import Literal

from callwright.agent.policy.shell_words import ShellWord

__all__ = ["PathRegion", "classify_path", "resolve_path"]

PathRegion = Literal["inside", "all", "temporary", "harmless", "device", "system", "home", "outside", "unknown"]
"""`all` is the workspace itself or everything in it; `home` and `system` contain files that cannot be restored."""

_HARMLESS_DEVICE = re.compile(r"/dev/(null|stdin|stdout|stderr|tty|zero|fd/\d+|u?random|full)")
_SYSTEM_PATH = re.compile(
    r"/(etc|boot|usr|bin|sbin|lib\w*|var|sys|proc|dev|opt|root|run|srv|System|Library|Applications|private/etc)(/|$)"
)
_HOME_PATH = re.compile(r"(~[^/]*|/(home|Users)(/[^/]+)?|/root)(/[*.]*)?")
_TEMPORARY_PATH = re.compile(r"/(var/|private/)?tmp(/.+)")


def resolve_path(word: ShellWord, folder: str | None, workspace: str = "") -> str | None:
    """Return a path relative to the workspace if inside, else absolute, below `~` or with `..`; None if unknown."""
    text = word.known_text if word.is_known or word.text[:1] in "/~" else None
    if text is None:
        return None
    if not text.startswith(("/", "~")):
        if folder is None:
            return None
        text = f"{folder}/{text}"
    if re.match(r"[A-Za-z]:[\\/]", word.text):
        return f"/{word.text}"
    path = posixpath.normpath(text)
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    if workspace and PurePosixPath(path).is_relative_to(workspace):
        return PurePosixPath(path).relative_to(workspace).as_posix()
    return path


def classify_path(path: str | None) -> PathRegion:
    """Return the region of the machine that a resolved path is in."""
    if path is None:
        return "unknown"
    if path in (".", "*", ".*", "**", "*.*", "[!.]*", "?*"):
        return "all"
    if not path.startswith(("/", "~", "..")):
        return "inside"
    if _HARMLESS_DEVICE.fullmatch(path):
        return "harmless"
    if _TEMPORARY_PATH.fullmatch(path):
        return "temporary"
    if path.startswith("/dev/"):
        return "device"
    if _HOME_PATH.fullmatch(path):
        return "home"
    return "system" if _SYSTEM_PATH.match(path) or re.fullmatch(r"/[*.]*|/[^/]+", path) else "outside"
