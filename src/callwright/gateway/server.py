"""Runs the gateway: one uvicorn, stopped gently, reloaded without dropping a stream.

Told to stop (SIGTERM, SIGINT), it takes no new connections and lets turns finish for `shutdown_seconds`; those that
have not are cancelled, which makes each tell its client so before the connection closes. SIGHUP, or a change of a
watched file, loads a new state; one that cannot be loaded is refused with its reason, and the old one stays.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from callwright.errors import CallwrightError
from callwright.gateway.bridge_routes import list_bridges
from callwright.gateway.service import GatewayService, GatewayState
from callwright.redaction import Redactor

__all__ = ["GatewayServer", "open_listener", "run_gateway"]

log = logging.getLogger("callwright.server")

_CANCEL_SECONDS = 5
"""How long cancelled turns may take to tell their clients."""
_WATCH_SECONDS = 1.0
_GC_THRESHOLDS = (10_000, 20, 20)

StartupCallback = Callable[[GatewayService], None]
StateLoader = Callable[[], GatewayState]
"""Reads the configuration and opens its backends; called inside the running loop. Raises when it is wrong."""


def open_listener(host: str, port: int) -> socket.socket:
    """The socket to serve on; `OSError` when the address is taken. Port 0 finds a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=2048)
    # Connections inherit it. Without it asyncio's own loop, unlike uvloop, lets small answers wait for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def run_gateway(gateway: GatewayServer, listener: socket.socket, *, on_started: StartupCallback | None = None) -> None:
    """Serve until told to stop, on the fastest loop that there is. `started`: as for `Gateway.serve`."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", log_config=None).get_loop_factory()) as runner:
        runner.run(gateway.serve(listener, on_started=on_started))


class GatewayServer:
    """One service and the server around it."""

    def __init__(
        self,
        load: StateLoader,
        assemble: Callable[[GatewayService], ASGIApp],
        *,
        watch: Sequence[Path] = (),
        redactor: Redactor | None = None,
    ) -> None:
        self._load = load
        self._assemble = assemble
        self._watch = watch
        self._redactor = redactor or Redactor()
        self._server: _UvicornServer | None = None
        self._service: GatewayService | None = None

    async def serve(self, listener: socket.socket, *, on_started: StartupCallback | None = None) -> None:
        """Serve on this socket until told to stop. `started` is called when the first request can come."""
        service = self._service = GatewayService(self._load(), redactor=self._redactor)
        server = self._server = _UvicornServer(self._assemble(service), service, self.reload, on_started)
        watching = asyncio.create_task(self._watch_files())
        try:
            await server.serve([listener])
        finally:
            watching.cancel()
            await service.close()

    def stop(self) -> None:
        """As SIGTERM does."""
        if self._server is not None:
            self._server.should_exit = True

    def reload(self) -> bool:
        """As SIGHUP does; false when the new configuration was refused."""
        service = self._service
        if service is None:
            return False
        try:
            state = self._load()
        except (CallwrightError, OSError, ValueError) as error:
            log.error("the configuration was not reloaded; the old one stays: %s", error)  # noqa: TRY400 - no bug of ours
            return False
        old, new = service.state.server, state.server
        bridged, joins = list_bridges(service.state.engine), list_bridges(state.engine)
        service.replace_state(state)
        for bridge in bridged:
            bridge.retire()
        if joins and not bridged:
            log.warning("pages cannot connect to the new bridge until the service is started again")
        if (old.host, old.port, old.ledger) != (new.host, new.port, new.ledger):
            log.warning("host, port and ledger stay as they are until the service is started again")
        log.info("the configuration was reloaded")
        return True

    async def _watch_files(self) -> None:
        seen = _read_versions(self._watch)
        while self._watch:
            await asyncio.sleep(_WATCH_SECONDS)
            now = _read_versions(self._watch)
            if now != seen:
                seen = now
                self.reload()


class _UvicornServer(uvicorn.Server):
    """uvicorn, with our signals and our way of stopping."""

    def __init__(
        self,
        app: ASGIApp,
        service: GatewayService,
        reload: Callable[[], bool],
        started: StartupCallback | None,
    ) -> None:
        self._service = service
        self._reload = reload
        self._on_started = started
        self._in_terminal = os.isatty(0)
        self._shutdown_seconds = service.state.server.shutdown_seconds
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",  # at "debug" it logs what goes over WebSockets, pages' tokens too
                access_log=False,
                server_header=False,
                proxy_headers=False,
                # Loading it takes 40 ms, and only pages on a bridge need it.
                ws="websockets-sansio" if list_bridges(service.state.engine) else "none",
                lifespan="off",
                timeout_graceful_shutdown=math.ceil(self._shutdown_seconds) + _CANCEL_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is there now stays for good: a full collection need not look at it again, 20 ms each time otherwise.
        gc.collect()
        gc.freeze()
        # A turn makes some thousand objects and few cycles: looking for those after every 700 is a tenth of its cost.
        gc.set_threshold(*_GC_THRESHOLDS)
        if self._on_started:
            self._on_started(self._service)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.is_stopping = True
        self._shutdown_seconds = self._service.state.server.shutdown_seconds
        timer = asyncio.get_running_loop().call_later(self._shutdown_seconds, self._service.cancel_turns)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn's own raises the signal again at the end; a service that was told to stop has ended well."""
        try:
            old = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            if hasattr(signal, "SIGHUP"):
                old[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._handle_hangup)
        except ValueError:  # not the main thread, where signals do not come
            old = {}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _handle_hangup(self, number: int, frame: FrameType | None) -> None:
        """Reload; but stop when the terminal that we run in is gone, for that is what hung up."""
        if self._in_terminal and not os.isatty(0):
            self.handle_exit(number, frame)
        else:
            asyncio.get_running_loop().call_soon_threadsafe(self._reload)


def _read_versions(paths: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    return [_read_version(path) for path in paths]


def _read_version(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does, also when another is moved into its place."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
