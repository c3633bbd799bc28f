"""The bridge's routes: a WebSocket on which web pages serve conversations, a script for such pages, and an example.

A page is let in by its origin, before the connection stands, and by its token, which is the first thing that it says:
addresses end in logs. What it is asked and answers is the business of `backends.conversation`; docs/bridge.md explains
all of it.
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
"""How often a page is asked whether it lives; one that is silent for twice as long is gone."""

_NORMAL_CLOSE_CODES = (BridgeCloseCode.NORMAL, BridgeCloseCode.GOING_AWAY)


class BridgeRoutes:
    """The handlers, one method each."""

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
        """One page, from its hello to its end."""
        origin = socket.headers.get("origin")
        able = [
            each for each in list_bridges(self._service.state.engine) if self._is_origin_allowed(socket, origin, each)
        ]
        if not able:
            log.warning("a page of an origin that is not allowed was refused", extra={"fields": {"origin": origin}})
            await socket.close()  # before it stands: the browser sees a 403
            return
        await socket.accept()
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = decode_frame(await socket.receive_text())
        except (WireError, TimeoutError, KeyError):
            await socket.close(BridgeCloseCode.INVALID_FRAME, "say hello first")
            return
        except WebSocketDisconnect:
            return
        # Every token is compared, whichever is right.
        found = [each for each in able if isinstance(hello, HelloFrame) and each.accepts_token(hello.token)]
        if not isinstance(hello, HelloFrame) or not found:
            self._service.metrics.errors.labels("client", "authentication_error").inc()
            log.warning("a page with a wrong token was refused", extra={"fields": {"origin": origin}})
            await socket.close(BridgeCloseCode.WRONG_TOKEN, "wrong token")
            return
        await _PageConnection(socket, found[-1]).serve(hello)

    def _is_origin_allowed(self, socket: WebSocket, origin: str | None, backend: BridgeBackend) -> bool:
        """Whether a page may try. Programs that are no browsers have no origin, and only need the token."""
        if origin is None or origin in backend.settings.origins:
            return True
        host = socket.headers.get("host", "")
        own = origin.partition("://")[2] == host
        # Where no key is needed, a strange name for this machine may be a foreign page's trick.
        return own and (not self._service.state.keyring.is_open or is_loopback_host(host.rpartition(":")[0] or host))


class _PageConnection:
    """One connection of a page that was let in."""

    def __init__(self, socket: WebSocket, backend: BridgeBackend) -> None:
        self._socket = socket
        self._backend = backend
        self._outbox: asyncio.Queue[GatewayFrame | BridgeCloseCode] = asyncio.Queue()
        """Frames to send; a code closes the connection."""

    async def serve(self, hello: HelloFrame) -> None:
        """Take frames until the page leaves, or has to."""
        link = self._backend.connect_page(hello, self._outbox.put_nowait)
        fields = {"backend": self._backend.settings.name, "page": hello.page}
        log.info("a page has joined", extra={"fields": fields})
        tasks = [asyncio.create_task(work) for work in (self._write_frames(), self._close_on_release(link))]
        code = 0
        try:
            code = await self._read_frames(link)
        finally:
            for task in tasks:
                task.cancel()
            self._backend.disconnect_page(link, goodbye=code in _NORMAL_CLOSE_CODES)
            log.info("a page has left", extra={"fields": {**fields, "code": code}})

    async def _read_frames(self, link: BridgeConnection) -> int:
        """Hand over what the page says. Returns the code that the connection was closed with."""
        asked = False
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    frame = decode_frame(await self._socket.receive_text())
            except TimeoutError:
                if asked:
                    await self._socket.close(BridgeCloseCode.SILENT, "no answer to a heartbeat")
                    return BridgeCloseCode.SILENT
                asked = True
                link.send_ping()
            except WebSocketDisconnect as left:
                return left.code
            except (WireError, KeyError):
                await self._socket.close(BridgeCloseCode.INVALID_FRAME, "not a frame of the bridge")
                return BridgeCloseCode.INVALID_FRAME
            else:
                asked = False
                if not isinstance(frame, HelloFrame | PongFrame):
                    link.receive_frame(frame)

    async def _write_frames(self) -> None:
        try:
            while not isinstance(frame := await self._outbox.get(), BridgeCloseCode):
                await self._socket.send_text(encode_frame(frame))
            await self._socket.close(frame)
        except (WebSocketDisconnect, RuntimeError):  # it was closed meanwhile; whoever reads is told
            pass

    async def _close_on_release(self, link: BridgeConnection) -> None:
        await self._backend.wait_until_released(link)
        self._outbox.put_nowait(BridgeCloseCode.SERVICE_RESTART)


def list_bridges(engine: Engine) -> list[BridgeBackend]:
    """The backends that pages connect to."""
    return [backend for backend in engine.backends.values() if isinstance(backend, BridgeBackend)]
