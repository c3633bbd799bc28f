"""The layers hold, and every module of the core is under the contract that keeps it free of I/O."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from tests.meta.repository import PACKAGE, ROOT, project

LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"


def contract(kind: str) -> dict[str, Any]:
    contracts: list[dict[str, Any]] = project()["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["type"] == kind)


def layers() -> list[list[str]]:
    """Top to bottom; the modules of one layer together."""
    return [
        [name.strip(" ()") for name in layer.replace(":", "|").split("|")] for layer in contract("layers")["layers"]
    ]


def exists(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def test_the_import_contracts_hold() -> None:
    run = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_whole_core_is_kept_free_of_io() -> None:
    order = layers()
    top = order.index(["prompt", "grammar"])
    core = {f"callwright.{name}" for layer in order[top:] for name in layer if exists(name)}
    assert set(contract("forbidden")["source_modules"]) == core


def test_a_layer_that_exists_is_no_longer_optional() -> None:
    written = " ".join(contract("layers")["layers"])
    assert not [name for layer in layers() for name in layer if exists(name) and f"({name})" in written]


def test_every_part_of_a_session_is_kept_from_the_loop() -> None:
    contracts: list[dict[str, Any]] = project()["tool"]["importlinter"]["contracts"]
    parts = next(each for each in contracts if each["name"].startswith("Only the session itself"))
    there = {path.stem for path in (PACKAGE / "agent" / "session").glob("[!_]*.py")}
    wanted = {f"callwright.agent.session.{name}" for name in there - {"agent_session", "session_manager"}}
    assert set(parts["source_modules"]) == wanted
