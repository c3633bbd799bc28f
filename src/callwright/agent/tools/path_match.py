"""Matches paths with globs, and suggests paths for a name that does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import PurePosixPath
from posixpath import basename

from callwright.agent.tools.safe_regex import compile_pattern, escape_literal
from callwright.errors import ToolError

__all__ = ["compile_glob", "suggest_paths"]

_GLOB_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|.", re.DOTALL)
_WILDCARD_PATTERNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_MAX_COMPARED_NAMES = 20_000
"""How many names are compared with a name that does not exist."""


def compile_glob(glob: str) -> Callable[[str], bool]:
    """Return a predicate for paths relative to the root. A glob without a slash matches names in any folder."""
    glob = glob.removeprefix("./")
    if not glob:
        return lambda path: True
    try:
        matches = compile_pattern(f"(?s)^{_translate_glob(glob)}$")
    except ToolError as error:
        raise ToolError(f"{glob!r} is not a glob; write one such as '*.py' or 'src/**/*.ts'") from error
    return matches if "/" in glob else lambda path: matches(basename(path))


def _translate_glob(glob: str) -> str:
    return "".join(_translate_token(piece) for piece in _GLOB_TOKENS.findall(glob))


def _translate_token(piece: str) -> str:
    if piece in _WILDCARD_PATTERNS:
        return _WILDCARD_PATTERNS[piece]
    if len(piece) > 1 and piece.startswith("["):
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    if len(piece) > 1 and piece.startswith("{"):
        return f"(?:{'|'.join(map(_translate_glob, piece[1:-1].split(',')))})"
    return escape_literal(piece)


def suggest_paths(path: str, files: Iterable[str]) -> str:
    """Return a sentence that suggests similar files and folders; an empty string if there are none."""
    names = list(islice(files, _MAX_COMPARED_NAMES))
    names += sorted({str(parent) for name in names for parent in PurePosixPath(name).parents} - {"."})
    missing = basename(path.rstrip("/")).lower()
    candidates = [name for name in names if basename(name).lower() == missing]
    if not candidates:
        near = set(get_close_matches(missing, {basename(name).lower() for name in names}, n=3, cutoff=0.75))
        candidates = [name for name in names if basename(name).lower() in near]
    return f" Did you mean {' or '.join(candidates[:3])}?" if candidates else ""
