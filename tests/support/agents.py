"""The whole agent on a temporary project, with a model that plays a script.

    project = Project(tmp_path, {"calc.py": WRONG})
    project.says(turn("I look.", call("read_file", path="calc.py")), turn(f"It adds. {SIGNAL}"))
    ran = project.run("what is calc.py?")                     # a process of its own, as scripts start it
    async with project.desk() as desk: ...                     # the same put together in this process

A turn of the model is played when as many results have come as the turns before it made calls, so that a session which
is opened again goes on where it was. A `Way` says how the model makes its calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from unittest.mock import patch

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.session.agent_session import AgentSession
from callwright.agent.session.session_manager import SessionManager
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, StampedEvent, TaskStopped
from callwright.app import load_config, open_agent_app, open_session_archive
from callwright.cli import _build_parser
from callwright.cli.agent import load_agent_config
from tests.support.warm import Running, run, start

__all__ = [
    "ALWAYS",
    "BROKEN",
    "DENY",
    "DONE",
    "ONCE",
    "WAYS",
    "Child",
    "Person",
    "Project",
    "Ran",
    "Turn",
    "Way",
    "call",
    "open_manager",
    "told",
    "tree",
    "turn",
    "work",
]

SECONDS = 580.0
SOURCE = str(Path(__file__).parents[2] / "src")
BROKEN = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\n\nimport calc\n\n\nclass Test(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    ),
}
"""A project with a failing test."""
ONCE, ALWAYS, DENY = ApprovalReply(verdict="once"), ApprovalReply(verdict="always"), ApprovalReply(verdict="deny")


class Way(NamedTuple):
    """How the model makes calls: natively, or written in a dialect; with tools it is offered, or told of in words."""

    name: str
    dialect: str = ""
    taught: bool = False


WAYS = (
    Way("native"),
    Way("says hermes", "hermes"),
    Way("says kimi", "kimi_k2"),
    Way("says deepseek", "deepseek_v31"),
    Way("taught hermes", "hermes", taught=True),
    Way("taught kimi", "kimi_k2", taught=True),
    Way("taught harmony", "harmony", taught=True),
    Way("taught minimax", "minimax_m2", taught=True),
)


@asynccontextmanager
async def open_manager(
    config: Path | str, folder: Path, environment: Mapping[str, str], flags: Sequence[str] = ()
) -> AsyncIterator[SessionManager]:
    """The sessions of a folder in this process, with the settings and flags of `callwright agent`."""
    arguments = _build_parser("agent").parse_args(["agent", "--config", str(config), *flags])
    with patch.dict(os.environ, environment, clear=True):
        loaded = load_agent_config(arguments)
    async with open_agent_app(loaded, policy_file=arguments.policy, environment=environment) as agent:
        yield await agent.create_session_manager(folder)


class Turn(NamedTuple):
    """What the model says, in order: words, calls, and other steps of a script."""

    steps: tuple[dict[str, Any], ...]
    heard: str
    """A pattern of what it was told last, by which a model that is only told words knows where it is."""
    aside: bool
    """When it is asked for the content of a file or for a summary, and offered no tools."""
    more: Mapping[str, Any]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"name": name, "arguments": arguments}}


def turn(*steps: str | dict[str, Any], heard: str = "", aside: bool = False, **more: Any) -> Turn:
    return Turn(tuple({"text": step} if isinstance(step, str) else step for step in steps), heard, aside, more)


DONE = turn(f"It is done. {COMPLETION_SIGNAL}")


class Ran(NamedTuple):
    """A process that has ended."""

    code: int
    events: list[dict[str, Any]]
    """Each as it was written, with its `seq`."""
    err: str

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [line["event"] for line in self.events if line["event"]["type"] == kind]


class Child(NamedTuple):
    """A process that is ours to kill."""

    running: Running
    out: TextIO

    def kill_at(self, seq: int) -> bool:
        """Read its events, and kill it when this one appears; False when it ended before."""
        return self.kill_when(lambda event: event["seq"] >= seq)

    def kill_when(self, test: Callable[[dict[str, Any]], bool]) -> bool:
        """Read its events, and kill it at the first one that passes the test; False when it ended before."""
        for line in self.out:
            if test(json.loads(line)):
                self.running.kill()
                self.ended()
                return True
        self.ended()
        return False

    def kill_after(self, seconds: float) -> None:
        """Kill it then; it may have ended."""
        time.sleep(seconds)
        self.running.kill()
        self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        self.out.read()
        self.out.close()
        return self.running.wait(SECONDS)


class Project:
    """A folder to work in, and beside it all that the agent keeps and reads of its own."""

    def __init__(self, base: Path, files: Mapping[str, str] | None = None, *, way: Way = WAYS[0], **agent: Any) -> None:
        self.base = base
        self.root = base / "project"
        self.way = way
        self.agent = agent
        self.config = base / "callwright.toml"
        self.script = base / "script.jsonl"
        self.context = 0
        for name, text in {**(files or {}), "../config/callwright/.keep": ""}.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.root.mkdir(exist_ok=True)
        self.says(DONE)

    # ── the model ────────────────────────────────────────────────────────────────────────────────

    def says(self, *turns: Turn) -> None:
        """What the model is going to say."""
        lines, results = [], 0
        for one in turns:
            steps = [self._made(step) for step in one.steps]
            seen = {"tools": False} if one.aside else {"results": results}
            when = {"pattern": one.heard} if self.way.taught else seen
            lines.append({"when": when, "steps": steps} | dict(one.more))
            results += sum("call" in step for step in one.steps)
        self.script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self._configure()

    def _made(self, step: dict[str, Any]) -> dict[str, Any]:
        if "call" not in step or not self.way.dialect:
            return step
        return {"say": step["call"] | {"anyway": True}, "dialect": self.way.dialect}

    def _configure(self) -> None:
        model: dict[str, Any] = {"name": "coder", "model": "scripted", "backend": "script"}
        if self.way.dialect:
            model |= {"dialect": self.way.dialect}
        if self.way.taught:
            model |= {"tools": "taught"}
        if self.context:
            model |= {"context": self.context}
        backend = {"name": "script", "kind": "scripted", "script": str(self.script)}
        self.configure(backend, model)

    def configure(self, backend: Mapping[str, Any], model: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Write the settings; JSON's values are TOML's too."""
        tables = {"[[backends]]": backend, "[agent]": self.agent, "[[models]]": model, "[models.options]": options}
        filled = [(head, table) for head, table in tables.items() if table]
        lines = [[head, *(f"{key} = {json.dumps(value)}" for key, value in table.items())] for head, table in filled]
        self.config.write_text("".join(f"{line}\n" for table in lines for line in table))

    # ── in a process of its own ──────────────────────────────────────────────────────────────────

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        own = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
        places = {name: str(self.base / folder) for name, folder in own.items()}
        return {**kept, **places, "PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"}

    def words(self, *words: str) -> list[str]:
        """`callwright agent --json` for these words."""
        return ["callwright", "agent", "--json", "--config", str(self.config), *words]

    @contextmanager
    def start(self, *words: str) -> Iterator[tuple[Running, TextIO]]:
        """That by a new interpreter, with its output to be read; what it says on standard error is in `err.txt`."""
        running, out = self._started(words, is_cold=True)
        with out:
            try:
                yield running, out
            finally:
                running.kill()

    def fork(self, *words: str) -> Child:
        """The same without the seconds that a new interpreter takes to load everything."""
        return self._started(words, is_cold=False)

    def _started(self, words: Sequence[str], *, is_cold: bool) -> Child:
        (self.base / "home").mkdir(exist_ok=True)
        reading, writing = os.pipe()
        with Path(os.devnull).open() as nothing, (self.base / "err.txt").open("w") as err, os.fdopen(writing):
            files = (nothing.fileno(), writing, err.fileno())
            running = start(
                self.words(*words), cwd=self.root, environment=self.environment, files=files, is_cold=is_cold
            )
        return Child(running, os.fdopen(reading))

    async def stored(self) -> list[StampedEvent]:
        """The events of the only session, as they are on the disk."""
        config = load_config(self.config, environment=self.environment)
        async with open_session_archive(config, environment=self.environment) as archive:
            rows = await archive.list_sessions()
            assert len(rows) <= 1
            return await archive.load_events(rows[0].id) if rows else []

    def run(self, *words: str) -> Ran:
        """The same to its end."""
        (self.base / "home").mkdir(exist_ok=True)
        ran = run(self.words(*words), cwd=self.root, environment=self.environment, seconds=SECONDS)
        return Ran(ran.code, [json.loads(line) for line in ran.out.splitlines()], ran.err)

    # ── in this one ──────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def desk(self, *words: str) -> AsyncIterator[SessionManager]:
        """The sessions of the project, put together as the command line does it."""
        (self.base / "home").mkdir(exist_ok=True)
        async with open_manager(self.config, self.root, self.environment, words) as manager:
            yield manager

    def read(self, path: str) -> str:
        return (self.root / path).read_text()


