"""Names of files: which ones a glob means, and which one was probably meant by a name that is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import PurePosixPath
from posixpath import basename

from callwright.agent.tools.pattern import compiled, escaped
from callwright.errors import ToolError

__all__ = ["globbed", "similar"]

_PIECES = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|.", re.DOTALL)
_WORDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_COMPARED = 20_000
"""How many names are compared with one that is not there."""


def globbed(glob: str) -> Callable[[str], bool]:
    """Whether a path from the root is one that the glob means. Without a slash it means names in any folder."""
    glob = glob.removeprefix("./")
    if not glob:
        return lambda path: True
    try:
        matches = compiled(f"(?s)^{_translated(glob)}$")
    except ToolError as error:
        raise ToolError(f"{glob!r} is not a glob; write one such as '*.py' or 'src/**/*.ts'") from error
    return matches if "/" in glob else lambda path: matches(basename(path))


def _translated(glob: str) -> str:
    return "".join(_piece(piece) for piece in _PIECES.findall(glob))


def _piece(piece: str) -> str:
    if piece in _WORDS:
        return _WORDS[piece]
    if len(piece) > 1 and piece.startswith("["):
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    if len(piece) > 1 and piece.startswith("{"):
        return f"(?:{'|'.join(map(_translated, piece[1:-1].split(',')))})"
    return escaped(piece)


def similar(path: str, files: Iterable[str]) -> str:
    """A sentence with the files and folders that were probably meant; empty when none is alike."""
    names = list(islice(files, _COMPARED))
    names += sorted({str(parent) for name in names for parent in PurePosixPath(name).parents} - {"."})
    wanted = basename(path.rstrip("/")).lower()
    meant = [name for name in names if basename(name).lower() == wanted]
    if not meant:
        near = set(get_close_matches(wanted, {basename(name).lower() for name in names}, n=3, cutoff=0.75))
        meant = [name for name in names if basename(name).lower() in near]
    return f" Did you mean {' or '.join(meant[:3])}?" if meant else ""
