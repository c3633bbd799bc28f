"""Composition: what `callwright.app` builds from a configuration, without the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Message

from callwright import collect
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, CallDecided
from callwright.agent.settings import AgentSettings
from callwright.app import (
    Config,
    build_engine,
    create_app,
    load_config,
    open_agent,
    open_engine,
    open_session_archive,
)
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, ConfigError, MisuseError, RequestError
from callwright.events import Event
from callwright.model import Message as ChatMessage
from callwright.model import Request, Text
from callwright.store.journal_records import JournalEntry, JournalQuery
from callwright.store.open import open_journal_search
from callwright.store.settings import StoreSettings


def write_script(folder: Path, *turns: list[dict[str, Any]], **more: Any) -> BackendSettings:
    """A backend that plays these turns, one after the other."""
    lines = [
        {"when": {"results_from": number}, "steps": steps} | more for number, steps in reversed([*enumerate(turns)])
    ]
    file = folder / "script.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return BackendSettings(name="script", kind="scripted", script=str(file))


def configure(folder: Path, *turns: list[dict[str, Any]], journal: Any = "off", iterations: int = 5) -> Config:
    backends = (write_script(folder, *turns),)
    return Config(
        backends=backends,
        store=StoreSettings(journal=journal, address=f"sqlite:///{folder}/store.db"),
        agent=AgentSettings(sandbox="never", max_iterations=iterations),
    )


def ask(words: str = "Hello", model: str = "scripted") -> Request:
    return Request(model, (ChatMessage("user", (Text(words),)),))


async def search(config: Config, folder: Path) -> list[JournalEntry]:
    """The rows of the journal, oldest first."""
    async with open_journal_search(config.store, folder) as find:
        return (await find(JournalQuery()))[::-1]


# ── the configuration ────────────────────────────────────────────────────────────────────────────


def test_settings_come_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[server]\nhost = "127.0.0.1"\nport = 1\n[store]\njournal = "meta"\n')
    config = load_config(
        str(file),
        settings={"store": {"journal": "full"}},
        environment={"CALLWRIGHT_PORT": "2", "CALLWRIGHT_JOURNAL": "off"},
    )
    assert (config.server.host, config.server.port, config.store.journal) == ("127.0.0.1", 2, "full")


def test_a_mistake_in_the_configuration_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-profile"):
        load_config(settings={"models": [{"name": "m", "profile": "no-such-profile"}]}, environment={})


def test_the_environment_of_the_process_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLWRIGHT_PORT", "4711")
    assert load_config().server.port == 4711
    assert load_config(environment={}).server.port != 4711


# ── the engine ───────────────────────────────────────────────────────────────────────────────────


def test_an_engine_runs_a_turn_and_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configure(tmp_path, [{"text": "Hi."}])

    async def run() -> str:
        async with open_engine(config, environment={}) as engine:
            closed: list[bool] = []
            close = engine.close

            async def note() -> None:
                closed.append(True)
                await close()

            monkeypatch.setattr(engine, "close", note)
            events: list[Event] = []
            async for batch in engine.stream_turn(ask(model=engine.models[0].name)):
                events += batch
        assert closed == [True]
        return collect(events).text

    assert asyncio.run(run()) == "Hi."
    assert not list(tmp_path.glob("store.db*"))


def test_an_engine_without_models_says_why(tmp_path: Path) -> None:
    async def run(config: Config) -> None:
        async with open_engine(config, environment={}):
            raise AssertionError("it has no models")

    with pytest.raises(BackendError, match="the backends have no models"):
        asyncio.run(run(Config()))


def test_a_model_that_there_is_not_is_a_mistake_of_the_request(tmp_path: Path) -> None:
    engine = build_engine(configure(tmp_path, [{"text": "Hi."}]))
    with pytest.raises(RequestError, match="nobody"):
        engine.stream_turn(ask(model="nobody"))


# ── the journal of turns that a program runs ─────────────────────────────────────────────────────


def record(config: Config, folder: Path, *requests: Request) -> list[JournalEntry]:
    """Run turns; the rows that they leave."""

    async def run() -> list[JournalEntry]:
        async with open_engine(config, client="my-program", environment={}) as engine:
            for request in requests:
                async for _ in engine.stream_turn(request):
                    pass
        return await search(config, folder)

    return asyncio.run(run())


def test_turns_are_recorded_as_the_configuration_says(tmp_path: Path) -> None:
    config = configure(tmp_path, [{"text": "Hi."}], journal="full")
    first, second = record(config, tmp_path, ask("One"), ask("Two"))
    assert (first.client, first.model, first.wire, first.status) == ("my-program", "scripted", "openai_chat", 200)
    assert json.loads(first.client_sent)["messages"] == [{"role": "user", "content": "One"}]
    assert json.loads(second.client_sent)["messages"] == [{"role": "user", "content": "Two"}]
    assert collect(first.client_got[0]).text == "Hi."
    assert [attempt.backend for attempt in first.asked] == ["script"]
    assert first.record["seconds"] >= first.record["first_byte_seconds"] >= 0
    assert first.request_id != second.request_id


def test_a_row_of_the_level_meta_has_no_words(tmp_path: Path) -> None:
    (row,) = record(configure(tmp_path, [{"text": "Hi."}], journal="meta"), tmp_path, ask("Secret"))
    assert (row.status, row.client_sent, row.client_got) == (200, "", ())


def test_a_turn_that_fails_leaves_a_row_with_the_reason(tmp_path: Path) -> None:
    config = configure(tmp_path, [{"error": {"status": 503, "message": "too hot"}}], journal="full")
    with pytest.raises(BackendError):
        record(config, tmp_path, ask())
    (row,) = asyncio.run(search(config, tmp_path))
    assert row.status == 503
    assert row.record["fault"] == "backend"
    assert "too hot" in row.problem


def test_a_turn_that_is_stopped_leaves_a_row_that_says_so(tmp_path: Path) -> None:
    config = configure(tmp_path, [{"text": "and so on ", "repeat": 50}], journal="full")

    async def run() -> list[JournalEntry]:
        async with open_engine(config, environment={}) as engine, aclosing(engine.stream_turn(ask())) as events:
            await anext(events)
        return await search(config, tmp_path)

    (row,) = asyncio.run(run())
    assert (row.status, row.record["error"]) == (499, "client_disconnected")


def test_secrets_of_the_configuration_are_masked_in_rows(tmp_path: Path) -> None:
    config = Config(
        backends=(
            write_script(tmp_path, [{"text": "Hi."}]),
            BackendSettings(name="other", url="http://127.0.0.1:9", key="sk-very-secret-key"),
        ),
        store=StoreSettings(journal="full", address=f"sqlite:///{tmp_path}/store.db"),
    )
    (row,) = record(config, tmp_path, ask("my key is sk-very-secret-key"))
    assert "sk-very-secret-key" not in row.client_sent


# ── the gateway ──────────────────────────────────────────────────────────────────────────────────


async def send(app: ASGIApp, path: str, body: Any = None) -> tuple[int, Any]:
    """One request, as a server hands it to an application."""
    given = iter([{"type": "http.request", "body": json.dumps(body).encode() if body else b""}])
    sent: list[Message] = []

    async def receive() -> Message:
        for message in given:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    async def keep(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST" if body else "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost")],
    }
    await app(scope, receive, keep)
    answer = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(answer)


@asynccontextmanager
async def run_lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """The lifespan protocol of a server."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan", "state": {}}, to_app.get, from_app.put))  # type: ignore[arg-type]
    to_app.put_nowait({"type": "lifespan.startup"})
    assert await from_app.get() == {"type": "lifespan.startup.complete"}
    yield
    to_app.put_nowait({"type": "lifespan.shutdown"})
    assert await from_app.get() == {"type": "lifespan.shutdown.complete"}
    await task


CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]}


def test_the_gateway_runs_under_a_server_s_lifespan_and_again_after_it(tmp_path: Path) -> None:
    app = create_app(configure(tmp_path, [{"text": "Hi."}]), environment={})

    async def run() -> None:
        for _ in range(2):
            async with run_lifespan(app):
                status, answer = await send(app, "/v1/chat/completions", CHAT)
                assert (status, answer["choices"][0]["message"]["content"]) == (200, "Hi.")

    asyncio.run(run())


@pytest.mark.parametrize("prefix", ["/llm", "/v1", "/a/b"])
def test_a_mounted_gateway_serves_its_paths_below_the_mount(tmp_path: Path, prefix: str) -> None:
    gateway = create_app(configure(tmp_path, [{"text": "Hi."}], journal="full"), environment={})
    app = Starlette(routes=[Mount(prefix, gateway)], lifespan=gateway.lifespan)

    async def run() -> None:
        async with run_lifespan(app):
            status, answer = await send(app, f"{prefix}/v1/chat/completions", CHAT)
            assert (status, answer["choices"][0]["message"]["content"]) == (200, "Hi.")
            status, answer = await send(app, f"{prefix}/v1/models")
            assert (status, [model["id"] for model in answer["data"]]) == (200, ["scripted"])
            assert (await send(app, f"{prefix}/health"))[0] == 200
            status, answer = await send(app, f"{prefix}/nowhere")
            assert (status, answer["error"]["code"]) == (404, "unknown_path")

    asyncio.run(run())
    assert (tmp_path / "store.db").exists()  # its journal ran, and was closed with it


