"""MCP servers as guests: nothing of a project's file is started before its very bytes were approved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import (
    ApprovalRequested,
    CallDecided,
    StampedEvent,
    TaskStopped,
    ToolFinished,
    WarningIssued,
)
from callwright.agent.ui.headless import run_headless
from tests.support import warm
from tests.support.desks import DONE, Place, tool

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
MARKING = """
import pathlib, runpy, sys
with pathlib.Path(sys.argv[1]).open("a") as marker:
    marker.write("started\\n")
sys.argv = [sys.argv[2]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
CALLS = [[tool("theirs__add", a=2, b=3)], [DONE]]
ONCE, ALWAYS, DENY, STOP = (ApprovalReply(verdict=verdict) for verdict in ("once", "always", "deny", "stop"))
Person = Callable[[ApprovalRequested], ApprovalReply]


class Project:
    """A project whose file names a server that leaves a mark when it is started."""

    def __init__(self, base: Path, answers: Any = ((DONE,),), **agent: Any) -> None:
        self.place = Place(base, {}, answers, **agent)
        self.marker = self.place.base / "started"
        script = self.place.base / "server.py"
        script.write_text(MARKING)
        self.command = [*warm.command(script), str(self.marker), SERVER]
        self.file = self.place.root / ".mcp.json"
        self.ask_for("theirs")

    def ask_for(self, *names: str, more: str = "") -> None:
        command, *args = self.command
        servers = {name: {"command": command, "args": args} for name in names}
        self.file.write_text(json.dumps({"mcpServers": servers}) + more)

    @property
    def starts(self) -> int:
        return len(self.marker.read_text().splitlines()) if self.marker.exists() else 0

    def work(self, *replies: ApprovalReply, tasks: int = 1, flags: tuple[str, ...] = ()) -> Work:
        """A new session, some tasks in it, and these answers to what is asked."""
        work = Work(self, list(replies))

        async def run() -> None:
            async with asyncio.timeout(60), self.place.desk(*flags) as desk:
                session = await desk.open()

                def person(stamped: StampedEvent) -> None:
                    if isinstance(stamped.event, ApprovalRequested):
                        work.starts_when_asked.append(self.starts)
                        assert session.answer_approval(stamped.event.approval, work.replies.pop(0)) == ""

                session.subscribe(person)
                for _ in range(tasks):
                    work.ends.append(await session.run("what is the sum?"))
                work.events = [stamped.event for stamped in session.events]
                await session.close()

        asyncio.run(run())
        assert work.replies == []
        return work


class Work:
    """What came of it."""

    def __init__(self, project: Project, replies: list[ApprovalReply]) -> None:
        self.project = project
        self.replies = replies
        self.events: list[Any] = []
        self.ends: list[TaskStopped] = []
        self.starts_when_asked: list[int] = []

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def subjects(self) -> list[str]:
        return [asked.subject for asked in self.of(ApprovalRequested)]


def test_nothing_is_started_before_the_answer_and_everything_is_shown(tmp_path: Path) -> None:
    project = Project(tmp_path)
    work = project.work(ONCE)
    (asked,) = work.of(ApprovalRequested)
    assert work.starts_when_asked == [0]
    assert (asked.subject, asked.tier) == ("server", "high")
    assert all(word in asked.title for word in (*project.command, str(project.file), "theirs"))
    assert str(project.file) in asked.remember[0]
    assert project.starts == 1
    assert [(decided.verdict, decided.by) for decided in work.of(CallDecided)] == [("allow", "person")]


def test_once_is_for_one_session(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.work(ONCE, tasks=2)
    assert project.starts == 1, "the second task of a session has the server already"
    work = project.work(DENY)
    assert work.subjects == ["server"]
    assert project.starts == 1


def test_always_is_for_these_bytes_in_this_place(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.work(ALWAYS)
    assert project.work().subjects == []
    assert project.starts == 2
    approved = project.place.base / "state" / "callwright" / "approved-mcp.json"
    assert list(json.loads(approved.read_text())) == [str(project.file)]
    for changed in (" ", "\n"):
        project.ask_for("theirs", more=changed)
        assert project.work(DENY).subjects == ["server"], repr(changed)
    project.ask_for("theirs", "others")
    assert project.work(DENY).subjects == ["server"]
    assert project.starts == 2
    project.ask_for("theirs")
    assert project.work().subjects == [], "the bytes are those that were approved"
    approved.write_text("{not json")
    assert project.work(DENY).subjects == ["server"], "what cannot be read approves nothing"


def test_another_folder_with_the_same_file_is_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.work(ALWAYS)
    copy = project.place.project("copy", {".mcp.json": project.file.read_text()})
    project.place.root = copy
    assert project.work(DENY).subjects == ["server"]


@pytest.mark.parametrize("approve", ["ask", "all"])
def test_denied_is_said_and_the_task_goes_on(tmp_path: Path, approve: str) -> None:
    project = Project(tmp_path, approve=approve)
    work = project.work(DENY)
    assert project.starts == 0
    assert "were not started" in work.of(WarningIssued)[0].text
    assert work.ends[0].reason == "done"


@pytest.mark.parametrize("approve", ["ask", "all"])
def test_where_nobody_is_nothing_is_started(tmp_path: Path, approve: str, capsys: pytest.CaptureFixture[str]) -> None:
    project = Project(tmp_path, approve=approve)

    async def run() -> None:
        async with project.place.desk() as desk:
            session = await desk.open()
            await run_headless(session, "what is the sum?", json=True)
            await session.close()

    asyncio.run(run())
    assert project.starts == 0
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert [event["verdict"] for event in events if event["type"] == "call_decided"] == ["deny"]


@pytest.mark.parametrize(
    ("reply", "status", "content"), [(ONCE, "ok", "5"), (DENY, "denied", "did not allow")], ids=["once", "deny"]
)
def test_each_call_of_a_guest_is_asked(tmp_path: Path, reply: ApprovalReply, status: str, content: str) -> None:
    work = Project(tmp_path, CALLS).work(ONCE, reply)
    assert work.subjects == ["server", "tool"]
    assert work.of(ApprovalRequested)[1].title == 'theirs: add {"a": 2, "b": 3}'
    (ended,) = work.of(ToolFinished)
    assert ended.status == status
    assert content in ended.content


def test_always_for_a_guests_tool_holds_for_the_session(tmp_path: Path) -> None:
    calls = [[tool("theirs__add", a=1, b=1)], [tool("theirs__add", a=2, b=2)], [tool("theirs__fail", why="x")], [DONE]]
    work = Project(tmp_path, calls).work(ONCE, ALWAYS, DENY)
    assert work.subjects == ["server", "tool", "tool"]
    assert [ended.status for ended in work.of(ToolFinished)] == ["ok", "ok", "denied"]
    assert [decided.by for decided in work.of(CallDecided)] == ["person", "person", "remembered", "person"]


def test_a_policy_can_allow_a_guests_tool(tmp_path: Path) -> None:
    project = Project(tmp_path, CALLS)
    rules = project.place.base / "config" / "callwright" / "policy.toml"
    rules.parent.mkdir()
    rules.write_text('[[tool]]\nname = "theirs__*"\ndecision = "allow"\n')
    work = project.work(ONCE)
    assert [ended.status for ended in work.of(ToolFinished)] == ["ok"]


def test_servers_of_the_persons_own_settings_are_not_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path, [[tool("mine__add", a=2, b=3)], [DONE]])
    project.file.unlink()
    project.place.more = f'[[mcp]]\nname = "mine"\ncommand = {json.dumps(project.command)}\n'
    work = project.work(ONCE)
    assert work.subjects == ["tool"]
    assert [ended.content for ended in work.of(ToolFinished)] == ["5"]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": {"x y": {"command": "z"}}}', '{"mcpServers": {"x": {}}}'])
def test_a_file_that_cannot_be_read_is_a_warning(tmp_path: Path, text: str) -> None:
    project = Project(tmp_path)
    project.file.write_text(text)
    work = project.work()
    assert ".mcp.json" in work.of(WarningIssued)[0].text
    assert work.ends[0].reason == "done"


def test_a_stop_at_the_question_is_no_answer(tmp_path: Path) -> None:
    """The next task asks again."""
    project = Project(tmp_path)
    asked: list[ApprovalRequested] = []

    async def run() -> None:
        async with asyncio.timeout(60), project.place.desk() as desk:
            session = await desk.open()

            def person(stamped: StampedEvent) -> None:
                if isinstance(stamped.event, ApprovalRequested):
                    asked.append(stamped.event)
                    session.stop() if len(asked) == 1 else session.answer_approval(stamped.event.approval, ONCE)

            session.subscribe(person)
            assert (await session.run("what is it?")).reason == "person"
            assert project.starts == 0
            assert (await session.run("what is it?")).reason == "done"
            assert project.starts == 1
            await session.close()

    asyncio.run(run())
    assert len(asked) == 2