class Person:
    """Watches a session and answers what it asks, one reply after the other; the last one for all that follow."""

    def __init__(
        self, session: AgentSession, *replies: ApprovalReply | Callable[[ApprovalRequested], ApprovalReply]
    ) -> None:
        self.asked: list[ApprovalRequested] = []
        self.saw: list[StampedEvent] = []
        self._session = session
        self._replies = list(replies)
        session.subscribe(self._see)

    def _see(self, stamped: StampedEvent) -> None:
        self.saw.append(stamped)
        if isinstance(stamped.event, ApprovalRequested):
            self.asked.append(stamped.event)
            if not self._replies:
                raise AssertionError(f"nobody thought that this would be asked: {stamped.event}")
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
            problem = self._session.answer_approval(
                stamped.event.approval, reply if isinstance(reply, ApprovalReply) else reply(stamped.event)
            )
            assert problem == ""


class Work(NamedTuple):
    """A task that was worked on in this process."""

    stopped: TaskStopped
    asked: list[ApprovalRequested]
    events: list[StampedEvent]

    def told(self, kind: type) -> list[Any]:
        return told(self.events, kind)


def work(
    project: Project,
    task: str,
    *replies: ApprovalReply | Callable[[ApprovalRequested], ApprovalReply],
    flags: Sequence[str] = (),
) -> Work:
    """Open a session, do a task, answer what is asked, close it."""

    async def run() -> Work:
        async with project.desk(*flags) as desk:
            session = await desk.open()
            person = Person(session, *replies)
            try:
                stopped = await session.run(task)
            finally:
                await session.close()
            return Work(stopped, person.asked, list(session.events))

    return asyncio.run(run())


def told(events: Sequence[StampedEvent], kind: type) -> list[Any]:
    return [stamped.event for stamped in events if isinstance(stamped.event, kind)]


def tree(root: Path) -> dict[str, bytes]:
    """All files but those of git and Python's own."""
    files = (file for file in sorted(root.rglob("*")) if file.is_file())
    return {
        name: file.read_bytes()
        for file in files
        if not re.match(r"\.git/|.*__pycache__/", name := str(file.relative_to(root)))
    }
