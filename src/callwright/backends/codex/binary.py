"""Binary: where the program `codex` is. It runs without Node, so the npm package's launcher is passed by.

Its interface is marked experimental and changes with each version: the one that this is made for comes first.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["INSTALL_FOLDER", "PROGRAM", "VERSION", "find_binary", "get_install_path"]

VERSION = "0.166.0"
INSTALL_FOLDER = Path("~/.local/state/callwright/codex")
"""Where `callwright codex install` puts it, and where the account of `callwright codex login` is."""
PROGRAM = "codex.exe" if sys.platform == "win32" else "codex"
_NATIVE_GLOB = f"codex-*/vendor/*/bin/{PROGRAM}"
"""Inside npm's `@openai`: each platform has a package of its own."""


def get_install_path(folder: Path) -> Path:
    """The place of the pinned version inside a folder of ours."""
    return folder.expanduser() / VERSION / PROGRAM


def find_binary(path: str) -> Path | None:
    """The program: at this path if one is set, else the one that we installed, of this folder's npm, or on the PATH."""
    if path:
        named = Path(path).expanduser()
        return named if named.is_file() else None
    return next((place for place in _iter_candidates() if place.is_file()), None)


def _iter_candidates() -> Iterator[Path]:
    yield get_install_path(INSTALL_FOLDER)
    yield from sorted(Path("node_modules/@openai").absolute().glob(_NATIVE_GLOB))
    if launcher := shutil.which("codex"):
        package = Path(launcher).resolve().parent.parent
        yield from sorted(package.parent.glob(_NATIVE_GLOB))
        yield from sorted(package.glob(f"node_modules/@openai/{_NATIVE_GLOB}"))
        yield Path(launcher)
