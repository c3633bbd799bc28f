"""The gateway on a real socket: streams, signals, reloads, and a gentle end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import RequestError
from callwright.gateway.app import build_app
from callwright.gateway.server import GatewayServer, open_listener
from callwright.gateway.service import GatewayService
from tests.unit.gateway.stubs import SERVED, TEAM, StubEngine, echo, state

Talk = Callable[[int, GatewayServer, GatewayService], Awaitable[None]]


def serve(talk: Talk, *, load: Any = None, turn: Any = echo, watch: tuple[Path, ...] = (), **server: Any) -> None:
    """Run a gateway on a free port while `talk` talks to it, then stop it."""

    async def main() -> None:
        listener = open_listener("127.0.0.1", 0)
        gateway: GatewayServer
        services: list[GatewayService] = []
        up = asyncio.Event()

        def started(service: GatewayService) -> None:
            services.append(service)
            up.set()

        def assemble(service: GatewayService) -> Any:
            return build_app(service, SERVED, lambda wire: _bound(turn, service))

        gateway = GatewayServer(load or (lambda: state(**server)), assemble, watch=watch)
        running = asyncio.create_task(gateway.serve(listener, on_started=started))
        await up.wait()
        try:
            await talk(listener.getsockname()[1], gateway, services[0])
        finally:
            gateway.stop()
            await running

    asyncio.run(main())


def _bound(turn: Any, service: GatewayService) -> Any:
    async def app(scope, receive, send) -> None:
        scope["service"] = service
        await turn(scope, receive, send)

    return app


async def request(port: int, text: str, *, until_closed: bool = True) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.replace("\n", "\r\n").encode())
    await writer.drain()
    answer = await (reader.read() if until_closed else reader.read(65536))
    writer.close()
    return answer


async def opened(port: int, sign: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which an answer has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(POST.replace("\n", "\r\n").encode())
    await reader.readuntil(sign)
    return reader, writer


GET_MODELS = "GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n\n"
POST = "POST /v1/chat/completions HTTP/1.1\nHost: localhost\nConnection: close\nContent-Length: 2\n\n{}"


async def drip(scope, receive, send) -> None:
    """A stream that never ends by itself; cancelled, it says so."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            await send({"type": "http.response.body", "body": b"tick ", "more_body": True})
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        last = b"[stopping]" if scope["service"].is_cancelling else b"[?]"
        await send({"type": "http.response.body", "body": last})
        raise


def test_a_request_is_served_over_a_socket() -> None:
    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        answer = await request(port, GET_MODELS)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"x-request-id: req_" in answer
        assert b"server:" not in answer.lower()
        assert b'"owned_by":"callwright"' in answer

    serve(talk)


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent() -> None:
    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        answer = await request(
            port,
            "POST /v1/messages HTTP/1.1\nHost: localhost\nContent-Length: 999999999\n\nonly a little",
            until_closed=False,
        )
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"request_too_large" in answer

    serve(talk, body_bytes=1000)


def test_streams_that_outlast_the_shutdown_are_told_before_they_are_closed() -> None:
    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        reader, writer = await opened(port, b"tick")
        begun = time.monotonic()
        gateway.stop()
        assert b"[stopping]" in await reader.read()
        assert time.monotonic() - begun > 0.2
        writer.close()

    serve(talk, turn=drip, shutdown_seconds=0.4)


def test_a_stream_that_ends_in_time_is_not_cut() -> None:
    async def short(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.5)
        await send({"type": "http.response.body", "body": b"whole"})

    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        reader, writer = await opened(port, b"200 OK")
        gateway.stop()
        assert b"whole" in await reader.read()
        writer.close()

    serve(talk, turn=short, shutdown_seconds=60)


def test_a_reload_holds_for_new_requests_while_a_stream_goes_on() -> None:
    engines = [StubEngine(), StubEngine()]
    states = iter([state(engine=engines[0]), state(TEAM, engine=engines[1])])

    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST.replace("\n", "\r\n").encode())
        assert b"200" in await reader.readuntil(b"tick")
        assert gateway.reload()
        assert (await request(port, GET_MODELS)).startswith(b"HTTP/1.1 401")
        assert engines[0].closed == 0
        assert b"tick" in await reader.readuntil(b"tick")
        service.cancel_turns()
        await reader.read()
        writer.close()
        while not engines[0].closed:
            await asyncio.sleep(0.01)
        assert engines[0].closed == 1

    serve(talk, load=lambda: next(states), turn=drip)


@pytest.mark.parametrize("error", [RequestError("unknown key `portt`"), OSError("gone"), ValueError("not TOML")])
def test_a_bad_configuration_is_refused_with_its_reason_and_the_old_one_stays(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    loads = 0

    def load() -> Any:
        nonlocal loads
        loads += 1
        if loads > 1:
            raise error
        return state()

    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        assert not gateway.reload()
        assert str(error) in caplog.text
        assert (await request(port, GET_MODELS)).startswith(b"HTTP/1.1 200")

    with caplog.at_level(logging.ERROR):
        serve(talk, load=load)


def test_a_changed_file_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.gateway.server._WATCH_SECONDS", 0.02)
    file = tmp_path / "callwright.toml"
    file.write_text("open")

    def load() -> Any:
        return state(*((TEAM,) if file.read_text() == "closed" else ()))

    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        for content, status in (("closed", b"401"), ("open", b"200")):
            beside = tmp_path / "new"
            beside.write_text(content)
            beside.replace(file)
            async with asyncio.timeout(60):
                while not (await request(port, GET_MODELS)).startswith(b"HTTP/1.1 " + status):
                    await asyncio.sleep(0.02)
        file.unlink()
        await asyncio.sleep(0.1)
        assert (await request(port, GET_MODELS)).startswith(b"HTTP/1.1 200")

    serve(talk, load=load, watch=(file,))


def test_what_cannot_change_while_running_is_said(caplog: pytest.LogCaptureFixture) -> None:
    ports = iter([1, 2])

    async def talk(port: int, gateway: GatewayServer, service: GatewayService) -> None:
        assert gateway.reload()

    with caplog.at_level(logging.WARNING):
        serve(talk, load=lambda: state(port=next(ports)))
    assert "when the service is restarted" in caplog.text


def test_a_taken_address_is_an_error_before_anything_starts() -> None:
    with open_listener("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        open_listener("127.0.0.1", taken.getsockname()[1])


PROGRAM = """
import sys, time
started_at = time.perf_counter()
from callwright.gateway.app import build_app
from callwright.gateway.server import GatewayServer, open_listener, run_gateway
from tests.unit.gateway.stubs import SERVED, StubEngine, TEAM, echo, state

loads = []

def load():
    loads.append(1)
    return state(*((TEAM,) if len(loads) % 2 == 0 else ()))

listener = open_listener("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
run_gateway(GatewayServer(load, lambda service: build_app(service, SERVED, lambda wire: echo)), listener)
print("ended well", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs POSIX signals")
@pytest.mark.parametrize("last", [signal.SIGTERM, signal.SIGINT])
def test_signals_reload_and_end_the_process_well(last: signal.Signals) -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        wait_for(port, b"200")
        process.send_signal(signal.SIGHUP)
        wait_for(port, b"401")
        process.send_signal(last)
        assert process.stdout.read() == "ended well\n"
        assert process.wait(60) == 0


def wait_for(port: int, status: bytes) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(GET_MODELS.replace("\n", "\r\n").encode())
            if connection.recv(100).startswith(b"HTTP/1.1 " + status):
                return
    pytest.fail(f"no answer with {status!r}")
