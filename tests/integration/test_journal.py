"""The journal over HTTP: every wire, both databases, secrets, databases that fail, reloads, the end, and replay."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callwright.config import load_config
from callwright.engine import Engine
from callwright.events import TextDelta
from callwright.gateway import journal_writer
from callwright.gateway.replay import build_replay_backends, replay_turn
from callwright.store import database
from callwright.store.journal_records import JournalEntry, JournalQuery
from callwright.store.open import open_journal_search
from callwright.store.settings import StoreSettings
from callwright.turn import collect
from tests.integration.hosted import Hosted, ask, backend, model
from tests.integration.turns import CALL_BEGUN, CALL_ENDED, delta, said, spoken, text
from tests.integration.wires import CHAT, RESPONSES, WIRES, Wire
from tests.support.served import Served
from tests.support.upstream import RESET, Script, Upstream, answer, closed_port, refused, sse

ROOT = Path(__file__).resolve().parents[2]
CALLING = said(*text("Let me look."), *CALL_BEGUN, *CALL_ENDED, reason="tool_calls")
IN_TEXT = spoken('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": "3"}}</tool_call>')
EACH_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def store(address: str, level: str = "full", more: str = "") -> str:
    return f'[store]\njournal = "{level}"\naddress = "{address}"\n{more}\n'


def tables(upstream: Upstream, **settings: Any) -> str:
    return backend("main", upstream.url) + model("m", "main", **settings)


def rows(address: str, **wanted: Any) -> list[JournalEntry]:
    """What is in the journal, oldest first."""

    async def main() -> list[JournalEntry]:
        async with open_journal_search(StoreSettings(address=address), Path("/nowhere")) as find:
            return (await find(JournalQuery(**wanted)))[::-1]

    return asyncio.run(main())


def again(entry: JournalEntry, configuration: Path) -> JournalEntry:
    """The row that a turn makes today."""
    config = load_config(configuration, {})
    names = (each.name for each in config.backends)
    return asyncio.run(replay_turn(entry, Engine(config.models, build_replay_backends(entry, names), config.tools)))


def outcome(entry: JournalEntry) -> Any:
    """What the client got, without ids that are made up."""
    turns = [collect(events) for events in entry.client_got]
    return entry.status, [
        (each.text, each.reasoning, [(call.name, call.arguments) for call in each.tool_calls], each.finish_reason)
        for each in turns
    ]


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────


@EACH_WIRE
def test_a_turn_on_any_wire_is_kept_whole_and_comes_out_the_same_again(
    tmp_path: Path, upstream: Upstream, address: str, wire: Wire
) -> None:
    upstream.play(CALLING, IN_TEXT)
    bodies = [wire.body("m", stream=stream) for stream in (True, False)]
    with Hosted(tmp_path, store(address) + tables(upstream, dialect="hermes")) as gateway:
        for number, body in enumerate(bodies):
            assert gateway.post(wire.path, body, x_request_id=f"r{number}", user_agent="test/1").status == 200
    kept = rows(address)
    assert [row.request_id for row in kept] == ["r0", "r1"]
    for row, body in zip(kept, bodies, strict=True):
        assert json.loads(row.client_sent) == body
        assert (row.status, row.model, row.headers["user-agent"]) == (200, "m", "test/1")
        (asked,) = row.asked
        assert (asked.backend, asked.strategy, asked.retry_reason) == ("main", "native", "")
        assert asked.request is not None
        assert [tool.name for tool in asked.request.tools] == ["get_weather", "ping"]
        (turn,) = (collect(events) for events in row.client_got)
        assert [(call.name, json.loads(call.arguments)) for call in turn.tool_calls] == [
            ("get_weather", {"city": "Paris", "days": 3})
        ]
        assert outcome(again(row, gateway.file)) == outcome(row)
    assert collect(kept[0].asked[0].events).text == "Let me look."
    assert [repair.kind for repair in kept[1].repairs] == ["coerced_type"]
    assert kept[1].repairs[0].detail


def test_every_attempt_is_kept_with_its_reason_and_counted(tmp_path: Path, upstream: Upstream, address: str) -> None:
    upstream.play(said(), spoken("no call"), CALLING)
    second = backend("gone", f"http://127.0.0.1:{closed_port()}")
    settings = second + backend("main", upstream.url) + model("m", ["gone", "main"]) + "[tools]\nmax_retries = 3\n"
    with Hosted(tmp_path, store(address) + settings) as gateway:
        body = CHAT.body("m", stream=True) | {"tool_choice": "required"}
        assert gateway.post(CHAT.path, body).status == 200
        page = gateway.get("/metrics").body.decode()
    (row,) = rows(address)
    assert [asked.backend for asked in row.asked][:2] == ["gone", "main"]
    assert row.asked[0].failure is not None
    assert row.asked[0].failure.kind == "unavailable"
    assert [asked.retry_reason for asked in row.asked if asked.retry_reason] == row.record["retries"]
    assert set(row.record["retry_reasons"]) == {"other_backend", "missing_call"}
    assert 'callwright_retries_total{reason="missing_call",strategy="native"}' in page
    assert not row.asked[-1].retry_reason
    assert outcome(again(row, gateway.file)) == outcome(row)


PARSED = 'Failed to parse input at pos 7: <tool_call>{"name": "ping", "arguments": {}}</tool_call>'
FAILURES: dict[str, tuple[Script, int, str]] = {
    "refused": (refused(400, "temperature is odd"), 400, "backend"),
    "broken off": (answer(*text("Half of it"), RESET), 200, "backend"),
    "reset": ([RESET], 503, "backend"),
    "a call in an error": (refused(500, PARSED), 200, ""),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_kept_with_whose_it_was_and_fails_the_same_again(
    tmp_path: Path, upstream: Upstream, name: str
) -> None:
    script, status, fault = FAILURES[name]
    upstream.play(script)
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with Hosted(tmp_path, store(address) + tables(upstream, dialect="hermes")) as gateway:
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == status
    (row,) = rows(address)
    assert row.record.get("fault", "") == fault
    assert bool(row.problem) == bool(fault)
    now = again(row, gateway.file)
    assert (outcome(now), now.problem) == (outcome(row), row.problem)


@pytest.mark.parametrize("body", [b"{", b'{"model": "nobody", "messages": []}', b"\xff\xfe", b"[" * 5000])
def test_a_request_that_cannot_be_served_is_kept_too(tmp_path: Path, upstream: Upstream, body: bytes) -> None:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with Hosted(tmp_path, store(address) + tables(upstream)) as gateway:
        assert gateway.post(CHAT.path, body).status in (400, 404)
    (row,) = rows(address, failed=True)
    assert (row.record["fault"], row.asked, row.client_sent) == ("client", (), body.decode("utf-8", "replace"))
    assert row.problem


def test_a_conversation_that_the_client_only_names_is_kept_with_the_turn(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("The first answer."), spoken("The second."))
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with Hosted(tmp_path, store(address) + tables(upstream)) as gateway:
        first = gateway.post(RESPONSES.path, {"model": "m", "input": "One?"}).json
        body = {"model": "m", "input": "Two?", "previous_response_id": first["id"]}
        assert gateway.post(RESPONSES.path, body).status == 200
    row = rows(address)[1]
    assert "The first answer." in repr(row.recalled)
    now = again(row, gateway.file)
    assert outcome(now) == outcome(row)
    assert now.asked[0].request == row.asked[0].request


def test_a_change_of_the_settings_shows_in_the_replay(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(IN_TEXT)
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with Hosted(tmp_path, store(address) + tables(upstream, dialect="hermes")) as gateway:
        gateway.post(CHAT.path, CHAT.body("m", stream=True))
        gateway.write(tables(upstream, dialect="kimi_k2"))
    (row,) = rows(address)
    assert [turn[3] for turn in outcome(row)[1]] == ["tool_calls"]
    assert [turn[3] for turn in outcome(again(row, gateway.file))[1]] == ["stop"]


@pytest.mark.parametrize("level", ["off", "meta"])
def test_words_are_kept_only_when_everything_is(tmp_path: Path, upstream: Upstream, level: str) -> None:
    upstream.play(spoken("Secretly happy."))
    path = tmp_path / "store.db"
    with Hosted(tmp_path, store(f"sqlite:///{path}", level) + tables(upstream)) as gateway:
        gateway.post(CHAT.path, CHAT.body("m", stream=True))
    assert len(rows(f"sqlite:///{path}")) == (level == "meta"), "without a journal only the usage is counted there"
    raw = b"".join(each.read_bytes() for each in tmp_path.glob("store.db*"))
    assert not [word for word in (b"Secretly", b"weather") if word in raw]


def test_what_databases_need_is_not_loaded_while_nothing_is_kept() -> None:
    code = (
        "import sys, callwright.cli.serve, callwright.app, callwright.gateway.mountable_app\n"
        "print({'sqlalchemy', 'callwright.agent.session'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────

KEYS = '[[keys]]\nname = "team"\nkey = "the-key-of-the-team"\n'
PLACES = st.sampled_from(
    ["agent", "id", "system", "user", "arguments", "result", "schema", "option", "said", "reasoning", "call", "error"]
)
SECRETS = st.sampled_from(
    [
        "the-key-of-the-team",
        "the-key-of-the-backend",
        "the-header-of-the-backend",
        "sk-proj-0123456789abcdef",
        "4111 1111 1111 1111",
        "line\nsecret\nline",
        'say "cheese" now',
    ]
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hosted, Upstream, Path]]:
    """A gateway with keys and expressions, and the folder of its store."""
    folder = tmp_path_factory.mktemp("guarded")
    hidden = r"""redact = ['\d{4} \d{4} \d{4} \d{4}', 'line\n\w+\nline', 'say "\w+" now']"""
    with Upstream() as server:
        secret = {"key": "the-key-of-the-backend", "headers": {"x-more": "the-header-of-the-backend"}}
        where = store(f"sqlite:///{folder / 'store.db'}", more=hidden)
        with Hosted(folder, KEYS + where + backend("main", server.url, **secret) + model("m", "main")) as gateway:
            yield gateway, server, folder


def planted(secret: str, places: set[str]) -> tuple[dict[str, Any], dict[str, str], Script]:
    """A request, its headers and the answer to it, with a secret in these places."""

    def at(place: str) -> str:
        return f"a {secret} b" if place in places else "nothing"

    schema = {"type": "object", "properties": {"a": {"type": "string", "description": at("schema")}}}
    call = {"name": "f", "arguments": json.dumps({"api_key": "k" * 9, "a": at("arguments")})}
    body = {
        "model": "m",
        "stream": True,
        "user": at("option"),
        "messages": [
            {"role": "system", "content": at("system")},
            {"role": "user", "content": at("user")},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": "c", "content": at("result")},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
    }
    headers = {"x-api-key": "the-key-of-the-team", "cookie": at("user").replace("\n", " "), "user-agent": "x"}
    if secret.isprintable():
        headers |= {"user-agent": at("agent"), "x-request-id": secret.replace(" ", "-") if "id" in places else "r"}
    if "error" in places:
        return body, headers, refused(400, at("error"))
    pieces = [
        delta(reasoning_content=at("reasoning")[start : start + 3]) for start in range(0, len(at("reasoning")), 3)
    ]
    pieces += [sse(at("said")[start : start + 3]) for start in range(0, len(at("said")), 3)]
    arguments = json.dumps({"a": at("call")})
    first = {"index": 0, "id": "d", "type": "function", "function": {"name": "f", "arguments": ""}}
    pieces += [delta(tool_calls=[first])]
    pieces += [
        delta(tool_calls=[{"index": 0, "function": {"arguments": arguments[start : start + 3]}}])
        for start in range(0, len(arguments), 3)
    ]
    return body, headers, said(*pieces, reason="tool_calls")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(secret=SECRETS, places=st.sets(PLACES, min_size=1))
def test_law_no_secret_reaches_a_row_wherever_it_stands(
    guarded: tuple[Hosted, Upstream, Path], secret: str, places: set[str]
) -> None:
    gateway, upstream, folder = guarded
    body, headers, script = planted(secret, places)
    upstream.play(script)
    before = written(gateway)
    reply = ask(gateway.url, CHAT.path, body, headers)
    assert reply.status == (400 if "error" in places else 200), reply.body
    while written(gateway) == before:
        time.sleep(0.005)
    (row,) = rows(f"sqlite:///{folder / 'store.db'}", limit=1)
    shapes = {secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[3:-3]}
    raw = b"".join(each.read_bytes() for each in folder.glob("store.db*")).decode("utf-8", "replace")
    assert not [shape for shape in shapes if shape in raw or shape in repr(row)]
    assert "k" * 9 not in raw
    assert "the-key-of" not in raw
    assert row.asked, "the rest is there"
    assert row.asked[0].request is not None


def written(gateway: Hosted) -> float:
    return (
        gateway.service.metrics.registry.get_sample_value("callwright_journal_entries_total", {"outcome": "written"})
        or 0.0
    )


# ── databases that fail ──────────────────────────────────────────────────────────────────────────


def test_a_locked_database_holds_up_no_turn_and_the_rows_come_later(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = ("busy_timeout = 600000", *database._WRITE_PRAGMAS[1:])
    monkeypatch.setattr(database, "_WRITE_PRAGMAS", patient)
    upstream.play(spoken("Hello."))
    path = tmp_path / "store.db"
    with Hosted(tmp_path, store(f"sqlite:///{path}") + tables(upstream)) as gateway:
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
        while not written(gateway):
            time.sleep(0.01)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin immediate")
        for _ in range(5):  # one that waited for the lock would never be answered
            assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
        assert written(gateway) == 1
        other.execute("rollback")
        other.close()
    assert len(rows(f"sqlite:///{path}")) == 6


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_database_that_is_not_there_holds_up_neither_turns_nor_the_end(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    upstream.play(spoken("Hello."))
    (tmp_path / "file").touch()
    nowhere = {
        "sqlite": f"sqlite:///{tmp_path}/file/store.db",
        "postgresql": f"postgresql://127.0.0.1:{closed_port()}/x",
    }
    monkeypatch.setattr(journal_writer, "_DRAIN_SECONDS", 0.5)
    with Hosted(tmp_path, store(nowhere[kind]) + tables(upstream)) as gateway:
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
    dropped = gateway.service.metrics.registry.get_sample_value(
        "callwright_journal_entries_total", {"outcome": "dropped"}
    )
    assert dropped == 1


# ── reloads and the end ──────────────────────────────────────────────────────────────────────────


def test_a_reload_changes_the_journal_and_loses_nothing(tmp_path: Path, upstream: Upstream, address: str) -> None:
    upstream.play(spoken("Hello."))
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with Hosted(tmp_path, tables(upstream)) as gateway:
        for number, level in enumerate(["", store(address), store(address), store(other), store(address, "off")]):
            gateway.write(level + tables(upstream))
            assert gateway.reload()
            gateway.post(CHAT.path, CHAT.body("m", stream=True), x_request_id=f"r{number}")
        gateway.write(store("nowhere") + tables(upstream))
        with pytest.raises(Exception, match="is not a database address"):
            load_config(gateway.file, {})
        assert not gateway.reload()
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
    assert [row.request_id for row in rows(address)] == ["r1", "r2"]
    assert [row.request_id for row in rows(other)] == ["r3"]


def test_told_to_stop_the_service_writes_every_row_first(tmp_path: Path, upstream: Upstream, address: str) -> None:
    upstream.play(spoken("Hello."))
    with Served(tmp_path, store(address) + tables(upstream)) as gateway:
        for number in range(30):
            headers = {"x-request-id": f"r{number}"}
            assert ask(gateway.url, CHAT.path, CHAT.body("m", stream=bool(number % 2)), headers).status == 200
            if number == 10:
                assert gateway._process is not None
                gateway._process.send_signal(signal.SIGHUP)
    assert [row.request_id for row in rows(address)] == [f"r{number}" for number in range(30)]
    assert "Traceback" not in gateway.log.read_text(encoding="utf-8")


def test_without_an_address_the_journal_is_in_the_state_folder(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.play(spoken("Hello."))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Served(tmp_path, '[store]\njournal = "full"\n' + tables(upstream)) as gateway:
        assert ask(gateway.url, CHAT.path, CHAT.body("m", stream=True)).status == 200
    path = tmp_path / "state" / "callwright" / "callwright.db"
    (row,) = rows(f"sqlite:///{path}")
    assert row.client_got[0][0] == TextDelta("Hello.")
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == ["callwright.db"], "the write-ahead log was folded in"
