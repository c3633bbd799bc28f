"""The service around the turns: who may come in, how much, whether it is ready, how it stops and changes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.hosted import Hosted, ask, backend, model, opened
from tests.integration.turns import said, spoken, text
from tests.integration.wires import CHAT, WIRES, Wire
from tests.support.served import Served
from tests.support.upstream import HANG, Step, Upstream, answer, closed_port, whole

KEYS = """
[[keys]]
name = "team"
key = "key-of-the-team"

[[keys]]
name = "guest"
key = "key-of-a-guest"
models = ["other"]
"""
TEAM = {"authorization": "Bearer key-of-the-team"}
OBSIDIAN = "app://obsidian.md"


def tables(upstream: Upstream) -> str:
    return backend("main", upstream.url) + model("m", "main") + model("other", "main")


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something holds that no event tells."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


# ── browsers ─────────────────────────────────────────────────────────────────────────────────────


def test_a_preflight_needs_no_key_and_errors_carry_the_origin(tmp_path: Path, upstream: Upstream) -> None:
    wanted = "authorization, content-type, x-stainless-lang, x-stainless-retry-count"
    asks = {
        "origin": OBSIDIAN,
        "access-control-request-method": "POST",
        "access-control-request-headers": wanted,
    }
    upstream.play(spoken("Hello."))
    with Hosted(tmp_path, KEYS + tables(upstream)) as gateway:
        for wire in WIRES.values():
            preflight = ask(gateway.url, wire.path, None, asks, "OPTIONS")
            assert preflight.status == 204
            assert preflight.headers["access-control-allow-origin"] == OBSIDIAN
            assert preflight.headers["access-control-allow-headers"] == wanted
            for headers, status in (({}, 401), (TEAM, 200)):
                body = wire.body("m", stream=True)
                reply = ask(gateway.url, wire.path, body, {"origin": OBSIDIAN, **headers})
                assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, OBSIDIAN)
        strange = ask(gateway.url, CHAT.path, None, {**asks, "origin": "https://example.com"}, "OPTIONS")
        assert strange.status == 403
        assert "access-control-allow-origin" not in strange.headers


# ── keys and limits ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_keys_open_and_close_in_the_wires_own_shape(
    tmp_path: Path, upstream: Upstream, wire: Wire, stream: bool
) -> None:
    upstream.play(spoken("Hello."))
    with Hosted(tmp_path, KEYS + tables(upstream)) as gateway:
        body = wire.body("m", stream=stream)
        for headers, status, name in (
            ({}, 401, "missing_api_key"),
            ({"x-api-key": "wrong-key"}, 401, "invalid_api_key"),
            ({"x-api-key": "key-of-a-guest"}, 403, "model_not_allowed"),
        ):
            reply = ask(gateway.url, wire.path, body, headers)
            message, told = wire.problem(reply.json)
            kind = {401: "authentication_error", 403: "permission_error"}[status]
            assert (reply.status, told) == (status, {"messages": kind, "ollama": ""}.get(wire.name, name))
            assert message.startswith("The request cannot be served: ")
        assert not upstream.requests
        assert ask(gateway.url, wire.path, body, TEAM).status == 200


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_who_asks_too_often_is_told_when_to_come_back(tmp_path: Path, upstream: Upstream, wire: Wire) -> None:
    upstream.play(spoken("Hello."))
    limited = '[[keys]]\nname = "one"\nkey = "key-number-one"\nrequests_per_minute = 2\n'
    with Hosted(tmp_path, limited + tables(upstream)) as gateway:
        replies = [gateway.post(wire.path, wire.body("m", stream=True), x_api_key="key-number-one") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert 50 <= int(replies[2].headers["retry-after"]) <= 60
    assert "2 requests per minute" in wire.problem(replies[2].json)[0]


def test_more_turns_than_there_is_room_for_are_told_to_come_back(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(answer(*text("Wait"), HANG), spoken("Here."))
    with Hosted(tmp_path, tables(upstream), "streams = 1") as gateway:
        with opened(gateway.url, CHAT.path, CHAT.body("m", stream=True)) as first:
            first.until(b"Wait")
            reply = gateway.post(CHAT.path, CHAT.body("m", stream=False))
            assert (reply.status, reply.headers["retry-after"]) == (429, "1")
        eventually(lambda: gateway.streams == 0)
        assert gateway.post(CHAT.path, CHAT.body("m", stream=False)).status == 200


def test_tokens_are_limited_by_what_was_used(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("Hello."))
    limited = '[[keys]]\nname = "one"\nkey = "key-number-one"\ntokens_per_minute = 10\n'
    with Hosted(tmp_path, limited + tables(upstream)) as gateway:
        replies = [gateway.post(CHAT.path, CHAT.body("m", stream=True), x_api_key="key-number-one") for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 429]


# ── readiness, usage, metrics ────────────────────────────────────────────────────────────────────


def test_it_is_ready_while_one_backend_is(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(whole(b'{"data": []}'))
    gone = f"http://127.0.0.1:{closed_port()}"
    with Hosted(tmp_path, tables(upstream) + backend("gone", gone)) as gateway:
        reply = gateway.get("/readyz")
        assert (reply.status, reply.json["backends"]) == (200, {"main": True, "gone": False})
        gateway.write(backend("gone", gone))
        assert gateway.reload()
        reply = gateway.get("/readyz")
        assert (reply.status, reply.json["backends"]) == (503, {"gone": False})
        assert gone not in reply.body.decode(), "anybody may ask"
        assert gateway.get("/healthz").status == 200


def test_what_was_used_is_added_up(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("Hello."))
    with Hosted(tmp_path, KEYS + tables(upstream)) as gateway:
        for wire in WIRES.values():
            assert ask(gateway.url, wire.path, wire.body("m", stream=True), TEAM).status == 200
        (row,) = gateway.get("/v1/usage?by=key,model", x_api_key="key-of-the-team").json["data"]
        assert (row["key"], row["model"], row["requests"]) == ("team", "m", 4)
        assert row["prompt_tokens"] > 0
        page = gateway.get("/metrics", x_api_key="key-of-the-team").body.decode()
        for wire_name in ("openai_chat", "openai_responses", "anthropic", "ollama"):
            assert f'callwright_requests_total{{client="openai",model="m",status="200",wire="{wire_name}"}} 1.0' in page


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_stream_may_finish_when_the_service_stops(tmp_path: Path, upstream: Upstream, wire: Wire) -> None:
    stopping = threading.Event()
    upstream.play(said(*text("Let me finish."), stopping, 0.1, *text(" Done.")))
    with (
        Hosted(tmp_path, tables(upstream), "shutdown_seconds = 10") as gateway,
        opened(gateway.url, wire.path, wire.body("m", stream=True)) as stream,
    ):
        stream.until(b"Let me")
        gateway.stop()
        stopping.set()
        assert wire.streamed(stream.rest()).said == ("Let me finish. Done.", "", (), "stop")


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_stream_that_outlasts_the_service_is_told_so(tmp_path: Path, upstream: Upstream, wire: Wire) -> None:
    upstream.play(answer(*text("Let me go on."), HANG))
    with (
        Hosted(tmp_path, tables(upstream), "shutdown_seconds = 0.2") as gateway,
        opened(gateway.url, wire.path, wire.body("m", stream=True)) as stream,
    ):
        stream.until(b"Let me")
        gateway.stop()
        heard = wire.streamed(stream.rest())
    assert heard.error.startswith("The gateway failed: it is shutting down")
    assert heard.finish == ""
    assert upstream.requests[-1].wait_left()


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_whole_answer_that_outlasts_the_service_is_an_error(tmp_path: Path, upstream: Upstream, wire: Wire) -> None:
    upstream.play(answer(*text("Let me go on."), 0.2, HANG))
    with Hosted(tmp_path, tables(upstream), "shutdown_seconds = 0.2") as gateway:
        connection = gateway.send(wire.path, wire.body("m", stream=False))
        eventually(lambda: upstream.requests and upstream.requests[-1].sent)
        gateway.stop()
        with connection:
            came = b""
            while piece := connection.recv(65536):
                came += piece
    assert came.startswith(b"HTTP/1.1 503 ")
    assert b"it is shutting down" in came


# ── reloading ────────────────────────────────────────────────────────────────────────────────────


def test_a_hang_up_changes_the_configuration_under_a_stream(tmp_path: Path, upstream: Upstream) -> None:
    changed = threading.Event()
    slow: list[Step] = [*text("Before. "), changed, *text("After.")]
    upstream.play(spoken("Hello."))
    with Served(tmp_path, tables(upstream)) as gateway:
        upstream.play(said(*slow))
        with opened(gateway.url, CHAT.path, CHAT.body("m", stream=True)) as stream:
            stream.until(b"Before")
            upstream.play(spoken("Hello."))
            _change(gateway, KEYS + backend("main", upstream.url) + model("new", "main"))
            assert ask(gateway.url, CHAT.path, CHAT.body("new", stream=True)).status == 401
            assert ask(gateway.url, CHAT.path, CHAT.body("m", stream=True), TEAM).status == 404
            assert ask(gateway.url, CHAT.path, CHAT.body("new", stream=True), TEAM).status == 200
            changed.set()
            assert CHAT.streamed(stream.rest()).said == ("Before. After.", "", (), "stop")


def test_a_configuration_that_is_wrong_is_refused_and_the_old_one_stays(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("Hello."))
    with Served(tmp_path, tables(upstream)) as gateway:
        _change(gateway, backend("main", upstream.url) + model("m", "nowhere"), "configuration not reloaded")
        assert "nowhere" in gateway.log.read_text(encoding="utf-8")
        assert ask(gateway.url, CHAT.path, CHAT.body("other", stream=True)).status == 200


def _change(gateway: Served, configuration: str, sign: str = "configuration reloaded") -> None:
    """Write another configuration, and make the gateway read it now."""
    assert gateway._process
    gateway._file.write_text(f"[server]\nport = {gateway.port}\n{configuration}", encoding="utf-8")
    gateway._process.send_signal(signal.SIGHUP)
    eventually(lambda: sign in gateway.log.read_text(encoding="utf-8"))
