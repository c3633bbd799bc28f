"""The repository as data: its files, their syntax trees, its settings. The house rules are checked against this."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "callwright"
TESTS = ROOT / "tests"
VECTORS = TESTS / "vectors" / "dialects"

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One source file; `name` is its path from the package, with `/` on every system."""

    name: str
    path: Path
    lines: int
    tree: ast.Module


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(PACKAGE).as_posix(), path, text.count("\n") + 1, ast.parse(text)))
    assert found, f"no source file under {PACKAGE}"
    return tuple(found)


@cache
def committed_files() -> tuple[Path, ...]:
    """What git holds, and what it would take: neither ignored files nor deleted ones."""
    git = shutil.which("git")
    assert git, "this test reads the list of files from git"
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return tuple(path for name in sorted(set(listing.split("\0"))) if name and (path := ROOT / name).is_file())


@cache
def project() -> dict[str, Any]:
    """The tables of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text_of(name: str) -> str:
    """A file of the repository, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method of a tree, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def at(module: Module, node: ast.stmt | ast.expr | ast.ExceptHandler) -> str:
    """Where a node stands, in a form that an editor can follow."""
    return f"src/callwright/{module.name}:{node.lineno}"
