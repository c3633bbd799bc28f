"""A session that is interrupted goes on in another process: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.changes.file_change import FileChange
from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import (
    StampedEvent,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    ToolFinished,
    ToolStarted,
)
from callwright.agent.workspace.workspace import Workspace
from callwright.app import load_config
from callwright.config import get_state_folder
from callwright.errors import StoreError
from callwright.store.open import open_agent_store
from callwright.store.writer import DatabaseWriter
from tests.support.agents import Child, Person, Project, call, told, tree, turn
from tests.support.sampling import FULL, sample

TASK = "fix the sum"
FLAGS = ("--approve", "commands")
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "build/old.txt": "old\n"}


def project_at(folder: Path, pause: float = 0) -> Project:
    """A run with reads, an edit that shows when it is made twice, a command that does too, and a question. The command
    takes `pause` seconds."""
    project = Project(folder, FILES)
    project.says(
        turn("I look. ", call("read_file", path="calc.py"), call("list_files", path=".")),
        turn({"reasoning": "A sign."}, call("edit_file", path="calc.py", old="a - b", new="a - b + b + b")),
        turn(call("run_terminal_command", command=f"echo ran >> log.txt; sleep {pause}")),
        turn(call("run_terminal_command", command="rm -rf build")),
        turn(f"It is right now. {COMPLETION_SIGNAL}"),
    )
    return project


def is_interrupted(events: Sequence[StampedEvent]) -> bool:
    """The command ran when the process ended: nobody knows whether it came to anything."""
    return any(each.status == "unknown" for each in told(events, ToolFinished))


def assert_done_once(project: Project, before: Sequence[StampedEvent], whole: dict[str, bytes]) -> None:
    """The session has come to its end, and the files are those of a run that nobody interrupted."""
    events = asyncio.run(project.stored())
    assert events[: len(before)] == list(before), "what has happened stays"
    assert [stamped.seq for stamped in events] == list(range(1, len(events) + 1))
    assert [(each.task, each.reason) for each in told(events, TaskStopped)] == [(1, "denied")]
    assert isinstance(events[-1].event, TaskSummarized)
    assert len(told(events, TaskStarted)) == 1
    began = [each.call for each in told(events, ToolStarted) if each.name == "run_terminal_command"]
    assert len(began) == len(set(began)) == 1
    ended = [each.call for each in told(events, ToolFinished)]
    assert len(ended) == len(set(ended)) == 5
    files = tree(project.root)
    log, expected = files.pop("log.txt", b""), dict(whole)
    assert expected.pop("log.txt") == b"ran\n"
    assert files == expected
    assert log in (b"ran\n", b"") if is_interrupted(events) else log == b"ran\n"
    (file,) = told(events, TaskSummarized)[0].files
    assert (file.path, file.added, file.removed) == ("calc.py", 1, 1)


def resume(project: Project, before: Sequence[StampedEvent]) -> Child:
    """What `--resume` does; a task that was never stored has to be said again."""
    task = () if told(before, TaskStarted) else (TASK,)
    return project.fork(*FLAGS, "--resume", before[0].event.session, *task)


def starts_command(event: dict[str, Any]) -> bool:
    """Whether a line of the agent says that it starts its command."""
    inner = event.get("event", event)
    return bool(inner.get("name") == "run_terminal_command" and inner["type"] == "tool_started")


def is_over(events: Sequence[StampedEvent]) -> bool:
    return isinstance(events[-1].event, TaskSummarized)


@pytest.mark.timeout(600)
def test_a_kill_at_every_event_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    calm = project_at(tmp_path / "calm")
    assert calm.fork(*FLAGS, TASK).ended() == 3
    whole, calmly = tree(calm.root), asyncio.run(calm.stored())
    (running,) = [
        each.seq
        for each in calmly
        if getattr(each.event, "name", "") == "run_terminal_command" and isinstance(each.event, ToolStarted)
    ]
    interrupted = 0
    for seq in sorted({running, *sample(range(1, len(calmly)), 3)}):
        # The command that is killed lasts long enough for any machine; it is not run again.
        project = project_at(tmp_path / str(seq), pause=60 if seq == running else 0)
        child = project.fork(*FLAGS, TASK)
        # How many events come before it depends on how the text before it is cut.
        assert child.kill_when(starts_command) if seq == running else child.kill_at(seq), f"no event {seq}"
        before = asyncio.run(project.stored())
        if is_over(before):
            continue  # its end was stored while its last lines were read
        assert resume(project, before).ended() == 3, (seq, (project.base / "err.txt").read_text())
        assert_done_once(project, before, whole)
        interrupted += is_interrupted(asyncio.run(project.stored()))
    assert interrupted, "no kill hit the command"


@pytest.mark.timeout(300)
def test_a_kill_at_any_moment_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    calm = project_at(tmp_path / "calm", pause=0.3)
    began = time.monotonic()
    calm.fork(*FLAGS, TASK).ended()
    seconds, whole = time.monotonic() - began, tree(calm.root)
    moments = random.Random(6)
    for number in range(12 if FULL else 2):
        project = project_at(tmp_path / str(number), pause=0.3)
        project.fork(*FLAGS, TASK).kill_after(seconds * moments.random())
        before = asyncio.run(project.stored())
        if before and not is_over(before):
            resume(project, before).kill_after(seconds * moments.random())
            before = asyncio.run(project.stored())
        if before and not is_over(before):
            assert resume(project, before).ended() == 3, (number, (project.base / "err.txt").read_text())
            assert_done_once(project, before, whole)


class Disk:
    """Fails at one write and at all that follow, as if the process had ended there: before it is made, or after."""

    def __init__(self, at: int, *, made: bool) -> None:
        self._at = at
        self._made = made
        self._count = 0
        self._write: Callable[..., Awaitable[Any]] = DatabaseWriter.write

    async def write(self, writer: DatabaseWriter, change: Any) -> Any:
        self._count += 1
        if self._count < self._at:
            return await self._write(writer, change)
        if self._count == self._at and self._made:
            await self._write(writer, change)
        raise StoreError("the disk is gone")

    @property
    def writes(self) -> int:
        """How many there were."""
        return self._count

    @property
    def failed(self) -> bool:
        return self._count >= self._at


async def worked(project: Project, session: str, disk: Disk) -> str:
    """Work until the disk fails, or to the end; which session that was."""
    async with project.desk(*FLAGS) as desk:
        opened = await desk.open(session)
        Person(opened, ApprovalReply(verdict="deny", is_unattended=True))
        try:
            with patch.object(DatabaseWriter, "write", lambda writer, change: disk.write(writer, change)):
                if not session or (await opened.resume() is None and not told(opened.events, TaskStarted)):
                    await opened.run(TASK)
        except StoreError:
            assert disk.failed
        finally:
            await opened.close()
        return opened.id


async def interrupted(project: Project, at: int, *, made: bool) -> list[StampedEvent]:
    """Work until that write fails, then go on to the end; the events in between."""
    session = await worked(project, "", Disk(at, made=made))
    before = await project.stored()
    await worked(project, session, Disk(1_000_000, made=True))
    return before


@pytest.mark.timeout(600)
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_a_crash_at_every_write_of_the_store_loses_nothing_and_repeats_nothing(tmp_path: Path, made: bool) -> None:
    calm = project_at(tmp_path / "calm")
    disk = Disk(1_000_000, made=True)
    asyncio.run(worked(calm, "", disk))
    whole, last = tree(calm.root), disk.writes
    assert last > 30
    crashes = 0
    for at in sample(range(1, last), 4):
        project = project_at(tmp_path / str(at))
        before = asyncio.run(interrupted(project, at, made=made))
        if is_over(before):
            continue  # this run had fewer writes: how the text is cut depends on the machine
        assert_done_once(project, before, whole)
        crashes += 1
    assert crashes
    ends = (
        asyncio.run(interrupted(project_at(tmp_path / f"last {at}"), at, made=True)) for at in range(last, last + 9)
    )
    assert any(is_over(end) for end in ends), "the last write ends the task"


@pytest.mark.parametrize("is_resumed", [False, True], ids=["run", "resume"])
def test_a_write_that_a_crash_interrupted_can_be_undone_after_the_next_work(tmp_path: Path, is_resumed: bool) -> None:
    project = Project(tmp_path, {"calc.py": "old\n"}, sandbox="never")
    project.says(turn(call("read_file", path="calc.py")), turn(f"It is read. {COMPLETION_SIGNAL}"))

    async def leave_session() -> str:
        async with project.desk() as desk:
            session = await desk.open()
            if is_resumed:
                working = asyncio.ensure_future(session.run("what is in calc.py?"))
                session.subscribe(lambda stamped: working.cancel() if isinstance(stamped.event, ToolStarted) else None)
                await asyncio.wait([working])
            await session.close()
            return session.id

    async def crash_after_write(session: str) -> None:
        config = load_config(project.config, environment=project.environment)
        async with open_agent_store(config.store, get_state_folder(project.environment)) as store:
            checkpoints = Checkpoints(store.snapshots, session, Workspace(project.root))
            await checkpoints.record_plan(1, "lost", [FileChange(path="calc.py", before=b"old\n", after=b"new\n")])
            (project.root / "calc.py").write_text("new\n")

    async def run() -> None:
        session = await leave_session()
        await crash_after_write(session)
        async with project.desk() as desk:
            opened = await desk.open(session)
            try:
                assert await (opened.resume() if is_resumed else opened.run("what is in calc.py?")) is not None
                assert [file.path for file in await opened.review_changes()] == ["calc.py"]
                assert (await opened.undo_changes()).paths == ("calc.py",)
            finally:
                await opened.close()

    asyncio.run(run())
    assert project.read("calc.py") == "old\n"
