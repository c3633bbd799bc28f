"""What the agent does with a task, end to end: a real project, a real shell, a model that plays a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from callwright.agent.events import Summarised, ToolEnded
from callwright.agent.stream import SIGNAL
from tests.agents import BROKEN, WAYS, Project, Way, call, turn, work

all_ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
TESTS = f"{sys.executable} -m unittest -q"


def passing(project: Project) -> bool:
    return subprocess.run(TESTS.split(), cwd=project.root, capture_output=True, check=False).returncode == 0


@all_ways
def test_a_failing_test_is_fixed_and_really_run(tmp_path: Path, way: Way) -> None:
    project = Project(tmp_path, BROKEN, way=way)
    project.says(
        turn("I look first. ", call("read_file", path="calc.py"), heard="^fix the failing test"),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b"), heard="return a - b"),
        turn("Now the tests. ", call("run_terminal_command", command="python3 -m unittest -q"), heard=r"\+1 -1"),
        turn(f"It subtracted. {SIGNAL}", heard="Exit code 0"),
    )
    assert not passing(project)
    done = work(project, "fix the failing test")
    assert done.stopped.reason == "done"
    assert passing(project)
    assert [(each.name, each.status) for each in done.told(ToolEnded)] == [
        ("read_file", "ok"),
        ("edit_file", "ok"),
        ("run_terminal_command", "ok"),
    ]
    (summary,) = done.told(Summarised)
    assert summary.text == "It subtracted."
    assert [(file.path, file.added, file.removed) for file in summary.files] == [("calc.py", 1, 1)]
