"""The whole gateway inside the test's own process: real sockets, its own thread and loop, and everything in reach.

    with Hosted(folder, backend("main", upstream.url) + model("m", "main")) as gateway:
        reply = gateway.post("/v1/chat/completions", {"model": "m", …})

It is put together as `callwright serve` does it, from a configuration file; only signals and the log are left out.
`tests/support/served.py` has the same as a process of its own.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from callwright.app import build_gateway_state, create_server, load_config
from callwright.gateway.server import open_listener
from callwright.gateway.service import GatewayService, GatewayState
from tests.support.clock import ClockLoop, pass_time

T = TypeVar("T")
SECONDS = 60.0
"""More than any answer takes; a test that waits as long has failed."""


@dataclass(frozen=True)
class Reply:
    """An answer that was read to its end."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(url: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, method: str = "") -> Reply:
    """One request on a connection of its own; a body that is not bytes is sent as JSON."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"content-type": "application/json", **(headers or {})}
    try:
        connection.request(method or ("GET" if data is None else "POST"), path, data, sent)
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


@contextmanager
def opened(url: str, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Iterator[Incoming]:
    """The same for an answer that is to be read piece by piece."""
    host, port = url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=SECONDS)) as connection:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **(headers or {})})
        with connection.getresponse() as response:
            yield Incoming(response)


class Incoming:
    """An answer on its way."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.body = b""
        """All that was read of it."""

    def until(self, sign: bytes) -> None:
        """Read until something has come."""
        while sign not in self.body:
            piece = self._response.read1(65536)
            assert piece, f"the answer ended without {sign!r}: {self.body[-500:]!r}"
            self.body += piece

    def rest(self) -> bytes:
        """Read to the end; all of the body."""
        self.body += self._response.read()
        return self.body


def backend(name: str, url: str, **settings: Any) -> str:
    """A `[[backends]]` table, for a server that speaks chat completions unless `kind` says otherwise. It fails at once
    and is never left alone, unless a test wants that."""
    address = url if settings.get("kind") in ("anthropic", "ollama") else f"{url}/v1"
    values = {"name": name, "url": address, "retries": 0, "breaker_failures": 1_000_000, **settings}
    return _table("[[backends]]", values)


def model(name: str, backend: str | list[str], **settings: Any) -> str:
    """A `[[models]]` table."""
    return _table("[[models]]", {"name": name, "backend": backend, **settings})


def _table(header: str, values: Mapping[str, Any]) -> str:
    return "\n".join([header, *(f"{name} = {_toml(value)}" for name, value in values.items()), ""])


def _toml(value: Any) -> str:
    """A value as TOML: as JSON writes it, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


class Hosted:
    """The gateway; `configuration` is TOML without its `[server]` table, `server` the lines of that. With `clock` its
    time passes when a test says so: see `tests/support/clock.py`."""

    def __init__(self, folder: Path, configuration: str, server: str = "", *, clock: bool = False) -> None:
        self.file = folder / "callwright.toml"
        self.write(configuration, server)
        self._listener = open_listener("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop_factory = ClockLoop if clock else uvicorn.Config("", log_config=None).get_loop_factory()
        self._gateway = create_server(self._load)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._up = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.service: GatewayService

    def write(self, configuration: str, server: str = "") -> None:
        """Change the configuration file; `reload` makes it count."""
        # What a test that failed leaves open should not be waited for.
        patience = "" if "shutdown_seconds" in server else "shutdown_seconds = 1"
        self.file.write_text(f"[server]\nport = 0\n{patience}\n{server}\n{configuration}", encoding="utf-8")

    def __enter__(self) -> Hosted:
        self._thread.start()
        assert self._up.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """As SIGTERM does; does not wait."""
        self._gateway.stop()

    def reload(self) -> bool:
        """As SIGHUP does."""
        return self.run(self._gateway.reload)

    def run(self, function: Callable[[], T]) -> T:
        """Call a function inside the gateway's loop."""

        async def called() -> T:
            return function()

        return self.wait(called())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something inside the gateway's loop, and wait for it."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def pass_time(self, *seconds: float) -> Future[None]:
        """Put its clock forward, once all that can happen now has happened, and so on; does not wait for that."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(pass_time(*seconds), self._loop)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        """Ask, and read the answer to its end. Underscores in the names of headers stand for hyphens."""
        return ask(self.url, path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, path: str, **headers: str) -> Reply:
        """The same without a body."""
        return ask(self.url, path, None, {name.replace("_", "-"): value for name, value in headers.items()})

    def connect(self) -> socket.socket:
        """A connection for who speaks HTTP by hand."""
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def send(self, path: str, body: Any, *headers: str) -> socket.socket:
        """A connection with a request on it whose answer nobody has read yet."""
        connection = self.connect()
        connection.sendall(raw(path, body, *headers))
        return connection

    @property
    def streams(self) -> float:
        """The gauge of turns in flight, as Prometheus reads it."""
        page = self.get("/metrics").body.decode()
        return float(next(line.split()[1] for line in page.splitlines() if line.startswith("callwright_active_turns ")))

    @property
    def tasks(self) -> int:
        """How many tasks there are in its loop."""
        return self.run(lambda: len(asyncio.all_tasks()))

    def _load(self) -> GatewayState:
        return build_gateway_state(load_config(self.file, environment={}))

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            self._loop = runner.get_loop()
            runner.run(self._gateway.serve(self._listener, on_started=self._started))

    def _started(self, service: GatewayService) -> None:
        self.service = service
        self._up.set()


def raw(path: str, body: Any, *headers: str) -> bytes:
    """A request as bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data
