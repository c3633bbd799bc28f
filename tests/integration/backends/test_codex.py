"""Codex without Codex: a program of ours in its place that does what the real one does rarely, or should never do.

tests/integration/test_codex.py has the real one.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.backends.codex import CodexBackend, binary, thread
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Event, TextDelta
from callwright.model import Message, Request, Text
from tests.support.sampling import FULL

PROGRAM = """#!{python}
import json, os, sys, time
if "debug" in sys.argv:
    print(json.dumps({{"models": [{{"slug": "a", "visibility": "list", "tool_mode": "code", "context_window": 9}}]}}))
    sys.exit()
mode = open(os.path.join(os.path.dirname(__file__), "mode")).read()
def say(**message): print(json.dumps(message), flush=True)
if mode == "strict":
    print("WARNING: proceeding, even though", file=sys.stderr)
    sys.exit("Error: unknown configuration field `x`")
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {{}}
    thread = params.get("threadId")
    about = {{"threadId": thread, "turnId": "u"}}
    if method == "initialize" and mode == "rude":
        say(id=number, error={{"code": -32600, "message": "no"}})
    elif method == "initialize":
        print("Reading the manual ...", flush=True)
        say(id=number, result={{"userAgent": "callwright/0.1.0 (x)" if mode == "old" else "callwright/0.166.0 (x)"}})
    elif method == "account/read":
        say(id=number, result={{"account": None, "requiresOpenaiAuth": False}})
    elif method == "thread/start":
        say(id=number, result={{"thread": {{"id": f"t{{number}}"}}}})
    elif method == "thread/inject_items":
        say(id=number, **({{"error": {{"message": "too odd"}}}} if mode == "picky" else {{"result": {{}}}}))
        echo = {{"type": "message", "role": "assistant", "content": [{{"text": "an earlier answer"}}]}}
        say(method="rawResponseItem/completed", params={{**about, "turnId": "auto-compact-0", "item": echo}})
    elif method == "turn/start":
        say(method="turn/started", params={{"threadId": thread, "turn": {{"id": "u"}}}})
        say(id=number, result={{"turn": {{"id": "u"}}}})
        say(method="warning", params={{"threadId": thread, "message": "Model metadata not found"}})
        say(method="item/agentMessage/delta", params={{"threadId": "other", "turnId": "u", "delta": "not ours"}})
        say(method="item/commandExecution/requestApproval", id=f"q {{thread}}", params=about)
        if mode == "expired":
            error = {{"message": "old key", "codexErrorInfo": "unauthorized"}}
            say(method="turn/completed", params={{"threadId": thread, "turn": {{"id": "u", "error": error}}}})
        if mode == "long":
            print("x" * 3_000_000, flush=True)
        if mode == "flood":
            for _ in range(200):
                say(method="item/agentMessage/delta", params={{**about, "delta": "x" * 1000}})
    elif "error" in message and mode not in ("flood", "long"):
        about["threadId"] = number.split()[1]
        say(method="item/agentMessage/delta", params={{**about, "delta": "declined: " + message["error"]["message"]}})
        say(method="rawResponse/completed", params=about)
"""


Story = Callable[[CodexBackend], Awaitable[None]]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Tell a story with a backend whose program is in a mode."""
    program = tmp_path / "codex"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)

    def told(mode: str, story: Story, **changes: Any) -> None:
        (tmp_path / "mode").write_text(mode)
        given = {"url": "http://127.0.0.1:9/v1", "path": str(program), "retries": 0, **changes}
        settings = BackendSettings(name="c", kind="codex", **given)

        async def whole() -> None:
            backend = CodexBackend(settings)
            try:
                await story(backend)
            finally:
                await backend.close()

        asyncio.run(whole())

    return told


async def said(backend: CodexBackend) -> str:
    request = Request("m", (Message("user", (Text("hi"),)),))
    events: list[Event] = []
    async for batch in backend.stream_response(request, {}):
        events += batch
        await asyncio.sleep(0.3)
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def fails(run: Callable[..., None], mode: str, words: str) -> None:
    async def story(backend: CodexBackend) -> None:
        with pytest.raises(BackendError, match=words):
            await said(backend)

    run(mode, story)


def test_noise_is_dropped_others_turns_are_not_heard_and_approvals_are_declined(
    run: Callable[..., None],
) -> None:
    async def story(backend: CodexBackend) -> None:
        assert await said(backend) == "declined: this client does not answer requests"

    run("", story)


