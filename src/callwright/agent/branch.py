"""A git branch for a task, where the person wants one.

Nothing is ever committed, reset, cleaned or stashed: a new branch starts at the commit that is checked out, and what
was not committed comes along as it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Branches", "Made"]

_PREFIX = "callwright/"
_LENGTH = 40
_TRIES = 100
_SECONDS = 10.0


class Made(NamedTuple):
    """The branch that is checked out now, and the one before; or why there is none."""

    branch: str = ""
    previous: str = ""
    problem: str = ""


class Branches:
    """Of the repository that a folder is in."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def make(self, task: str) -> Made:
        """Make a branch named after a task, and check it out."""
        code, folder = await self._git("rev-parse", "--absolute-git-dir")
        if code:
            return Made(problem="no branch was made: the workspace is not in a git repository")
        for mark in ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "BISECT_LOG"):
            if (Path(folder) / mark).exists():
                return Made(problem="no branch was made: git is in the middle of a merge, rebase or bisect")
        _, previous = await self._git("rev-parse", "--abbrev-ref", "HEAD")
        name = f"{_PREFIX}{_slug(task)}"
        for number in range(1, _TRIES):
            branch = name if number == 1 else f"{name}-{number}"
            taken, _ = await self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
            if taken:
                code, said = await self._git("switch", "--quiet", "--create", branch)
                return Made(problem=f"no branch was made: {said}") if code else Made(branch, previous)
        return Made(problem=f"no branch was made: there are {_TRIES} branches named {name} already")

    async def _git(self, *words: str) -> tuple[int, str]:
        try:
            child = await asyncio.create_subprocess_exec(
                "git",
                *words,
                cwd=self._folder,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as error:
            return 127, f"git cannot be run: {error}"
        try:
            said, _ = await asyncio.wait_for(child.communicate(), _SECONDS)
        except TimeoutError:
            child.kill()
            await child.wait()
            return 124, f"git did not answer within {_SECONDS:.0f} seconds"
        return child.returncode or 0, said.decode("utf-8", "replace").strip()


def _slug(task: str) -> str:
    words = re.findall(r"[a-z0-9]+", task.lower())
    return "-".join(words)[:_LENGTH].strip("-") or "task"
