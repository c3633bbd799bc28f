"""A branch for a task changes nothing but the branch."""

import asyncio
import os
import subprocess

import pytest

from callwright.agent.changes.task_branch import TaskBranches


@pytest.fixture
def repository(tmp_path):
    def git(*words):
        settings = ["-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "a.txt").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "first")
    return tmp_path, git


def make(folder, task):
    return asyncio.run(TaskBranches(folder, os.environ).create_branch(task))


def test_what_was_not_committed_comes_along_as_it_is(repository):
    folder, git = repository
    (folder / "a.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    (folder / "staged.txt").write_text("staged\n")
    git("add", "staged.txt")
    before, head = git("status", "--porcelain"), git("rev-parse", "HEAD")
    made = make(folder, "Fix the *failing* test!")
    assert (made.branch, made.previous, made.problem) == ("callwright/fix-the-failing-test", "main", "")
    assert git("rev-parse", "--abbrev-ref", "HEAD") == made.branch
    assert (git("status", "--porcelain"), git("rev-parse", "HEAD")) == (before, head)
    assert make(folder, "Fix the failing test").branch == f"{made.branch}-2"


def test_where_there_is_no_repository_nothing_happens(tmp_path):
    assert "not in a git repository" in make(tmp_path, "x").problem
    assert list(tmp_path.iterdir()) == []


def test_in_the_middle_of_a_merge_nothing_happens(repository):
    folder, git = repository
    (folder / ".git" / "MERGE_HEAD").write_text(git("rev-parse", "HEAD"))
    assert "finish the merge" in make(folder, "x").problem
    assert git("rev-parse", "--abbrev-ref", "HEAD") == "main"