def test_a_gateway_whose_lifespan_does_not_run_says_what_to_do(tmp_path: Path) -> None:
    gateway = create_app(configure(tmp_path, [{"text": "Hi."}]), environment={})
    with pytest.raises(MisuseError, match="pass its `lifespan`"):
        asyncio.run(send(Starlette(routes=[Mount("/llm", gateway)]), "/llm/v1/models"))


def test_one_gateway_cannot_run_twice_at_once(tmp_path: Path) -> None:
    gateway = create_app(configure(tmp_path, [{"text": "Hi."}]), environment={})

    async def run() -> None:
        async with gateway.lifespan(), gateway.lifespan():
            raise AssertionError("it runs twice")

    with pytest.raises(MisuseError, match="already"):
        asyncio.run(run())


# ── the agent ────────────────────────────────────────────────────────────────────────────────────


def write(path: str) -> dict[str, Any]:
    return {"call": {"name": "write_file", "arguments": {"path": path, "content": "x\n"}}}


DONE = [{"text": "It is done. [TASK_COMPLETE]"}]


def open_place(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder to work in, and the environment of somebody who has nothing else."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder, {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}


def test_a_program_runs_a_task_and_undoes_what_it_changed(tmp_path: Path) -> None:
    folder, environment = open_place(tmp_path)
    config = configure(tmp_path, [write("a.txt")], DONE, journal="full")

    async def run() -> None:
        async with open_agent(config, folder, environment=environment) as session:
            assert (await session.run("write it")).reason == "done"
            assert (folder / "a.txt").read_text() == "x\n"
            assert [file.path for file in await session.review_changes()] == ["a.txt"]
            await session.undo_changes()
            assert not (folder / "a.txt").exists()
        async with open_session_archive(config, environment=environment) as archive:
            (row,) = await archive.list_sessions()
        assert (row.id, row.state) == (session.id, "idle")
        async with open_agent(config, folder, session=session.id, environment=environment) as again:
            assert again.id == session.id
        assert [row.client for row in await search(config, tmp_path)] == ["agent", "agent"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("reply", "verdict", "exists"),
    [
        (None, "deny", False),
        (ApprovalReply(verdict="deny"), "deny", False),
        (ApprovalReply(verdict="once"), "allow", True),
        (ApprovalReply(verdict="once", command="rm -r /"), "deny", False),
    ],
)
def test_what_is_asked_is_answered_by_the_program_and_otherwise_denied(
    tmp_path: Path, reply: ApprovalReply | None, verdict: str, exists: bool
) -> None:
    folder, environment = open_place(tmp_path)
    config = configure(tmp_path, [write(".env")], iterations=1)
    asked: list[str] = []

    def answer(request: ApprovalRequested) -> ApprovalReply:
        asked.append(request.subject)
        assert reply is not None
        return reply

    async def run() -> None:
        given = answer if reply else None
        async with asyncio.timeout(30), open_agent(config, folder, answer=given, environment=environment) as session:
            await session.run("write it")
            decided = [each.event for each in session.events if isinstance(each.event, CallDecided)]
        assert [each.verdict for each in decided] == [verdict]

    asyncio.run(run())
    assert (folder / ".env").exists() is exists
    assert bool(asked) is (reply is not None)
