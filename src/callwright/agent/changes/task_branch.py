"""Creates a git branch for a task, if the user wants one.

Nothing is ever committed, reset, cleaned or stashed: a new branch starts at the commit that is checked out, and
uncommitted changes stay as they are.
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
    """The new branch and the previous one, or the reason why no branch was created."""

    branch: str = ""
    previous: str = ""
    problem: str = ""


class TaskBranches:
    """Creates branches in the repository of a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    async def create_branch(self, task: str) -> BranchResult:
        """Create a branch named after a task, and check it out."""
        code, folder = await self._run_git("rev-parse", "--absolute-git-dir")
        if code:
            return BranchResult(problem="no branch was created: the workspace is not in a git repository")
        for mark in ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "BISECT_LOG"):
            if (Path(folder) / mark).exists():
                return BranchResult(
                    problem="no branch was created: finish the merge, rebase or bisect that is in progress first"
                )
        _, previous = await self._run_git("rev-parse", "--abbrev-ref", "HEAD")
        name = f"{_BRANCH_PREFIX}{_slugify_task(task)}"
        for number in range(1, _MAX_ATTEMPTS):
            branch = name if number == 1 else f"{name}-{number}"
            taken, _ = await self._run_git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
            if taken:
                code, output = await self._run_git("switch", "--quiet", "--create", branch)
                return (
                    BranchResult(problem=f"no branch was created: {output}") if code else BranchResult(branch, previous)
                )
        return BranchResult(problem=f"no branch was created: there are {_MAX_ATTEMPTS} branches named {name} already")

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
            output, _ = await asyncio.wait_for(child.communicate(), _GIT_TIMEOUT_S)
        except TimeoutError:
            child.kill()
            await child.wait()
            return 124, f"git did not answer within {_GIT_TIMEOUT_S:.0f} seconds"
        return child.returncode or 0, output.decode("utf-8", "replace").strip()


def _slugify_task(task: str) -> str:
    words = re.findall(r"[a-z0-9]+", task.lower())
    return "-".join(words)[:_MAX_SLUG_LENGTH].strip("-") or "task"