def test_another_version_is_warned_of(run: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    async def story(backend: CodexBackend) -> None:
        assert await said(backend)

    with caplog.at_level(logging.WARNING):
        run("old", story)
    assert "is not codex 0.166.0, the supported version: callwright/0.1.0 (x)" in caplog.text


def test_without_an_address_the_models_are_those_of_its_catalogue(run: Callable[..., None], tmp_path: Path) -> None:
    async def story(backend: CodexBackend) -> None:
        (model,) = await backend.list_models()
        assert (model.name, model.context, model.tools, model.vision, model.reasoning) == ("a", 9, True, False, False)
        assert '"tool_mode":"direct"' in (backend.child.folder / "catalog.json").read_text()

    run("", story, url="", home=str(tmp_path / "home"))


def test_a_configuration_that_it_does_not_take_is_told_in_its_words(run: Callable[..., None]) -> None:
    fails(run, "strict", r"exited with code 1: Error: unknown configuration field `x`")


def test_a_program_that_will_not_greet_is_given_up(run: Callable[..., None]) -> None:
    fails(run, "rude", r"exited with code 0")


@pytest.mark.parametrize(
    ("url", "code", "words"), [("", "login_needed", "codex login"), ("http://h/v1", "", "old key")]
)
def test_an_account_that_has_expired_is_to_be_logged_in_again_and_a_key_is_wrong(
    run: Callable[..., None], tmp_path: Path, url: str, code: str, words: str
) -> None:
    async def story(backend: CodexBackend) -> None:
        with pytest.raises(BackendError, match=words) as failed:
            await said(backend)
        assert (failed.value.code, failed.value.status) == (code, 401)

    run("expired", story, url=url, home=str(tmp_path / "home"))


def test_what_it_refuses_is_told_as_a_refusal(run: Callable[..., None]) -> None:
    fails(run, "picky", r"the backend 'c' \(http://127.0.0.1:9/v1\) refused: too odd")


def test_a_line_without_an_end_ends_the_child_and_not_us(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callwright.backends.codex.MAX_LINE_BYTES", 100_000)
    fails(run, "long", "lost its process")


def test_an_answer_that_nobody_reads_is_bounded(run: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "_MAX_PENDING_BYTES", 50_000)

    fails(run, "flood", "was not read")


def test_only_so_many_turns_are_written_at_once(run: Callable[..., None]) -> None:
    async def story(backend: CodexBackend) -> None:
        first, second = (backend.stream_response(Request("m", (Message("user", (Text("hi"),)),)), {}) for _ in range(2))
        await anext(first)
        waiting = asyncio.ensure_future(anext(second))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await first.aclose()
        assert await waiting
        await second.aclose()

    run("flood", story, slots=1)


def test_many_turns_at_once_all_come_to_their_end(run: Callable[..., None]) -> None:
    async def story(backend: CodexBackend) -> None:
        texts = await asyncio.gather(*(said(backend) for _ in range(40 if FULL else 15)))
        assert set(texts) == {"declined: this client does not answer requests"}

    run("", story, slots=5)


# ── where it is ──────────────────────────────────────────────────────────────────────────────────

NATIVE = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"


def placed(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o755)
    return file


def test_the_program_is_found_by_its_path_ours_in_node_modules_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "INSTALL_FOLDER", tmp_path / "ours")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert binary.find_binary("") is None
    alone = placed(tmp_path / "bin" / "codex")
    assert binary.find_binary("") == alone
    alone.unlink()
    launcher = placed(tmp_path / "lib" / "node_modules" / "@openai" / "codex" / "bin" / "codex.js")
    alone.symlink_to(launcher)
    nested = placed(launcher.parents[1] / "node_modules" / NATIVE)
    assert binary.find_binary("") == nested
    beside = placed(tmp_path / "lib" / "node_modules" / NATIVE)
    assert binary.find_binary("") == beside
    project = placed(tmp_path / "node_modules" / NATIVE)
    assert binary.find_binary("") == project
    ours = placed(binary.get_install_path(tmp_path / "ours"))
    assert binary.find_binary("") == ours
    assert binary.find_binary(str(project)) == project
    assert binary.find_binary(str(tmp_path / "nowhere")) is None


def test_without_the_program_whoever_asks_is_told_how_to_get_it(tmp_path: Path) -> None:
    async def story() -> None:
        backend = CodexBackend(BackendSettings(name="c", kind="codex", path=str(tmp_path / "nowhere"), retries=0))
        with pytest.raises(BackendError, match="run `callwright codex install`, or set `path`"):
            await said(backend)
        with pytest.raises(BackendError, match="does not support /embeddings"):
            await backend.forward_request("/embeddings", b"{}")
        await backend.close()

    asyncio.run(story())


def test_a_program_that_is_another_one_is_named(tmp_path: Path) -> None:
    other = shutil.which("true")
    assert other

    async def story() -> None:
        backend = CodexBackend(
            BackendSettings(name="c", kind="codex", path=other, url="http://127.0.0.1:9/v1", retries=0)
        )
        with pytest.raises(BackendError, match="does not list its models: is it codex"):
            await said(backend)
        await backend.close()

    asyncio.run(story())
