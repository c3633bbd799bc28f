"""Measure the names of a package: words per function name, past participles, duplicate classes and module stems.

    .venv/bin/python scripts/name_metrics.py                              # this package
    .venv/bin/python scripts/name_metrics.py src ../old/src               # compare two versions
    .venv/bin/python scripts/name_metrics.py $(python -c 'import starlette; print(starlette.__path__[0])')

Dunder methods do not count; leading underscores are left off. A participle is a one-word name that ends in -ed or is
in the list of irregular ones below.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
IRREGULAR = frozenset(
    [
        "told",
        "said",
        "heard",
        "held",
        "kept",
        "begun",
        "given",
        "left",
        "made",
        "meant",
        "shown",
        "taken",
        "sent",
        "found",
        "gone",
        "written",
        "read_",
        "known",
        "seen",
        "cut",
        "lost",
        "put",
        "set_",
        "built",
        "bound",
        "drawn",
        "chosen",
        "spoken",
        "broken",
        "hidden",
        "torn",
        "worn",
        "spent",
        "brought",
        "thought",
        "caught",
        "split_",
    ]
)
FAMILY_STEMS = frozenset({"__init__", "__main__", "base", "settings", "decode", "encode", "read", "serve", "call"})


class Names(NamedTuple):
    """The names of one source tree."""

    functions: list[str]
    classes: Counter[str]
    stems: Counter[str]


def collect_names(folder: Path) -> Names:
    functions: list[str] = []
    classes: Counter[str] = Counter()
    stems: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        stems[path.stem] += 1
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                functions.append(node.name.strip("_"))
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name] += 1
    return Names([name for name in functions if name], classes, stems)


def is_participle(name: str) -> bool:
    return "_" not in name and (name in IRREGULAR or (name.endswith("ed") and name not in {"feed", "need", "seed"}))


def build_row(label: str, names: Names) -> list[str]:
    count = len(names.functions)
    one_word = sum("_" not in name for name in names.functions)
    participles = sum(map(is_participle, names.functions))
    twice = sum(1 for times in names.classes.values() if times > 1)
    stems = sum(1 for stem, times in names.stems.items() if times > 1 and stem not in FAMILY_STEMS)
    mean = sum(map(len, names.functions)) / count
    return [
        label,
        f"{count:,}",
        f"{one_word / count:.0%}",
        f"{participles / count:.1%}",
        str(twice),
        str(stems),
        f"{mean:.1f}",
    ]


def main() -> int:
    folders = [Path(name) for name in sys.argv[1:]] or [ROOT / "src"]
    head = ["tree", "functions", "one word", "participles", "classes twice", "stems twice", "mean length"]
    rows = [build_row(folder.as_posix(), collect_names(folder)) for folder in folders]
    for row in (head, ["---", *["--:"] * 6], *rows):
        print("| " + " | ".join(row) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
