"""The agent on a temporary project with a model that plays a script, for tests that sit on the other side of it.

    place = Place(tmp_path, {"calc.py": "…"}, [[tool("read_file", path="calc.py")], ["It adds. [TASK_COMPLETE]"]])
    async with place.desk() as desk: …                          # in this process
    async with place.editor(person) as (editor, process): …     # `callwright agent --acp`, with the official client

The script's answers follow one another in each task: an answer is played when all calls before it have results.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from callwright.agent.session.session_manager import SessionManager
from tests.support.agents import open_manager
from tests.support.warm import Running, start

__all__ = ["DONE", "Editor", "Place", "tool"]

SOURCE = str(Path(__file__).parents[2] / "src")
DONE = "It is done. [TASK_COMPLETE]"
Answer = Sequence[str | dict[str, Any]]


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of the model."""
    return {"call": {"name": name, "arguments": arguments, "anyway": True}}


class Place:
    """A project, and beside it a home folder, the settings and the state of somebody who works on it."""

    def __init__(
        self, base: Path, files: Mapping[str, str] | None = None, answers: Sequence[Answer] = ((DONE,),), **agent: Any
    ) -> None:
        self.base = base.resolve()
        self.root = self.project("project", files)
        self.more = ""
        """TOML for the end of the settings."""
        self._agent = agent
        for name in ("home", "config", "state"):
            (self.base / name).mkdir()
        self.says(*answers)

    def project(self, name: str, files: Mapping[str, str] | None = None) -> Path:
        """A folder with files in it."""
        for path, text in (files or {}).items():
            (self.base / name / path).parent.mkdir(parents=True, exist_ok=True)
            (self.base / name / path).write_text(text)
        (self.base / name).mkdir(exist_ok=True)
        return self.base / name

    def says(self, *answers: Answer) -> None:
        """What the model says, answer after answer."""
        lines, results = [], 0
        for answer in answers:
            steps = [{"text": step} if isinstance(step, str) else step for step in answer]
            lines.append({"when": {"results": results}, "steps": steps})
            results += sum("call" in step for step in steps)
        (self.base / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    @property
    def environment(self) -> dict[str, str]:
        folders = {"HOME": "home", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}
        places = {name: str(self.base / folder) for name, folder in folders.items()}
        return {"PATH": os.environ["PATH"], **places, "PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"}

    def settings(self) -> str:
        """The file of the settings, written."""
        backend = {"name": "script", "kind": "scripted", "script": str(self.base / "script.jsonl")}
        tables = (("[[backends]]", backend), ("[agent]", self._agent))
        lines = [
            line for head, table in tables for line in (head, *(f"{k} = {json.dumps(v)}" for k, v in table.items()))
        ]
        file = self.base / "callwright.toml"
        file.write_text("\n".join([*lines, self.more]))
        return str(file)

    @asynccontextmanager
    async def desk(self, *flags: str) -> AsyncIterator[SessionManager]:
        """The sessions of the project."""
        async with open_manager(self.settings(), self.root, self.environment, flags) as manager:
            yield manager

    @asynccontextmanager
    async def process(self, *flags: str) -> AsyncIterator[Process]:
        """`callwright agent --acp`; what is left of it is ended."""
        words = ["callwright", "agent", "--acp", "--config", self.settings(), *flags]
        (reading, stdin), (stdout, writing) = os.pipe(), os.pipe()
        with (self.base / "stderr").open("wb") as stderr, os.fdopen(reading), os.fdopen(writing):
            files = (reading, writing, stderr.fileno())
            running = start(words, cwd=self.base, environment=self.environment, files=files)
        process = await Process.connected(running, stdin, stdout)
        try:
            yield process
        finally:
            await _ended(process)

    @asynccontextmanager
    async def editor(self, *flags: str) -> AsyncIterator[Editor]:
        """The same, with an editor that has shaken hands."""
        async with self.process(*flags) as process:
            editor = Editor(process)
            try:
                await editor.agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
                yield editor
            finally:
                await editor.agent.close()


class Process:
    """The agent, by its pipes."""

    def __init__(self, running: Running, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self.running = running
        self.stdin = stdin
        self.stdout = stdout

    @classmethod
    async def connected(cls, running: Running, stdin: int, stdout: int) -> Process:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=32 * 1024 * 1024)
        protocol = asyncio.StreamReaderProtocol(reader)
        await loop.connect_read_pipe(lambda: protocol, os.fdopen(stdout, "rb"))
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(stdin, "wb"))
        return cls(running, asyncio.StreamWriter(transport, flow, None, loop), reader)


async def _ended(process: Process) -> None:
    """The editor has closed its end, and so the agent ends: soon, and without being asked."""
    process.stdin.close()
    try:
        async with asyncio.timeout(10):
            await process.stdout.read()
        assert process.running.wait(10) == 0
    finally:
        process.running.kill()


class Editor:
    """A client by the protocol's own package, which checks every message against its schema."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[Any] = []
        """The tool calls and options of all permission requests."""
        self.raw: list[dict[str, Any]] = []
        self.answers: list[str | BaseException] = []
        """What to choose, one after the other, the last for the rest: an option's id, `cancelled`, `wait`, an error."""
        self.news = asyncio.Event()
        self.agent = ClientSideConnection(self, process.stdin, process.stdout, observers=[self._see])  # type: ignore[arg-type]

    def _see(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            self.raw.append(event.message)

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append((session_id, update))
        self.news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **more: Any
    ) -> RequestPermissionResponse:
        self.asked.append((session_id, tool_call, options))
        self.news.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        if answer == "wait":
            await asyncio.sleep(3600)
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=answer)
        return RequestPermissionResponse(outcome=chosen)

    async def until(self, wanted: Any) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(20):
            while not wanted():
                self.news.clear()
                await self.news.wait()

    def of(self, kind: str, session: str = "") -> list[Any]:
        """The updates of a kind."""
        return [u for at, u in self.updates if u.session_update == kind and session in ("", at)]

    def said(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        """The text of all chunks."""
        return "".join(update.content.text for update in self.of(kind, session))
