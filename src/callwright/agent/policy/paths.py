"""Where a path points, told from its text alone: into the workspace, to the system, home, or nobody knows."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import Literal

from callwright.agent.policy.words import Word

__all__ = ["Region", "region", "resolve"]

Region = Literal["inside", "all", "temporary", "harmless", "device", "system", "home", "outside", "unknown"]
"""`all` is the workspace itself or everything in it; `home` and `system` hold what cannot be made again."""

_HARMLESS = re.compile(r"/dev/(null|stdin|stdout|stderr|tty|zero|fd/\d+|u?random|full)")
_SYSTEM = re.compile(
    r"/(etc|boot|usr|bin|sbin|lib\w*|var|sys|proc|dev|opt|root|run|srv|System|Library|Applications|private/etc)(/|$)"
)
_HOMES = re.compile(r"(~[^/]*|/(home|Users)(/[^/]+)?|/root)(/[*.]*)?")
_TEMPORARY = re.compile(r"/(var/|private/)?tmp(/.+)")


def resolve(word: Word, place: str | None, workspace: str = "") -> str | None:
    """A path as seen from the workspace: relative within it, else absolute, below `~` or with `..`; None: unknown."""
    text = word.bare if word.known or word.text[:1] in "/~" else None
    if text is None:
        return None
    if not text.startswith(("/", "~")):
        if place is None:
            return None
        text = f"{place}/{text}"
    if re.match(r"[A-Za-z]:[\\/]", word.text):
        return f"/{word.text}"
    path = posixpath.normpath(text)
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    if workspace and PurePosixPath(path).is_relative_to(workspace):
        return PurePosixPath(path).relative_to(workspace).as_posix()
    return path


def region(path: str | None) -> Region:
    """Which part of the machine a resolved path is in."""
    if path is None:
        return "unknown"
    if path in (".", "*", ".*", "**", "*.*", "[!.]*", "?*"):
        return "all"
    if not path.startswith(("/", "~", "..")):
        return "inside"
    if _HARMLESS.fullmatch(path):
        return "harmless"
    if _TEMPORARY.fullmatch(path):
        return "temporary"
    if path.startswith("/dev/"):
        return "device"
    if _HOMES.fullmatch(path):
        return "home"
    return "system" if _SYSTEM.match(path) or re.fullmatch(r"/[*.]*|/[^/]+", path) else "outside"
