"""Ways out of a workspace, from `tests/vectors/paths/escapes.jsonl`, and the ground that they are tried on.

A row has an `id`, the `path` that a model would say, and what to `make` first (`link` and `to`, or `folder`), in order.
`{workspace}` and `{outside}` stand for the two folders, which lie beside each other; `{long}`, `{deep}` and `{folders}`
for text that is too much to write down. Such a path must be refused, whatever it is used for; where the row says
`then: inside` it is only a strange name, which may be made, in the workspace.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from callwright.agent.workspace.workspace import Workspace

TABLE = Path(__file__).parents[1] / "vectors" / "paths" / "escapes.jsonl"
SECRET = "the secret that lies outside"


@dataclass(frozen=True)
class Escape:
    """One row of the table."""

    id: str
    path: str
    make: tuple[dict[str, str], ...]
    stays_inside: bool


@dataclass(frozen=True)
class Ground:
    """A workspace, a folder beside it, and the path to try."""

    workspace: Workspace
    outside: Path
    path: str
    before: dict[str, tuple[int, bytes]]

    def is_untouched(self) -> bool:
        """Whether the folder outside is as it was, down to the time of the last change."""
        return self.before == _state(self.outside)


def escapes() -> list[Escape]:
    """Every row."""
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").split("\n") if line]
    return [
        Escape(row["id"], row["path"], tuple(row.get("make", ())), stays_inside=row.get("then") == "inside")
        for row in rows
    ]


def ground(folder: Path, escape: Escape) -> Ground:
    """Make what a row needs, in an empty folder."""
    root, outside = folder.resolve() / "workspace", folder.resolve() / "outside"
    (root / "src").mkdir(parents=True)
    (root / "readme.txt").write_text("inside")
    (outside / "sub").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET)
    words = {
        "{workspace}": str(root),
        "{WORKSPACE}": str(root).upper(),
        "{outside}": str(outside),
        "{long}": "n" * 300,
        "{deep}": "src/../" * 700,
        "{folders}": "f/" * 300 + "x",
    }

    def meant(text: str) -> str:
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text

    for step in escape.make:
        if "folder" in step:
            (root / step["folder"]).mkdir()
            (root / step["folder"] / "secret.txt").write_text(SECRET)
        else:
            (root / step["link"]).symlink_to(meant(step["to"]))
    return Ground(Workspace(root), outside, meant(escape.path), _state(outside))


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
        for path in paths
    }
