"""`--journal` of the commands that run turns in their own process: their rows are those of any other turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm
from tests.support.agents import Project, call, turn


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, {"notes.txt": "the answer is 42\n"})
    project.says(turn(call("read_file", path="notes.txt")), turn("It is 42. [TASK_COMPLETE]"))
    (tmp_path / "home").mkdir()
    return project


def run(project: Project, *words: str, code: int = 0) -> str:
    settings = ["--config", str(project.config)]
    done = warm.run(["callwright", *words, *settings], cwd=project.root, environment=project.environment)
    assert done.code == code, done.err
    return done.out


def rows(project: Project) -> list[dict[str, Any]]:
    """Oldest first."""
    found: list[dict[str, Any]] = json.loads(run(project, "journal", "list", "--json"))
    return found[::-1]


def test_the_turns_of_the_agent_are_listed_shown_and_replayed(project: Project) -> None:
    run(project, "agent", "--json", "--journal", "full", "what is the answer?")
    listed = rows(project)
    assert [(row["client"], row["model"], row["status"], row["calls"]) for row in listed] == [
        ("agent", "coder", 200, ["read_file"]),
        ("agent", "coder", 200, []),
    ]
    assert "It is 42." in run(project, "journal", "show")
    replayed = json.loads(run(project, "journal", "replay", "--json"))
    assert [row["same"] for row in replayed] == [True, True]


def test_the_turns_of_a_chat_are_listed_and_replayed(project: Project) -> None:
    project.says(turn("It is late."))
    assert run(project, "chat", "--journal", "full", "What time is it?") == "It is late.\n"
    (row,) = rows(project)
    assert (row["client"], row["status"]) == ("chat", 200)
    assert "What time is it?" in run(project, "journal", "show")
    assert json.loads(run(project, "journal", "replay", "--json"))[0]["same"]


def test_nothing_that_was_said_is_kept_at_the_level_meta(project: Project) -> None:
    project.says(turn("Secretly happy."))
    run(project, "chat", "--journal", "meta", "How are you?")
    assert len(rows(project)) == 1
    raw = b"".join(file.read_bytes() for file in (project.base / "state").rglob("*.db*"))
    assert not [word for word in (b"Secretly", b"How are you") if word in raw]


def test_a_turn_that_failed_is_a_row_with_its_reason(project: Project) -> None:
    project.says(turn({"error": {"status": 400, "message": "too hot"}}))
    run(project, "agent", "--json", "--journal", "full", "go on", code=1)
    assert [row["status"] for row in rows(project)] == [400]
    assert "too hot" in run(project, "journal", "show")


def test_without_the_flag_there_is_no_journal(project: Project) -> None:
    project.says(turn("It is late."))
    run(project, "chat", "What time is it?")
    assert not list((project.base / "state").rglob("*.db"))
