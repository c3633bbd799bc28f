"""Packages of npm, for the tests that run real clients: each in a folder of its own below `.cache`, none in the home.

    python -m tests.support.npm          # what the contract tests need: Node, and the libraries of tests/contract/node

Where npm is missing the tests that need it are skipped; in continuous integration (CI is set) that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "clients"
LIBRARIES = ROOT / "tests" / "contract" / "node"
NODE = "22.23.3"
"""Most of the agents, and the libraries of the contract tests, ask for Node 22."""

MISSING = "npm is not installed, so no JavaScript client can be run"


def commands(package: str, version: str) -> Path:
    """The folder of a package's commands; it is installed when it is not there."""
    folder = CACHE / f"{package.replace('/', '+')}@{version}"
    found = folder / "node_modules" / ".bin"
    if not found.is_dir():
        # npm runs in the folder: it takes the name of a folder beside it for that folder's package.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        run("install", "--loglevel=error", "--no-audit", "--no-fund", f"{package}@{version}", folder=folder)
    return found


def node() -> Path:
    """The interpreter."""
    return commands("node", NODE) / "node"


def run(*arguments: str, folder: Path) -> None:
    """Run npm in a folder."""
    npm = shutil.which("npm")
    assert npm, MISSING
    subprocess.run([npm, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=900)


def main() -> int:
    if not shutil.which("npm"):
        print(MISSING, file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    node()
    run("ci", "--loglevel=error", folder=LIBRARIES)
    (LIBRARIES / "node_modules" / ".stamp").touch()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
