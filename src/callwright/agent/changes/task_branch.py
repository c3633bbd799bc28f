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

__all__ = ["BranchResult", "TaskBranches"]

_BRANCH_PREFIX = "callwright/"
_MAX_SLUG_LENGTH = 40
_MAX_ATTEMPTS = 100
_GIT_TIMEOUT_S = 10.0


class BranchResult(NamedTuple):
    """The branch that is checked out now, and the one before; or why there is none."""

    branch: str = ""
    previous: str = ""
    problem: str = ""


class TaskBranches:
    """Of the repository that a folder is in."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def create_branch(self, task: str) -> BranchResult:
        """Make a branch named after a task, and check it out."""
        code, folder = await self._run_git("rev-parse", "--absolute-git-dir")
        if code:
            return BranchResult(problem="no branch was made: the workspace is not in a git repository")
        for mark in ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "BISECT_LOG"):
            if (Path(folder) / mark).exists():
                return BranchResult(problem="no branch was made: git is in the middle of a merge, rebase or bisect")
        _, previous = await self._run_git("rev-parse", "--abbrev-ref", "HEAD")
        name = f"{_BRANCH_PREFIX}{_slugify_task(task)}"
        for number in range(1, _MAX_ATTEMPTS):
            branch = name if number == 1 else f"{name}-{number}"
            taken, _ = await self._run_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
            if taken:
                code, said = await self._run_git("switch", "--quiet", "--create", branch)
                return BranchResult(problem=f"no branch was made: {said}") if code else BranchResult(branch, previous)
        return BranchResult(problem=f"no branch was made: there are {_MAX_ATTEMPTS} branches named {name} already")

    async def _run_git(self, *words: str) -> tuple[int, str]:
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
            said, _ = await asyncio.wait_for(child.communicate(), _GIT_TIMEOUT_S)
        except TimeoutError:
            child.kill()
            await child.wait()
            return 124, f"git did not answer within {_GIT_TIMEOUT_S:.0f} seconds"
        return child.returncode or 0, said.decode("utf-8", "replace").strip()


def _slugify_task(task: str) -> str:
    words = re.findall(r"[a-z0-9]+", task.lower())
    return "-".join(words)[:_MAX_SLUG_LENGTH].strip("-") or "task"
