"""The agent in an editor: the real process, driven by the client of the protocol's own package."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import acp
import pytest
from acp.schema import EnvVariable, McpServerStdio
from acp.schema import Implementation as Info

from tests.support import warm
from tests.support.desks import DONE, Editor, Place, tool

Scenario = Callable[[Editor], Coroutine[Any, Any, None]]
SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
PUSH = tool("run_terminal_command", command="git push --force")
SLEEP = tool("run_terminal_command", command="sleep 987.5", seconds=3000)
MIDDLE = """
import json, subprocess, sys, time

def send(number, method, **params):
    child.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\\n")
    child.stdin.flush()

child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.pid, flush=True)
send(1, "session/new", cwd=sys.argv[1], mcpServers=[])
session = json.loads(child.stdout.readline())["result"]["sessionId"]
send(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "what is it?"}])
child.stdout.readline()
print("working", flush=True)
sys.stdin.readline()
child.stdin.close()
time.sleep(3600)
"""
CALC = {"calc.py": "def add(a, b):\n    return a - b\n"}
FIX: list[list[Any]] = [
    [{"reasoning": "Look first."}, "I look. ", tool("read_file", path="calc.py")],
    [
        tool("edit_file", path="calc.py", old="a - b", new="a + b"),
        tool("write_file", path="doc/new.md", content="New.\n"),
    ],
    [f"Fixed. {DONE}"],
]


def drive(place: Place, scenario: Scenario, *flags: str) -> None:
    async def run() -> None:
        async with asyncio.timeout(50), place.editor(*flags) as editor:
            await scenario(editor)

    asyncio.run(run())


async def opened(editor: Editor, root: Path, **more: Any) -> str:
    return (await editor.agent.new_session(cwd=str(root), mcp_servers=more.pop("servers", []), **more)).session_id


async def prompted(editor: Editor, session: str, text: str = "fix calc.py") -> str:
    answer = await editor.agent.prompt(session_id=session, prompt=[acp.text_block(text)])
    return answer.stop_reason


def calls(editor: Editor, session: str = "") -> dict[str, list[Any]]:
    """The updates of each call, by its id."""
    found: dict[str, list[Any]] = {}
    for at, update in editor.updates:
        if update.session_update in ("tool_call", "tool_call_update") and session in ("", at):
            found.setdefault(update.tool_call_id, []).append(update)
    return found


def statuses(updates: list[Any]) -> list[str]:
    return [update.status for update in updates]


def is_running(words: str) -> bool:
    listed = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return any(words in line and not line.startswith("Z") for line in listed.splitlines())


def test_it_introduces_itself(tmp_path: Path) -> None:
    async def scenario(editor: Editor) -> None:
        for asked in (acp.PROTOCOL_VERSION, 0, 99):
            info = Info(name="test", version="1")
            told = await editor.agent.initialize(protocol_version=asked, client_info=info)
            assert told.protocol_version == 1
            assert told.agent_info.name == "callwright"
            assert told.agent_capabilities.load_session
            assert told.agent_capabilities.mcp_capabilities.http
            assert not told.agent_capabilities.prompt_capabilities.image

    drive(Place(tmp_path), scenario)


def test_a_task_is_told_while_it_is_worked_on(tmp_path: Path) -> None:
    place = Place(tmp_path, CALC, FIX)

    async def scenario(editor: Editor) -> None:
        session = await opened(editor, place.root)
        assert await prompted(editor, session) == "end_turn"
        assert editor.said("agent_thought_chunk") == "Look first."
        assert "I look." in editor.said()
        assert "TASK_COMPLETE" not in editor.said()
        assert not editor.of("user_message_chunk"), "the editor has shown it already"
        look, edit, write = calls(editor).values()
        assert [look[0].kind, edit[0].kind, write[0].kind] == ["read", "edit", "edit"]
        for updates in (look, edit, write):
            assert updates[0].session_update == "tool_call"
            assert {update.session_update for update in updates[1:]} == {"tool_call_update"}
            assert statuses(updates) == ["in_progress", "completed"]
        assert "return a - b" in look[-1].content[0].content.text
        shown = edit[-1].content[-1]
        assert (shown.type, shown.path) == ("diff", str(place.root / "calc.py"))
        assert (shown.old_text, shown.new_text) == (CALC["calc.py"], CALC["calc.py"].replace("-", "+"))
        made = write[-1].content[-1]
        assert (made.path, made.old_text, made.new_text) == (str(place.root / "doc/new.md"), None, "New.\n")
        assert [place.path for place in edit[-1].locations + write[-1].locations] == [shown.path, made.path]
        assert editor.asked == []

    drive(place, scenario)
    assert (place.root / "calc.py").read_text() == CALC["calc.py"].replace("-", "+")


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        ("once", True),
        ("deny", False),
        ("cancelled", False),
        ("no such option", False),
        (acp.RequestError.internal_error(), False),
    ],
    ids=["once", "deny", "cancelled", "another", "error"],
)
def test_the_editor_is_asked_and_its_answer_holds(tmp_path: Path, answer: Any, allowed: bool) -> None:
    call = tool("write_file", path=".env", content="KEY=2\n")
    place = Place(tmp_path, {".env": "KEY=1\n"}, [[call], [DONE]])

    async def scenario(editor: Editor) -> None:
        editor.answers = [answer]
        session = await opened(editor, place.root)
        assert await prompted(editor, session, "what is in it?") == "end_turn"
        ((at, asked, options),) = editor.asked
        ((number, updates),) = calls(editor).items()
        assert (at, asked.tool_call_id) == (session, number)
        assert updates[0].status == "pending"
        assert updates[-1].status == ("completed" if allowed else "failed")
        assert [option.kind for option in options] == ["allow_once", "reject_once"]
        why, change = asked.content
        assert ".env is protected" in why.content.text
        assert "risk: high" in why.content.text
        assert (change.path, change.old_text, change.new_text) == (str(place.root / ".env"), "KEY=1\n", "KEY=2\n")

    drive(place, scenario)
    assert (place.root / ".env").read_text() == ("KEY=2\n" if allowed else "KEY=1\n")


def test_what_is_always_allowed_is_said_and_not_asked_again(tmp_path: Path) -> None:
    run = tool("run_terminal_command", command="deploy fast")
    place = Place(tmp_path, {}, [[run], ["So it is. ", run], [DONE]])

    async def scenario(editor: Editor) -> None:
        editor.answers = ["always"]
        session = await opened(editor, place.root)
        await prompted(editor, session, "what does it say?")
        ((_, asked, options),) = editor.asked
        assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
        assert "deploy fast" in asked.content[0].content.text
        assert "“Always allow” covers, in this session: " in asked.content[0].content.text
        assert len(calls(editor)) == 2

    drive(place, scenario)


def test_a_critical_command_cannot_be_allowed_always(tmp_path: Path) -> None:
    place = Place(tmp_path, {}, [[PUSH], [DONE]], approve="all")

    async def scenario(editor: Editor) -> None:
        editor.answers = ["always"]
        session = await opened(editor, place.root)
        assert await prompted(editor, session, "what is it?") == "end_turn"
        ((_, asked, options),) = editor.asked
        assert [option.kind for option in options] == ["allow_once", "reject_once"]
        assert "risk: critical" in asked.content[0].content.text
        assert [updates[-1].status for updates in calls(editor).values()] == ["failed"]

    drive(place, scenario)


@pytest.mark.parametrize("moment", ["a command runs", "a person is asked", "the model speaks"])
def test_a_cancelled_prompt_says_so_and_ends_what_runs(tmp_path: Path, moment: str) -> None:
    first: dict[str, list[Any]] = {
        "a command runs": [SLEEP],
        "a person is asked": [PUSH],
        "the model speaks": ["I am going to tell a long story. ", {"pause": 3600}],
    }
    place = Place(tmp_path, {}, [first[moment]], approve="commands")

    async def scenario(editor: Editor) -> None:
        editor.answers = ["wait", "deny"]
        session = await opened(editor, place.root)
        prompt = asyncio.ensure_future(prompted(editor, session, "what is it?"))
        ready = {
            "a command runs": lambda: is_running("sleep 987.5"),
            "a person is asked": lambda: editor.asked,
            "the model speaks": lambda: "story" in editor.said(),
        }[moment]
        while not ready():
            await asyncio.sleep(0.05)
        await editor.agent.cancel(session_id=session)
        assert await prompt == "cancelled"
        assert not is_running("sleep 987.5")
        assert all(updates[-1].status == "failed" for updates in calls(editor).values())

    drive(place, scenario)


def test_a_session_goes_on_after_a_cancelled_prompt(tmp_path: Path) -> None:
    place = Place(tmp_path, {}, [["I am waiting for something. ", {"pause": 3600}]])
    script = {"when": {"user": "again"}, "steps": [{"text": "I am here."}]}
    file = place.base / "script.jsonl"
    file.write_text(json.dumps(script) + "\n" + file.read_text())

    async def scenario(editor: Editor) -> None:
        session = await opened(editor, place.root)
        prompt = asyncio.ensure_future(prompted(editor, session, "what is it?"))
        await editor.until(lambda: "waiting" in editor.said())
        with pytest.raises(acp.RequestError, match="already running"):
            await prompted(editor, session, "again")
        await editor.agent.cancel(session_id=session)
        assert await prompt == "cancelled"
        assert await prompted(editor, session, "again") == "end_turn"
        assert editor.said().endswith("I am here.")

    drive(place, scenario)


def shapes(editor: Editor, session: str) -> list[Any]:
    """What an editor shows in the end: words joined, each call as it was last said to be."""
    shown: list[Any] = []
    places: dict[str, int] = {}
    for at, update in editor.updates:
        kind = update.session_update
        if at != session:
            continue
        if kind in ("tool_call", "tool_call_update"):
            if update.tool_call_id not in places:
                places[update.tool_call_id] = len(shown)
                shown.append({})
            told = update.model_dump(exclude_none=True, exclude={"session_update", "field_meta"})
            shown[places[update.tool_call_id]] |= told
        elif shown and isinstance(shown[-1], list) and shown[-1][0] == kind:
            shown[-1][1] += update.content.text
        else:
            shown.append([kind, update.content.text])
    return shown


def test_a_session_that_is_loaded_looks_as_it_did(tmp_path: Path) -> None:
    answers = [*FIX[:2], [tool("write_file", path=".env", content="KEY=2\n")], [DONE]]
    place = Place(tmp_path, {**CALC, ".env": "KEY=1\n"}, answers)
    seen: list[Any] = []

    async def first(editor: Editor) -> None:
        editor.answers = ["deny"]
        session = await opened(editor, place.root)
        await prompted(editor, session)
        seen.append(session)
        seen.extend(shapes(editor, session))

    async def second(editor: Editor) -> None:
        session = seen[0]
        wanted = [["user_message_chunk", "fix calc.py"], *seen[1:]]
        for _ in range(2):  # also while it is open
            editor.updates.clear()
            await editor.agent.load_session(cwd=str(place.root), session_id=session, mcp_servers=[])
            assert shapes(editor, session) == wanted
        with pytest.raises(acp.RequestError, match="no session"):
            await editor.agent.load_session(cwd=str(place.root), session_id="1231-abcdef", mcp_servers=[])
        with pytest.raises(acp.RequestError, match="sessionId"):
            await editor.agent.load_session(cwd=str(place.root), session_id="", mcp_servers=[])
        other = place.project("other")
        await editor.agent.close_session(session_id=session)
        with pytest.raises(acp.RequestError, match="open it in that folder"):
            await editor.agent.load_session(cwd=str(other), session_id=session, mcp_servers=[])

    drive(place, first)
    drive(place, second)


def test_sessions_in_two_folders_work_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path, {"name.txt": "one"}, [[tool("read_file", path="name.txt"), PUSH], [DONE]])
    other = place.project("other", {"name.txt": "two"})

    async def scenario(editor: Editor) -> None:
        editor.answers = ["wait", "wait"]
        sessions = [await opened(editor, folder) for folder in (place.root, other)]
        prompts = [asyncio.ensure_future(prompted(editor, session, "what is it?")) for session in sessions]
        await editor.until(lambda: len(editor.asked) == 2)
        for session, text in zip(sessions, ("one", "two"), strict=True):
            look = next(iter(calls(editor, session).values()))
            assert text in look[-1].content[0].content.text
        await editor.agent.cancel(session_id=sessions[0])
        assert await prompts[0] == "cancelled"
        assert not prompts[1].done()
        await editor.agent.cancel(session_id=sessions[1])
        assert await prompts[1] == "cancelled"

    drive(place, scenario)


def test_a_limit_ends_the_prompt_and_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path, {"a": "1"}, [[tool("list_files", path=".")], [tool("read_file", path="a")], [DONE]])

    async def scenario(editor: Editor) -> None:
        session = await opened(editor, place.root)
        assert await prompted(editor, session, "what is it?") == "max_turn_requests"
        assert "Stopped: the model was called 2 times, which is the limit for one task." in editor.said()

    drive(place, scenario, "--max-iterations", "2")


def test_a_backend_that_is_down_is_an_error_and_the_session_lives(tmp_path: Path) -> None:
    place = Place(tmp_path, {}, [[{"error": {"status": 503, "message": "out of order"}}]])

    async def scenario(editor: Editor) -> None:
        session = await opened(editor, place.root)
        for _ in range(2):
            with pytest.raises(acp.RequestError, match="out of order"):
                await prompted(editor, session, "what is it?")

    drive(place, scenario)


def test_the_servers_of_the_editor_are_used(tmp_path: Path) -> None:
    place = Place(tmp_path, {}, [[tool("My-server__add", a=2, b=3)], [DONE]])
    env = [EnvVariable(name="MINE", value="1")]
    command, *args = warm.command(SERVER)
    server = McpServerStdio(name="My server!", command=command, args=args, env=env)

    async def scenario(editor: Editor) -> None:
        editor.answers = ["once"]
        session = await opened(editor, place.root, servers=[server])
        assert await prompted(editor, session, "what is it?") == "end_turn"
        (updates,) = calls(editor).values()
        assert updates[-1].content[0].content.text == "5"
        assert len(editor.asked) == 1
        with pytest.raises(acp.RequestError, match="MCP server"):
            await opened(editor, place.root, servers=[server.model_copy(update={"command": ""})])

    drive(place, scenario)


def test_the_servers_of_a_project_are_a_question_of_their_own(tmp_path: Path) -> None:
    command, *args = warm.command(SERVER)
    servers = {"mcpServers": {"theirs": {"command": command, "args": args}}}
    place = Place(tmp_path, {".mcp.json": json.dumps(servers)}, [[DONE]])

    async def scenario(editor: Editor) -> None:
        editor.answers = ["deny", "once"]
        for status in ("failed", "completed"):
            editor.updates.clear()
            session = await opened(editor, place.root)
            await prompted(editor, session, "what is it?")
            _, asked, _ = editor.asked[-1]
            assert SERVER in asked.content[0].content.text
            ((number, updates),) = calls(editor).items()
            assert number == asked.tool_call_id
            assert statuses(updates) == ["pending", status]

    drive(place, scenario)


class Wire:
    """An agent that is told lines, one after the other."""

    def __init__(self, place: Place, stdin: TextIO, stdout: TextIO) -> None:
        self.place = place
        self.stdin = stdin
        self.stdout = stdout
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.stdin.write(json.dumps(message) + "\n")
        self.stdin.flush()
        while (answer := json.loads(self.stdout.readline())).get("id") != self._number:
            pass
        return dict(answer)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    place = Place(tmp_path_factory.mktemp("wire"))
    command = [sys.executable, "-m", "callwright", "agent", "--acp", "--config", place.settings()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        (place.base / "stderr").open("w") as stderr,
        subprocess.Popen(command, **pipes, stderr=stderr, env=place.environment, cwd=place.base) as process,  # type: ignore[call-overload]
    ):
        yield Wire(place, process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/nothing", {}, -32601),
        ("session/new", {}, -32602),
        ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/\0", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, -32603),
        ("session/new", {"cwd": "/", "mcpServers": []}, -32603),
        ("session/new", {"cwd": "{root}", "mcpServers": [{"type": "sse", "name": "x", "url": "http://x"}]}, -32602),
        ("session/new", {"cwd": "{root}", "mcpServers": [7]}, -32602),
        ("session/prompt", {"sessionId": "x", "prompt": []}, -32602),
        ("session/prompt", {"sessionId": ["x"]}, -32602),
        ("session/prompt", {"sessionId": "{session}", "prompt": [{"type": "image", "data": ""}]}, -32602),
        ("session/prompt", {"sessionId": "{session}", "prompt": "words"}, -32602),
        ("session/close", {"sessionId": 5}, -32602),
    ],
)
def test_a_wrong_request_is_an_error_that_says_why(wire: Wire, method: str, params: dict[str, Any], code: int) -> None:
    wire.stdin.write("this is no message\n")
    wire.stdin.flush()
    assert json.loads(wire.stdout.readline())["error"]["code"] == -32700
    root = str(wire.place.root)
    session = wire.ask("session/new", {"cwd": root, "mcpServers": []})["result"]["sessionId"]
    text = json.dumps(params).replace("{root}", root).replace("{session}", session)
    error = wire.ask(method, json.loads(text))["error"]
    assert error["code"] == code
    assert error["message"]
    assert wire.ask("initialize", {"protocolVersion": 1})["result"]["protocolVersion"] == 1
    assert (wire.place.base / "stderr").read_text() == ""


@pytest.mark.parametrize("how", ["closes its end", "is killed", "stops to read"])
def test_when_the_editor_vanishes_everything_ends(tmp_path: Path, how: str) -> None:
    """A process of its own holds the other end of the pipes, so that it can be killed."""
    flood = [{"text": "words " * 20, "repeat": 20_000}]
    place = Place(tmp_path, {}, [flood if how == "stops to read" else [SLEEP]], approve="commands")
    agent = [sys.executable, "-m", "callwright", "agent", "--acp", "--config", place.settings()]
    with subprocess.Popen(
        [sys.executable, "-c", MIDDLE, str(place.root), *agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=place.environment,
        cwd=place.base,
        text=True,
    ) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        child = int(editor.stdout.readline())
        assert editor.stdout.readline() == "working\n"
        wait_for(lambda: how == "stops to read" or is_running("sleep 987.5"))
        if how == "is killed":
            editor.kill()
        else:
            editor.stdin.write("\n")
            editor.stdin.flush()
        try:
            wait_for(lambda: not is_alive(child))
            assert not is_running("sleep 987.5")
        finally:
            editor.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(ready: Callable[[], bool], seconds: float = 20) -> None:
    async def wait() -> None:
        async with asyncio.timeout(seconds):
            while not ready():
                await asyncio.sleep(0.05)

    asyncio.run(wait())


@pytest.mark.parametrize("end", ["input", "output"])
def test_without_pipes_it_is_said_what_this_is_for(tmp_path: Path, end: str) -> None:
    place = Place(tmp_path)
    words = ["callwright", "agent", "--acp", "--config", place.settings()]
    (reading, other), (unread, writing) = os.pipe(), os.pipe()
    with (
        os.fdopen(reading),
        os.fdopen(other),
        os.fdopen(unread),
        os.fdopen(writing),
        Path(os.devnull).open("r+") as nothing,
        (place.base / "stderr").open("w") as stderr,
    ):
        pipes = {"input": reading, "output": writing} | {end: nothing.fileno()}
        files = (pipes["input"], pipes["output"], stderr.fileno())
        assert warm.start(words, cwd=place.base, environment=place.environment, files=files).wait() == 2
    said = (place.base / "stderr").read_text()
    assert f"standard {end} is not a pipe" in said
    assert "Traceback" not in said
