"""What the agent does with a task, end to end: a real project, a real shell, a model that plays a script."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.session import agent_app
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import (
    BranchCreated,
    CallDecided,
    HistoryCondensed,
    ModelAnswered,
    ModelNudged,
    TaskStarted,
    TaskSummarized,
    ToolFinished,
    ToolStarted,
)
from callwright.agent.tools.base import ToolContext
from callwright.agent.ui.console.session_transcript import SessionTranscript
from callwright.backends.embedded import is_embedded_available
from callwright.model import ToolSpec
from tests.support.agents import (
    ALWAYS,
    BROKEN,
    DENY,
    DONE,
    ONCE,
    WAYS,
    Person,
    Project,
    Way,
    call,
    told,
    tree,
    turn,
    work,
)
from tests.support.sampling import FULL, full

PATCH = """\
*** Begin Patch
*** Update File: calc.py
@@
-    return a - b
+    return a + b
*** Add File: docs/calc.md
+# Sums
*** Delete File: old.py
*** End Patch"""


def ways(*chosen: Way) -> pytest.MarkDecorator:
    """These ways; all of them in the full run."""
    return pytest.mark.parametrize("way", WAYS if FULL else chosen, ids=lambda way: way.name)


def passing(project: Project) -> bool:
    # -B: a stale bytecode file of the same second and size would hide the edit
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=project.root, capture_output=True, check=False).returncode == 0


def shell(command: str) -> dict[str, object]:
    return call("run_terminal_command", command=command)


# ── edits ────────────────────────────────────────────────────────────────────────────────────────────


@ways(*WAYS[::2])
def test_a_failing_test_is_fixed_and_really_run(tmp_path: Path, way: Way) -> None:
    project = Project(tmp_path, BROKEN, way=way)
    project.says(
        turn("I look first. ", call("read_file", path="calc.py"), heard="^fix the failing test"),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b"), heard="return a - b"),
        turn("Now the tests. ", shell("python3 -m unittest -q"), heard=r"\+1 -1"),
        turn(f"It subtracted. {COMPLETION_SIGNAL}", heard="Exit code 0"),
    )
    assert not passing(project)
    done = work(project, "fix the failing test")
    assert done.stopped.reason == "done"
    assert passing(project)
    assert [(each.name, each.status) for each in done.told(ToolFinished)] == [
        ("read_file", "ok"),
        ("edit_file", "ok"),
        ("run_terminal_command", "ok"),
    ]
    (summary,) = done.told(TaskSummarized)
    assert summary.text == "It subtracted."
    assert [(file.path, file.added, file.removed) for file in summary.files] == [("calc.py", 1, 1)]


@ways(*WAYS[1::2])
def test_a_file_is_created_with_content_that_a_second_answer_wrote(tmp_path: Path, way: Way) -> None:
    project = Project(tmp_path, way=way)
    content = "def hello():\n    return 'a \"b\" \\n </tool_call>'\n"
    project.says(
        turn(f"```python\n{content}```", heard="Now write the whole content", aside=True),
        turn(call("write_file", path="pkg/hello.py", description="says hello"), heard="^create"),
        turn(f"It is there. {COMPLETION_SIGNAL}", heard="was created"),
    )
    assert work(project, "create a module that says hello").stopped.reason == "done"
    assert tree(project.root) == {"pkg/hello.py": content.encode()}


@ways(*WAYS[::2])
def test_many_files_are_changed_by_a_patch_and_by_edits(tmp_path: Path, way: Way) -> None:
    project = Project(tmp_path, {**BROKEN, "old.py": "gone\n", "a.txt": "one\ntwo\n"}, way=way)
    project.says(
        turn(call("apply_patch", patch=PATCH), heard="^change it all"),
        turn(
            call("edit_file", path="a.txt", old="one", new="1"),
            call("edit_file", path="a.txt", old="two", new="2"),
            heard="docs/calc.md was created",
        ),
        turn(COMPLETION_SIGNAL, heard=r"a\.txt was changed"),
    )
    done = work(project, "change it all")
    assert done.stopped.reason == "done"
    assert passing(project)
    assert set(tree(project.root)) == {"calc.py", "test_calc.py", "a.txt", "docs/calc.md"}
    assert project.read("a.txt") == "1\n2\n"
    assert {file.path: file.state for file in done.told(TaskSummarized)[0].files} == {
        "a.txt": "changed",
        "calc.py": "changed",
        "docs/calc.md": "created",
        "old.py": "deleted",
    }


def test_one_hunk_is_taken_back_and_the_other_stays(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(40)]
    project = Project(tmp_path, {"a.txt": "\n".join(lines) + "\n"})
    project.says(
        turn(
            call("edit_file", path="a.txt", old="line 3\n", new="LINE 3\n"),
            call("edit_file", path="a.txt", old="line 33\n", new="LINE 33\n"),
        ),
        DONE,
    )

    async def run() -> None:
        async with project.desk() as desk:
            session = await desk.open()
            await session.run("change two lines")
            (review,) = await session.review_changes()
            assert (review.added, review.removed, len(review.hunks)) == (2, 2, 2)
            # The person writes between the two, and at the end, before anything is taken back.
            mine = project.read("a.txt").replace("line 20\n", "mine\n") + "mine too\n"
            (project.root / "a.txt").write_text(mine)
            undone = await session.undo_changes("a.txt", review.hunks[0].id)
            assert (undone.paths, undone.conflicts) == (("a.txt",), ())
            assert project.read("a.txt") == mine.replace("LINE 3\n", "line 3\n")
            await session.undo_changes()
            assert project.read("a.txt") == mine.replace("LINE", "line")
            assert await session.review_changes() == ()
            await session.close()

    asyncio.run(run())


def test_what_the_person_changed_in_the_same_lines_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path, BROKEN)
    project.says(turn(call("edit_file", path="calc.py", old="a - b", new="a + b")), DONE)

    async def run() -> None:
        async with project.desk() as desk:
            session = await desk.open()
            await session.run("fix the sum")
            (project.root / "calc.py").write_text("def add(a, b):\n    return sum((a, b))\n")
            undone = await session.undo_changes()
            assert undone.paths == ()
            assert "changed by someone else in the same lines" in undone.conflicts[0]
            assert "sum((a, b))" in project.read("calc.py")
            assert (await session.undo_changes(force=True)).paths == ("calc.py",)
            assert project.read("calc.py") == BROKEN["calc.py"]
            await session.close()

    asyncio.run(run())


# ── permissions ──────────────────────────────────────────────────────────────────────────────────────


@ways(*WAYS[1::2])
def test_without_anybody_there_what_would_be_asked_is_denied_and_said(tmp_path: Path, way: Way) -> None:
    project = Project(tmp_path, {"build/a": ""}, way=way)
    project.says(
        turn(shell("rm -rf build"), heard="^run the clean"),
        turn(f"I may not. {COMPLETION_SIGNAL}", heard="no user was available to approve"),
    )
    ran = project.run("run the clean command")
    assert ran.code == 3
    assert (project.root / "build/a").exists()
    (asked,) = ran.told("approval_requested")
    assert (asked["tier"], asked["command"], asked["remember"]) == ("critical", "rm -rf build", [])
    (decided,) = ran.told("call_decided")
    assert (decided["verdict"], decided["by"]) == ("deny", "settings")
    assert ran.told("task_summarized")[0]["denied"] == ["Run rm -rf build"]
    assert ran.told("task_stopped")[0]["reason"] == "denied"
    assert ".." not in ran.told("tool_finished")[0]["content"]


def test_a_command_that_the_person_changed_runs_as_changed_and_the_model_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.says(turn(shell("pip install left-pad")), turn("Told: ${result}"))
    done = work(project, "run it", ApprovalReply(verdict="once", command="echo instead"))
    assert [each.command for each in done.told(ToolStarted)] == ["echo instead"]
    assert len(done.asked) == 1
    said = done.told(TaskSummarized)[0].text
    assert "The user changed the command to: echo instead" in said
    assert "\ninstead" in said


def test_a_change_for_the_worse_is_asked_about_again(tmp_path: Path) -> None:
    project = Project(tmp_path, {"build/a": ""})
    project.says(turn(shell("pip install left-pad")), turn("Told: ${result}"))
    done = work(project, "run it", ApprovalReply(verdict="once", command="rm -rf build"), ONCE)
    assert [(each.command, each.tier) for each in done.asked] == [
        ("pip install left-pad", "medium"),
        ("rm -rf build", "critical"),
    ]
    assert not (project.root / "build").exists()
    assert "The user changed the command to: rm -rf build" in done.told(TaskSummarized)[0].text

    denied = work(project, "run it", ApprovalReply(verdict="once", command="rm -rf /"), DENY)
    assert [each.command for each in denied.asked] == ["pip install left-pad", "rm -rf /"]
    assert not denied.told(ToolStarted)


def test_a_change_to_what_is_forbidden_is_denied(tmp_path: Path) -> None:
    rules = '[[rule]]\npattern = ["curl"]\ndecision = "deny"\nwhy = "not from here"\nmatch = ["curl x"]\n'
    project = Project(tmp_path, {".callwright/policy.toml": rules})
    project.says(turn(shell("pip install left-pad")), turn("Told: ${result}"))
    done = work(project, "run it", ApprovalReply(verdict="once", command="curl http://localhost"))
    assert (len(done.asked), done.told(ToolStarted)) == (1, [])
    assert (done.told(CallDecided)[0].verdict, done.told(CallDecided)[0].by) == ("deny", "policy")
    assert "not from here" in done.told(TaskSummarized)[0].text


def test_always_is_what_was_shown_and_holds_when_the_session_is_opened_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.says(
        turn(shell("git commit --allow-empty -m one")),
        turn(shell("git commit --allow-empty -m two"), shell("git push origin main")),
        DONE,
    )

    async def run() -> None:
        async with project.desk() as desk:
            session = await desk.open()
            person = Person(session, ALWAYS, DENY)
            await session.run("run the commands")
            assert person.asked[0].remember == ('["git","commit"]',)
            assert [each.command for each in person.asked] == [
                "git commit --allow-empty -m one",
                "git push origin main",
            ]
            assert [each.by for each in told(session.events, CallDecided)] == ["person", "remembered", "person"]
            assert told(session.events, CallDecided)[0].remembered == ('["git","commit"]',)
            await session.close()
        async with project.desk() as desk:
            session = await desk.open(session.id)
            person = Person(session, DENY)
            await session.run("run the commands")
            assert [each.command for each in person.asked] == ["git push origin main"]
            await session.close()
            other = await desk.open()
            person = Person(other, DENY)
            await other.run("run the commands")
            assert len(person.asked) == 3, "another session remembers nothing"
            await other.close()

    asyncio.run(run())


def test_what_is_critical_is_asked_for_whatever_is_set(tmp_path: Path) -> None:
    project = Project(tmp_path, {"build/a": ""}, approve="all")
    project.says(turn(shell("pip --version"), shell("rm -rf build")), DONE)
    done = work(project, "run them", DENY)
    assert [each.command for each in done.asked] == ["rm -rf build"]
    assert (project.root / "build/a").exists()


def test_protected_files_are_asked_for_and_writes_show_what_would_change(tmp_path: Path) -> None:
    project = Project(tmp_path, {".env": "KEY=old\n"})
    project.says(
        turn(
            call("read_file", path=".env"),
            call("write_file", path=".env", content="KEY=new\n"),
            call("read_file", path=".env"),
        ),
        DONE,
    )
    done = work(project, "change the key", DENY, ONCE)
    assert [each.subject for each in done.asked] == ["read", "edit", "read"]
    assert "-KEY=old\n+KEY=new" in done.asked[1].diff
    assert [each.status for each in done.told(ToolFinished)] == ["denied", "ok", "ok"]
    assert "KEY=old" not in done.told(ToolFinished)[0].content
    assert project.read(".env") == "KEY=new\n"


def test_an_edit_of_a_file_that_changed_while_it_was_asked_about_is_not_made(tmp_path: Path) -> None:
    project = Project(tmp_path, {".env": "KEY=old\n"})
    project.says(turn(call("edit_file", path=".env", old="old", new="new")), DONE)

    def meanwhile(_: object) -> ApprovalReply:
        (project.root / ".env").write_text("KEY=old\nMINE=1\n")
        return ONCE

    done = work(project, "change the key", meanwhile, DENY)
    assert project.read(".env") == "KEY=old\nMINE=1\n"
    assert "have changed since" in done.told(ToolFinished)[0].content


def test_the_same_call_three_times_is_asked_about(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.txt": "a\n"}, approve="all")
    project.says(*[turn(call("read_file", path="a.txt"))] * 3, turn("I give up."))
    done = work(project, "what is in a.txt?", DENY)
    assert [each.subject for each in done.asked] == ["again"]
    assert [each.status for each in done.told(ToolFinished)] == ["ok", "ok", "denied"]


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("flags", "reason"),
    [(("--max-iterations", "2"), "iterations"), (("--max-tokens", "1500"), "tokens"), (("--timeout", "0.2"), "time")],
)
def test_a_limit_ends_with_4(tmp_path: Path, flags: tuple[str, ...], reason: str) -> None:
    project = Project(tmp_path, {"a.txt": "a\n"})
    project.says(
        *(turn({"pause": 0.15}, call("read_file", path="a.txt", start_line=number)) for number in range(1, 9)), DONE
    )
    ran = project.run(*flags, "what is in a.txt?")
    assert (ran.code, ran.told("task_stopped")[0]["reason"]) == (4, reason)
    assert ran.events[-1]["event"]["type"] == "task_summarized"


def test_a_backend_that_fails_ends_with_1(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.says(turn("I beg", {"error": {"status": 400, "message": "no such thing"}}))
    ran = project.run("create a file")
    assert (ran.code, ran.told("task_stopped")[0]["reason"]) == (1, "failed")
    assert "no such thing" in ran.told("task_stopped")[0]["text"]


def test_a_backend_that_is_not_there_ends_with_1(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure({"name": "b", "kind": "openai", "url": "http://127.0.0.1:9/v1"})
    ran = project.run("create a file")
    assert ran.code == 1
    assert "127.0.0.1:9" in ran.err


def test_a_task_that_needed_changes_and_got_none_ends_with_1(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.says(DONE)
    ran = project.run("create a file")
    assert (ran.code, ran.told("task_stopped")[0]["reason"]) == (1, "unfinished")
    assert len(ran.told("model_nudged")) == 2


@pytest.mark.parametrize(
    "words", [(), ("--max-iterations", "0", "x"), ("--model", "nobody", "x"), ("--resume", "nothing"), ("--nonsense",)]
)
def test_wrong_usage_ends_with_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = Project(tmp_path).run(*words)
    assert (ran.code, ran.events) == (2, [])
    assert ran.err.strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_the_command_and_the_run_with_130(tmp_path: Path, number: signal.Signals) -> None:
    project = Project(tmp_path)
    project.says(turn(shell("echo $$ > pid; sleep 50"), shell("touch never")), DONE)
    with project.start("run it") as (process, out):
        lines = []
        for line in out:
            lines.append(json.loads(line)["event"])
            if lines[-1]["type"] == "tool_started":
                os.kill(process.pid, number)
        assert process.wait() == 130
    assert (project.base / "err.txt").read_text() == ""
    ended = [line for line in lines if line["type"] == "tool_finished"]
    assert [each["status"] for each in ended] == ["stopped", "stopped"]
    assert [line["type"] for line in lines[-3:]] == ["task_stopped", "files_changed", "task_summarized"]
    assert not (project.root / "never").exists()


# ── git, windows, plugins ────────────────────────────────────────────────────────────────────────────


def test_a_task_gets_a_branch_and_nothing_of_the_persons_is_touched(tmp_path: Path) -> None:
    project = Project(tmp_path, {**BROKEN, "mine.txt": "not committed\n"})
    git = ["git", "-C", str(project.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-qb", "main"], ["add", "calc.py"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    project.says(turn(call("edit_file", path="calc.py", old="a - b", new="a + b")), DONE)
    done = work(project, "fix the sum", flags=["--branch"])
    assert done.told(BranchCreated) == [BranchCreated(branch="callwright/fix-the-sum", previous="main")]
    status = subprocess.run([*git, "status", "--short", "--branch"], capture_output=True, check=True, text=True)
    assert status.stdout == "## callwright/fix-the-sum\n M calc.py\n?? mine.txt\n?? test_calc.py\n"
    log = subprocess.run([*git, "log", "--oneline", "--all"], capture_output=True, check=True, text=True)
    assert len(log.stdout.splitlines()) == 1


@pytest.mark.parametrize("way", [WAYS[0], WAYS[4], WAYS[6]], ids=lambda way: way.name)
def test_a_small_window_is_condensed_and_the_task_goes_on(tmp_path: Path, way: Way) -> None:
    files = {f"{name}.txt": f"{name} begins\n" + "much to read here\n" * 116 for name in "abcdefg"}
    project = Project(tmp_path, files, way=way)
    project.context = 9000
    reads = [call("read_file", path=name) for name in files]
    write = call("write_file", path="out.txt", content="read\n")
    project.says(
        turn("I have read a.", aside=True, heard="Sum it up for yourself"),
        turn(reads[0], heard="^read all files"),
        turn(*reads[1:3], heard="a begins"),
        turn(*reads[3:], heard="c begins"),
        # The summary stands for the first round: two and four results are left.
        turn(write, when={"pattern": "g begins"} if way.taught else {"results": 6}),
        turn(COMPLETION_SIGNAL, when={"pattern": "was created"} if way.taught else {"results": 7}),
    )
    done = work(project, "read all files and write out.txt")
    assert done.stopped.reason == "done", (done.stopped, done.told(HistoryCondensed))
    assert len(done.told(HistoryCondensed)) == 1
    assert [each.purpose for each in done.told(ModelAnswered)].count("condense") == 1
    assert project.read("out.txt") == "read\n"


def test_a_second_task_knows_of_the_first(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.txt": "apples\n"})
    project.says(turn(call("read_file", path="a.txt")), turn("Apples."))

    async def run() -> None:
        async with project.desk() as desk:
            session = await desk.open()
            await session.run("what is in a.txt?")
            await session.run("and what was that again?")
            assert [each.task for each in told(session.events, TaskStarted)] == [1, 2]
            assert len(told(session.events, ToolFinished)) == 2
            await session.close()

    asyncio.run(run())


def test_whoever_only_talks_may_look_first_and_must_then_edit(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.txt": "a\n"})
    nudged = {"results": 0, "user": "no file has been changed"}
    project.says(
        turn(call("edit_file", path="a.txt", old="a", new="b"), when={"results": 1}),
        turn(COMPLETION_SIGNAL, when={"results": 2}),
        turn("I look", {"pause": 0.0}, " at it.", call("read_file", path="a.txt"), when=nudged),
        turn("Let me look at it first.", when={"results": 0}),
    )
    done = work(project, "change a.txt")
    assert (done.stopped.reason, project.read("a.txt")) == ("done", "b\n")
    assert len(done.told(ModelNudged)) == 1

    project.says(
        turn(COMPLETION_SIGNAL, when={"results": 1}),
        turn(call("write_file", path="a.txt", content="c\n"), when={"results": 0, "user": "one was required"}),
        turn("I would do it.", when={"results": 0}),
    )
    done = work(project, "change a.txt")
    assert (done.stopped.reason, project.read("a.txt")) == ("done", "c\n")
    assert len(done.told(ModelNudged)) == 2


class Plugin:
    """A tool that another package brings."""

    spec = ToolSpec("deploy", "Deploy.", {"type": "object", "properties": {"to": {"type": "string"}}})

    def __init__(self) -> None:
        self.called: list[Any] = []

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        return f"Deploy to {arguments.get('to')}"

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        self.called.append(arguments)
        return "deployed"


@pytest.mark.parametrize(
    ("reply", "asked", "called"),
    [(DENY, 2, []), (ONCE, 2, [{"to": "a"}, {"to": "b"}]), (ALWAYS, 1, [{"to": "a"}, {"to": "b"}])],
)
def test_a_tool_of_a_plugin_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: ApprovalReply, asked: int, called: list[Any]
) -> None:
    plugin = Plugin()
    monkeypatch.setattr(agent_app, "load_plugins", lambda own: ([SimpleNamespace(tool=plugin)], ()))
    project = Project(tmp_path, approve="commands")
    project.says(turn(call("deploy", to="a"), call("deploy", to="b")), turn("${result}"))
    done = work(project, "run the deployment", reply)
    assert [(each.subject, each.remember) for each in done.asked] == [("tool", ('{ tool = "deploy" }',))] * asked
    assert plugin.called == called
    assert ("deployed" in done.told(TaskSummarized)[0].text) == bool(called)


def test_what_is_shown_is_what_is_stored_and_looks_the_same_when_opened_again(tmp_path: Path) -> None:
    project = Project(tmp_path, BROKEN)
    project.says(
        turn({"reasoning": "Hm. " * 30}, "I look. ", call("read_file", path="calc.py")),
        turn(call("edit_file", path="calc.py", old="a - b", new="a + b"), shell("seq 200; sleep 0.3; seq 5")),
        turn(shell("rm -rf x")),
        turn(f"**Done.**\n\n- one\n- two\n\n{COMPLETION_SIGNAL}", chunk=3),
    )

    async def run() -> None:
        async with project.desk() as desk:
            session = await desk.open()
            person = Person(session, DENY)
            before = list(session.events)
            await session.run("fix the sum")
            await session.undo_changes()
            await session.close()
            stored = await desk.load_events(session.id)
        assert [*before, *person.saw] == list(session.events) == stored
        live, again = SessionTranscript(), SessionTranscript()
        lines = [piece for stamped in (*before, *person.saw) for piece in live.feed(stamped)]
        assert printed(lines) == printed([piece for stamped in stored for piece in again.feed(stamped)])
        assert "rm -rf x" in printed(lines)

    asyncio.run(run())


def printed(pieces: Sequence[RenderableType]) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    for piece in pieces:
        console.print(piece)
    return console.export_text()


@pytest.mark.skipif(
    not is_embedded_available() and not os.environ.get("CI"), reason="the extra `local` is not installed"
)
@full
@pytest.mark.timeout(1200)
def test_a_model_of_135_million_parameters_writes_a_file_when_it_must(tmp_path: Path) -> None:
    project = Project(tmp_path)
    # It may repeat itself until its window is full, which takes a quarter of an hour.
    model = {"name": "tiny", "model": "SmolLM2-135M-Instruct.Q4_1"}
    project.configure({"name": "own", "kind": "embedded", "threads": 1}, model, max_tokens=160)
    for _ in range(3):  # it may name its file what cannot be written, a dozen times over
        ran = project.run(
            *("--model", "tiny", "--max-iterations", "12", "--approve", "edits"),
            "Create a file hello.txt that says hello",
        )
        assert ran.told("task_stopped")[0]["reason"] in ("done", "iterations", "unfinished")
        if tree(project.root):
            break
    assert tree(project.root), [event["view"] for event in ran.told("tool_finished")]
    assert any(file["state"] == "created" for file in ran.told("task_summarized")[0]["files"])
