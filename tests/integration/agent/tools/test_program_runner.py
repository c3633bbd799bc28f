"""Checkers and how they are run: no shell, no keys, no leftovers."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.tools import get_diagnostics
from callwright.agent.tools.base import ToolContext
from callwright.agent.tools.checkers import CHECKERS, Diagnostic
from callwright.agent.tools.program_runner import find_program, run_program
from callwright.agent.workspace.workspace import Workspace

READ = {checker.name: checker.parse_output for checker in CHECKERS}
# What the programs write; those of tsc, eslint, go and cargo from their documentation and from runs elsewhere.
SAID = [
    (
        "tsc",
        "src/a.ts(3,7): error TS2322: Type 'A' is no 'B'.\nFound 1 error.\n",
        [Diagnostic(path="src/a.ts", line=3, column=7, code="TS2322", message="Type 'A' is no 'B'.")],
    ),
    (
        "eslint",
        (
            'warning of node\n[{"filePath":"/w/a.js","messages":[{"ruleId":"no-undef","severity":2,'
            '"message":"x?","line":1,"column":5},{"ruleId":null,"severity":1,"message":"ignored"}],"errorCount":1}]\n'
        ),
        [
            Diagnostic(path="/w/a.js", line=1, column=5, code="no-undef", message="x?"),
            Diagnostic(path="/w/a.js", line=1, severity="warning", message="ignored"),
        ],
    ),
    ("eslint", "Oops! Something went wrong!", []),
    ("eslint", "[{broken", []),
    (
        "go",
        "# example.com/m\nvet: ./main.go:4:2: undefined: x\n./b.go:1:1: unreachable code\n",
        [
            Diagnostic(path="./main.go", line=4, column=2, message="undefined: x"),
            Diagnostic(path="./b.go", line=1, message="unreachable code"),
        ],
    ),
    (
        "cargo",
        "src/main.rs:2:5: error[E0425]: cannot find value `x`\nsrc/lib.rs:1:1: warning: unused import: `std`\n",
        [
            Diagnostic(path="src/main.rs", line=2, column=5, code="E0425", message="cannot find value `x`"),
            Diagnostic(path="src/lib.rs", line=1, severity="warning", message="unused import: `std`"),
        ],
    ),
    (
        "gcc",
        "a.c: In function 'main':\na.c:3:12: fatal error: x.h: No such file\na.c:2:9: note: declared here\n",
        [Diagnostic(path="a.c", line=3, column=12, message="x.h: No such file")],
    ),
    (
        "mypy",
        'a.py:1: error: Cannot find module named "x"  [import-not-found]\na.py:1:4: note: See docs\n',
        [Diagnostic(path="a.py", line=1, code="import-not-found", message='Cannot find module named "x"')],
    ),
    (
        "ruff",
        "a.py:1:5: invalid-syntax: Expected an expression\na.py:2:1: E501 Line too long (130 > 120)\n",
        [
            Diagnostic(path="a.py", line=1, column=5, code="invalid-syntax", message="Expected an expression"),
            Diagnostic(path="a.py", line=2, severity="warning", code="E501", message="Line too long (130 > 120)"),
        ],
    ),
]


@pytest.mark.parametrize(("name", "text", "findings"), SAID)
def test_what_a_checker_says_is_read(name: str, text: str, findings: list[Diagnostic]) -> None:
    assert list(READ[name](text)) == findings


@pytest.mark.parametrize("name", READ)
def test_a_checker_may_say_anything(name: str) -> None:
    assert list(READ[name]("")) == []
    for noise in ("\0", "a:b:c: error", ":::::", "x" * 100_000, "a:1:" * 20_000, "[{}]\n[{\n"):
        list(READ[name](noise))


def room(root: Path, **more: object) -> ToolContext:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    return ToolContext(
        workspace=Workspace(root), report_progress=lambda words: None, environment={"PATH": path}, **more
    )  # type: ignore[arg-type]


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_nobodys_keys_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    said = asyncio.run(run_program(("/usr/bin/env",), room(tmp_path)))
    assert "PATH=" in said.text
    assert "SOME_API_KEY" not in said.text


def test_words_are_words_and_no_shell_reads_them(tmp_path: Path) -> None:
    assert (
        asyncio.run(run_program(("/bin/echo", "$HOME; echo `id` > x"), room(tmp_path))).text == "$HOME; echo `id` > x\n"
    )
    assert not list(tmp_path.iterdir())


def test_time_is_limited_and_children_go_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        said = await run_program(
            ("/bin/sh", "-c", "trap '' TERM; sleep 300 & echo $! > child; wait"), room(tmp_path), timeout_s=0.5
        )
        assert said.exit_code is None
        assert "longer than 0.5 seconds" in said.text

    asyncio.run(scenario())
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_cancelled_run_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(run_program(("/bin/sh", "-c", "sleep 300 & echo $! > child; wait"), room(tmp_path)))
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            await asyncio.sleep(0.02)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert is_gone(int((tmp_path / "child").read_text()))


def test_a_run_that_is_cancelled_while_it_starts_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec

    async def start_slowly(*argv: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*argv, **options)
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            await asyncio.sleep(0.02)
        started.set()
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:  # as asyncio does it: the process, and not what it has started
            process.kill()
            await process.wait()
            raise
        return process

    async def scenario() -> None:
        task = asyncio.create_task(run_program(("/bin/sh", "-c", "sleep 300 & echo $! > child; wait"), room(tmp_path)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = asyncio.Event()
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    asyncio.run(scenario())
    assert is_gone(int((tmp_path / "child").read_text()))


def is_gone(process: int) -> bool:
    """Whether it ends long before it would by itself; one that nobody has asked for yet (`Z`) has ended."""
    for _ in range(3000):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_no_more_is_kept_than_a_limit(tmp_path: Path) -> None:
    said = asyncio.run(run_program(("/bin/sh", "-c", "yes | head -c 5000000"), room(tmp_path)))
    assert said.exit_code == 0
    assert len(said.text) == 512 * 1024


def test_a_program_that_is_not_there_is_a_result(tmp_path: Path) -> None:
    assert asyncio.run(run_program(("/no/such/program",), room(tmp_path))).exit_code is None


def test_the_workspaces_own_programs_go_first_where_its_code_may_run(tmp_path: Path) -> None:
    script(tmp_path / ".venv/bin/ruff", "exit 0")
    assert find_program("ruff", room(tmp_path)) == str(tmp_path / ".venv/bin/ruff")
    active = room(tmp_path, allows_project_code=False)
    active = replace(active, environment={"PATH": f"{tmp_path}/.venv/bin{os.pathsep}.{os.pathsep}{os.defpath}"})
    assert find_program("ruff", active) != str(tmp_path / ".venv/bin/ruff")
    assert find_program("sh", active)


def test_a_project_in_a_folder_is_checked_from_there_and_through_the_sandbox(tmp_path: Path) -> None:
    script(tmp_path / "web/node_modules/.bin/tsc", 'echo "$(pwd)" >&2; echo "src/a.ts(1,2): error TS1: no"; exit 2')
    for name in ("web/tsconfig.json", "web/src/a.ts", "web/src/b.ts"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    started: list[Sequence[str]] = []

    def confined(argv: Sequence[str], folder: Path) -> Sequence[str]:
        assert folder == tmp_path / "web"
        started.append(argv)
        return ["/usr/bin/env", *argv]

    here = room(tmp_path, wrap_command=confined)
    said = asyncio.run(get_diagnostics.tool.read({"path": "web/src/a.ts"}, here))
    assert said == "1 error and 0 warnings in web/src/a.ts, found by tsc:\nweb/src/a.ts:1:2: error TS1 no"
    assert [argv[0] for argv in started] == [str(tmp_path / "web/node_modules/.bin/tsc")]
    other = asyncio.run(get_diagnostics.tool.read({"path": "web/src/b.ts"}, here))
    assert other.startswith("No problems found in web/src/b.ts by tsc.")


def test_a_checker_that_fails_is_said_to_have_failed(tmp_path: Path) -> None:
    script(tmp_path / ".venv/bin/ruff", "echo 'ruff.toml: bad setting'; exit 2")
    (tmp_path / "a.py").write_text("x = 1\n")
    said = asyncio.run(get_diagnostics.tool.read({"path": "a.py"}, room(tmp_path)))
    assert "(ruff failed: ruff.toml: bad setting)" in said


def test_findings_outside_of_the_workspace_are_left_out(tmp_path: Path) -> None:
    script(
        tmp_path / ".venv/bin/ruff", "echo '/etc/passwd:1:1: E1 root'; echo '../x.py:1:1: E1 x'; echo 'a.py:1:1: E1 a'"
    )
    (tmp_path / "a.py").write_text("x = 1\n")
    said = asyncio.run(get_diagnostics.tool.read({}, room(tmp_path)))
    assert "a.py:1:1: warning E1 a" in said
    assert "passwd" not in said
    assert "../x" not in said
