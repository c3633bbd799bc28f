"""Finds the `codex` program. The native binary needs no Node; npm's launcher is the last resort.

Its interface is experimental and changes with each version, so the version that this package supports comes first.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["INSTALL_FOLDER", "PROGRAM", "VERSION", "find_binary", "get_install_path"]

VERSION = "0.166.0"
INSTALL_FOLDER = Path("~/.local/state/callwright/codex")
"""Where `callwright codex install` installs it, and where the account of `callwright codex login` is stored."""
PROGRAM = "codex.exe" if sys.platform == "win32" else "codex"
_NATIVE_GLOB = f"codex-*/vendor/*/bin/{PROGRAM}"
"""Path inside npm's `@openai` folder, where each platform has its own package."""


def get_install_path(folder: Path) -> Path:
    """Return the path of the pinned version inside an install folder."""
    return folder.expanduser() / VERSION / PROGRAM


def find_binary(path: str) -> Path | None:
    """Find the program: at this path if set, otherwise the installed one, the one in `node_modules`, or on the PATH."""
    if path:
        named = Path(path).expanduser()
        return named if named.is_file() else None
    return next((candidate for candidate in _iter_candidates() if candidate.is_file()), None)


def _iter_candidates() -> Iterator[Path]:
    yield get_install_path(INSTALL_FOLDER)
    yield from sorted(Path("node_modules/@openai").absolute().glob(_NATIVE_GLOB))
    if launcher := shutil.which("codex"):
        package = Path(launcher).resolve().parent.parent
        yield from sorted(package.parent.glob(_NATIVE_GLOB))
        yield from sorted(package.glob(f"node_modules/@openai/{_NATIVE_GLOB}"))
        yield Path(launcher)
