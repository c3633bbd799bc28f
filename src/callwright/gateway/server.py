"""Runs the gateway on uvicorn, with graceful shutdown and reload.

On SIGTERM or SIGINT it accepts no new connections and lets turns finish for `shutdown_seconds`. It then cancels the
remaining turns, and each sends its client an error before the connection closes. SIGHUP, or a change of a watched file,
loads a new state without interrupting a stream. When loading fails, the reason is logged and the old state stays.
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
"""How long cancelled turns may take to send their last error."""
_WATCH_SECONDS = 1.0
_GC_THRESHOLDS = (10_000, 20, 20)

StartupCallback = Callable[[GatewayService], None]
StateLoader = Callable[[], GatewayState]
"""Reads the configuration and opens its backends, inside the running loop. Raises when the configuration is invalid."""


def open_listener(host: str, port: int) -> socket.socket:
    """Open the socket to serve on. Port 0 selects a free port; raises `OSError` when the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=2048)
    # Connections inherit the option. Without it asyncio's own loop, unlike uvloop, delays small responses by 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def run_gateway(gateway: GatewayServer, listener: socket.socket, *, on_started: StartupCallback | None = None) -> None:
    """Serve until stopped, on the fastest event loop available. See `GatewayServer.serve` for `on_started`."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", log_config=None).get_loop_factory()) as runner:
        runner.run(gateway.serve(listener, on_started=on_started))


class GatewayServer:
    """One gateway service and the HTTP server around it."""

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
        """Serve on this socket until stopped. `on_started` is called once requests can arrive."""
        service = self._service = GatewayService(self._load(), redactor=self._redactor)
        server = self._server = _UvicornServer(self._assemble(service), service, self.reload, on_started)
        watcher = asyncio.create_task(self._watch_files())
        try:
            await server.serve([listener])
        finally:
            watcher.cancel()
            await service.close()

    def stop(self) -> None:
        """Stop the server, as SIGTERM does."""
        if self._server is not None:
            self._server.should_exit = True

    def reload(self) -> bool:
        """Reload the configuration, as SIGHUP does. Returns False when the new configuration is invalid."""
        service = self._service
        if service is None:
            return False
        try:
            state = self._load()
        except (CallwrightError, OSError, ValueError) as error:
            log.error("configuration not reloaded, the previous one stays in use: %s", error)  # noqa: TRY400 - no bug of ours
            return False
        old, new = service.state.server, state.server
        old_bridges, new_bridges = list_bridges(service.state.engine), list_bridges(state.engine)
        service.replace_state(state)
        for bridge in old_bridges:
            bridge.retire()
        if new_bridges and not old_bridges:
            log.warning("the new bridge backend accepts no pages until the service is restarted")
        if (old.host, old.port) != (new.host, new.port):
            log.warning("changes of host and port take effect when the service is restarted")
        log.info("configuration reloaded")
        return True

    async def _watch_files(self) -> None:
        versions = _read_versions(self._watch)
        while self._watch:
            await asyncio.sleep(_WATCH_SECONDS)
            current = _read_versions(self._watch)
            if current != versions:
                versions = current
                self.reload()


class _UvicornServer(uvicorn.Server):
    """uvicorn with the gateway's signal handling and shutdown."""

    def __init__(
        self,
        app: ASGIApp,
        service: GatewayService,
        reload: Callable[[], bool],
        on_started: StartupCallback | None,
    ) -> None:
        self._service = service
        self._reload = reload
        self._on_started = on_started
        self._in_terminal = os.isatty(0)
        self._shutdown_seconds = service.state.server.shutdown_seconds
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",  # "debug" would log WebSocket messages, which contain the tokens of pages
                access_log=False,
                server_header=False,
                proxy_headers=False,
                # Loading the implementation takes 40 ms, and only bridges need it.
                ws="websockets-sansio" if list_bridges(service.state.engine) else "none",
                lifespan="off",
                timeout_graceful_shutdown=math.ceil(self._shutdown_seconds) + _CANCEL_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # Objects that exist now live as long as the process. Frozen, they save 20 ms in each full collection.
        gc.collect()
        gc.freeze()
        # A turn makes some thousand objects and few cycles. Collecting after every 700 is a tenth of its cost.
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
        """Install signal handlers. uvicorn's own raise the signal again at the end, which would look like a crash."""
        try:
            old = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            if hasattr(signal, "SIGHUP"):
                old[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._handle_hangup)
        except ValueError:  # signals can be handled in the main thread only
            old = {}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _handle_hangup(self, number: int, frame: FrameType | None) -> None:
        """Reload on SIGHUP. Stop instead when the signal means that the controlling terminal was closed."""
        if self._in_terminal and not os.isatty(0):
            self.handle_exit(number, frame)
        else:
            asyncio.get_running_loop().call_soon_threadsafe(self._reload)


def _read_versions(paths: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    return [_read_version(path) for path in paths]


def _read_version(path: Path) -> tuple[int, int, int] | None:
    """Identify a file's version. The result changes when the file does, also when another file replaces it."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
