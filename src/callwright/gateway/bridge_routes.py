"""Routes of the bridge: a WebSocket on which web pages serve conversations, a script for such pages, and an example.

A page must have an allowed origin, checked before the connection is accepted, and a valid token in its first frame:
URLs end in logs, frames do not. `backends.conversation` handles the frames after that; docs/bridge.md describes them.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

import callwright
from callwright.backends.conversation.bridge_backend import BridgeBackend
from callwright.backends.conversation.frames import (
    BridgeCloseCode,
    GatewayFrame,
    HelloFrame,
    PongFrame,
    decode_frame,
    encode_frame,
)
from callwright.backends.conversation.page_registry import BridgeConnection
from callwright.engine import Engine
from callwright.errors import WireError
from callwright.gateway.keys import is_loopback_host
from callwright.gateway.service import GatewayService

__all__ = ["BridgeRoutes", "list_bridges"]

log = logging.getLogger("callwright.bridge")

HELLO_SECONDS = 10.0
HEARTBEAT_SECONDS = 15.0
"""Seconds without a frame before a page is sent a ping. A page that stays silent as long again is disconnected."""

_NORMAL_CLOSE_CODES = (BridgeCloseCode.NORMAL, BridgeCloseCode.GOING_AWAY)


class BridgeRoutes:
    """The request handlers, one method per route."""

    def __init__(self, service: GatewayService) -> None:
        self._service = service
        folder = files(callwright).joinpath("gateway", "bridge_page")
        self._script = folder.joinpath("client.js").read_bytes()
        self._example = folder.joinpath("example.html").read_text(encoding="utf-8")

    async def get_script(self, request: Request) -> Response:
        return Response(self._script, media_type="text/javascript")

    async def get_example(self, request: Request) -> Response:
        return HTMLResponse(self._example)

    async def serve_socket(self, socket: WebSocket) -> None:
        """Serve one page, from its hello frame to its disconnect."""
        origin = socket.headers.get("origin")
        allowed = [
            each for each in list_bridges(self._service.state.engine) if self._is_origin_allowed(socket, origin, each)
        ]
        if not allowed:
            log.warning("bridge page refused: its origin is not allowed", extra={"fields": {"origin": origin}})
            await socket.close()  # not accepted yet: the browser sees a 403
            return
        await socket.accept()
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = decode_frame(await socket.receive_text())
        except (WireError, TimeoutError, KeyError):
            await socket.close(BridgeCloseCode.INVALID_FRAME, "the first frame must be hello")
            return
        except WebSocketDisconnect:
            return
        # Every token is compared, also after a match, so that timing reveals nothing.
        matching = [each for each in allowed if isinstance(hello, HelloFrame) and each.accepts_token(hello.token)]
        if not isinstance(hello, HelloFrame) or not matching:
            self._service.metrics.errors.labels("client", "authentication_error").inc()
            log.warning("bridge page refused: wrong token", extra={"fields": {"origin": origin}})
            await socket.close(BridgeCloseCode.WRONG_TOKEN, "wrong token")
            return
        await _PageConnection(socket, matching[-1]).serve(hello)

    def _is_origin_allowed(self, socket: WebSocket, origin: str | None, backend: BridgeBackend) -> bool:
        """Whether this origin may connect. Programs other than browsers send no origin and only need the token."""
        if origin is None or origin in backend.settings.origins:
            return True
        host = socket.headers.get("host", "")
        is_same_host = origin.partition("://")[2] == host
        # Without keys, a host name other than localhost may belong to a foreign page that points it to this machine.
        return is_same_host and (
            not self._service.state.keyring.is_open or is_loopback_host(host.rpartition(":")[0] or host)
        )


class _PageConnection:
    """One accepted connection of a page."""

    def __init__(self, socket: WebSocket, backend: BridgeBackend) -> None:
        self._socket = socket
        self._backend = backend
        self._outbox: asyncio.Queue[GatewayFrame | BridgeCloseCode] = asyncio.Queue()
        """Frames to send. A close code closes the connection."""

    async def serve(self, hello: HelloFrame) -> None:
        """Handle frames until the page disconnects or is released."""
        link = self._backend.connect_page(hello, self._outbox.put_nowait)
        fields = {"backend": self._backend.settings.name, "page": hello.page}
        log.info("bridge page connected", extra={"fields": fields})
        tasks = [asyncio.create_task(work) for work in (self._write_frames(), self._close_on_release(link))]
        code = 0
        try:
            code = await self._read_frames(link)
        finally:
            for task in tasks:
                task.cancel()
            self._backend.disconnect_page(link, goodbye=code in _NORMAL_CLOSE_CODES)
            log.info("bridge page disconnected", extra={"fields": {**fields, "code": code}})

    async def _read_frames(self, link: BridgeConnection) -> int:
        """Pass the page's frames on. Returns the close code of the connection."""
        is_pinged = False
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    frame = decode_frame(await self._socket.receive_text())
            except TimeoutError:
                if is_pinged:
                    await self._socket.close(BridgeCloseCode.SILENT, "no pong received")
                    return BridgeCloseCode.SILENT
                is_pinged = True
                link.send_ping()
            except WebSocketDisconnect as disconnect:
                return disconnect.code
            except (WireError, KeyError):
                await self._socket.close(BridgeCloseCode.INVALID_FRAME, "invalid frame")
                return BridgeCloseCode.INVALID_FRAME
            else:
                is_pinged = False
                if not isinstance(frame, HelloFrame | PongFrame):
                    link.receive_frame(frame)

    async def _write_frames(self) -> None:
        try:
            while not isinstance(frame := await self._outbox.get(), BridgeCloseCode):
                await self._socket.send_text(encode_frame(frame))
            await self._socket.close(frame)
        except (WebSocketDisconnect, RuntimeError):  # closed meanwhile; the reader sees the disconnect
            pass

    async def _close_on_release(self, link: BridgeConnection) -> None:
        await self._backend.wait_until_released(link)
        self._outbox.put_nowait(BridgeCloseCode.SERVICE_RESTART)


def list_bridges(engine: Engine) -> list[BridgeBackend]:
    """List the backends that pages connect to."""
    return [backend for backend in engine.backends.values() if isinstance(backend, BridgeBackend)]
