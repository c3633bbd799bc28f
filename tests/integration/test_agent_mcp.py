"""MCP servers, with real ones: children on stdio, and one over HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp.client.stdio
import pytest

from callwright.agent.mcp import servers
from callwright.agent.mcp.servers import McpServers
from callwright.agent.mcp.settings import McpSettings
from callwright.agent.tools.base import ExternalTool, ToolContext
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from tests.support import warm

SCRIPT = str(Path(__file__).parents[1] / "support" / "mcp_server.py")


# The client library leaves the pipes of a server that must be killed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

DIES = "import sys; sys.exit('no such file')"
SILENT = "import time; time.sleep(3600)"
SOUP = f"print('hello\\n{{}}\\n[1', flush=True); {SILENT}"


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what a test leaves behind before the next one begins."""
    yield
    gc.collect()


def stdio(name: str = "test", **more: Any) -> McpSettings:
    return McpSettings(name=name, command=warm.command(SCRIPT), **more)


def bad(name: str, code: str, **more: Any) -> McpSettings:
    return McpSettings(name=name, command=(sys.executable, "-c", code), **more)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that will not end is not waited for."""
    monkeypatch.setattr(mcp.client.stdio, "PROCESS_TERMINATION_TIMEOUT", 0.1)


class Talk:
    """Open servers, and a room to call their tools in."""

    def __init__(self, root: Path, *settings: McpSettings) -> None:
        self.now = 0.0
        self.told: list[str] = []
        self.servers = McpServers(settings, root, lambda: self.now)
        self.room = ToolContext(workspace=Workspace(root), report_progress=self.told.append)
        self.warnings: tuple[str, ...] = ()

    async def __aenter__(self) -> Talk:
        self.warnings = await self.servers.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.servers.close()

    async def call(self, name: str, **arguments: Any) -> str:
        tool = next(each for each in self.servers.tools if each.spec.name == name)
        return await tool.call(arguments, self.room)


def children() -> set[int]:
    """The processes that we started, without the one that lists them."""
    command = ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0]) for line in listed.splitlines() if line.split()[1] != "ps"}


def test_tools_are_offered_under_the_servers_name_with_their_schema(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            assert talk.warnings == ()
            found = {tool.spec.name: tool for tool in talk.servers.tools}
            assert found["test__add"].spec.description == "Add two numbers."
            assert set(found["test__add"].spec.parameters["properties"]) == {"a", "b"}
            assert all(len(name) <= 64 for name in found)
            assert all(isinstance(tool, ExternalTool) for tool in found.values())
            assert found["test__add"].describe_call({"a": 1}) == 'test: add {"a": 1}'
            long = next(name for name in found if name.startswith("test__aaa"))
            assert await talk.call(long) == "long"

    asyncio.run(scenario())


def test_a_call_is_answered_and_progress_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            assert await talk.call("test__add", a=2, b=3) == "5"
            assert await talk.call("test__count", to=2) == "counted"
            assert talk.told == ["at 1\n", "at 2\n"]
            several = await asyncio.gather(*(talk.call("test__add", a=n, b=n) for n in range(5)))
            assert several == ["0", "2", "4", "6", "8"]

    asyncio.run(scenario())


def test_content_of_any_kind_becomes_text_within_limits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            picture = await talk.call("test__picture")
            assert picture.splitlines() == ["look:", "(image/png, 102 bytes, not shown)", "notes: file:///notes.txt"]
            much = await talk.call("test__much")
            assert len(much) < 70_000
            assert much.endswith("(134464 more characters omitted)")

    asyncio.run(scenario())


def test_an_error_of_the_tool_is_shown_to_the_model(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            with pytest.raises(ToolError, match="too late"):
                await talk.call("test__fail", why="too late")
            with pytest.raises(ToolError, match="a"):
                await talk.call("test__add", a="no number", b=1)
            assert await talk.call("test__add", a=1, b=1) == "2"

    asyncio.run(scenario())


def test_a_server_that_dies_is_started_again_with_the_next_call_but_the_call_is_not_repeated(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            with pytest.raises(ToolError, match=r"ended during this call.*I am dying"):
                await talk.call("test__die")
            assert await talk.call("test__add", a=1, b=1) == "2"
            for _ in range(2):
                with pytest.raises(ToolError, match="ended during"):
                    await talk.call("test__die")
            with pytest.raises(ToolError, match=r"is down: .* Try again in 1 seconds"):
                await talk.call("test__add", a=1, b=1)
            talk.now += 1.5
            assert await talk.call("test__add", a=1, b=1) == "2"

    asyncio.run(scenario())


def test_a_call_that_takes_too_long_is_given_up_and_the_server_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio(call_seconds=2)) as talk:
            with pytest.raises(ToolError, match=r"took longer than 2 seconds"):
                await talk.call("test__wait", seconds=30)
            assert await talk.call("test__add", a=1, b=1) == "2"

    asyncio.run(scenario())


def test_a_cancelled_call_leaves_the_server_usable(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            call = asyncio.create_task(talk.call("test__wait", seconds=30))
            await asyncio.sleep(0.2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await talk.call("test__add", a=1, b=1) == "2"

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_a_server_that_cannot_be_started_is_a_sentence_and_the_others_work(tmp_path: Path) -> None:
    reasons = {
        "dies": r"Its last output on standard error: no such file",
        "silent": r"it did not answer within 1 seconds",
        "soup": r"it did not answer within 1 seconds",
        "missing": r"No such file",
        "refused": r"could not be started",
    }
    settings = [
        bad("dies", DIES),
        bad("silent", SILENT, start_seconds=1),
        bad("soup", SOUP, start_seconds=1),
        McpSettings(name="missing", command=("no-such-program-anywhere",)),
        McpSettings(name="refused", url="http://127.0.0.1:1/mcp"),
    ]

    async def scenario() -> None:
        async with Talk(tmp_path, *settings, stdio(name="other")) as talk:
            for (name, why), warning in zip(reasons.items(), talk.warnings, strict=True):
                assert warning.startswith(f"MCP server {name} could not be started: ")
                assert re.search(why, warning), warning
            assert await talk.call("other__add", a=1, b=1) == "2"

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_closing_ends_the_children(tmp_path: Path) -> None:
    async def scenario() -> None:
        before = children()
        silent = bad("three", SILENT, start_seconds=1)
        async with Talk(tmp_path, stdio(name="one"), stdio(name="two"), silent) as talk:
            assert len(children() - before) >= 2
        assert not children() - before
        with pytest.raises(ToolError, match="is closed"):
            await talk.call("one__add", a=1, b=1)
        assert not children() - before

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_starting_can_be_cancelled_and_leaves_no_child(tmp_path: Path) -> None:
    async def scenario() -> None:
        before = children()
        talk = Talk(tmp_path, bad("test", SILENT), stdio(name="other"))
        starting = asyncio.create_task(talk.servers.open())
        while len(children() - before) < 2:
            await asyncio.sleep(0.05)
        for _ in range(1000):
            await asyncio.sleep(0)  # asyncio forgets the pipes of a child that is cancelled while they are made
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await talk.servers.close()
        assert not children() - before

    asyncio.run(scenario())


def test_a_server_is_told_nothing_but_what_its_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")

    async def scenario() -> None:
        async with Talk(tmp_path, stdio(env={"MINE": "1"})) as talk:
            told = (await talk.call("test__environment")).splitlines()
            assert "MINE" in told
            assert "SOME_API_KEY" not in told
            assert str(tmp_path) in told

    asyncio.run(scenario())


def test_only_the_tools_that_are_allowed_are_offered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio(tools=("add",))) as talk:
            assert [tool.spec.name for tool in talk.servers.tools] == ["test__add"]

    asyncio.run(scenario())


def test_a_second_server_of_the_same_name_brings_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Talk(tmp_path, stdio(tools=("add",)), stdio(tools=("add",))) as talk:
            assert len(talk.servers.tools) == 1
            assert "another tool is named test__add" in talk.warnings[0]

    asyncio.run(scenario())


def test_without_the_package_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "find_spec", lambda name: None)

    async def scenario() -> None:
        async with Talk(tmp_path, stdio()) as talk:
            assert talk.warnings == ("MCP servers need the package mcp: pip install 'callwright[mcp]'",)

    asyncio.run(scenario())


@pytest.fixture
def web_server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    child = subprocess.Popen([sys.executable, SCRIPT, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.kill()
        child.wait()


def test_a_server_over_http_works_and_its_death_is_noticed(tmp_path: Path, web_server: str) -> None:
    async def scenario() -> None:
        settings = McpSettings(name="web", url=web_server, headers={"authorization": "Bearer x"}, call_seconds=10)
        async with Talk(tmp_path, settings) as talk:
            assert talk.warnings == ()
            assert await talk.call("web__add", a=2, b=2) == "4"
            with pytest.raises(ToolError, match="web"):
                await talk.call("web__die")
            with pytest.raises(ToolError, match="web"):
                await talk.call("web__add", a=1, b=1)

    asyncio.run(scenario())
