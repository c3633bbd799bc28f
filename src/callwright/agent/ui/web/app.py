"""The ASGI application of the web interface: its routes, and the files of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

import callwright
from callwright.agent.session_api import SessionCatalog
from callwright.agent.ui.web.page_auth import LOOPBACK_HOSTS, PageAuth
from callwright.agent.ui.web.page_connection import CloseCode, PageConnection
from callwright.agent.ui.web.session_hub import SessionHub
from callwright.errors import CallwrightError, StoreError

__all__ = ["build_page_url", "create_web_app"]

SESSIONS_PER_PAGE = 50
"""The number of sessions in one response."""

_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_NonNegativeInt = Annotated[int, msgspec.Meta(ge=0)]


class _TokenBody(msgspec.Struct):
    token: str


def build_page_url(url: str, token: str) -> str:
    """Return the URL for the user to open. Browsers do not send the part after `#`, and the page removes it at once."""
    return f"{url}/#token={token}"


def create_web_app(sessions: SessionCatalog, token: str, *, hosts: Collection[str] = LOOPBACK_HOSTS) -> ASGIApp:
    """Create the application. `hosts` are the host names that it is served under, without ports."""
    served = _WebHandlers(sessions)
    inner = Starlette(
        routes=[
            Route("/", served.get_page),
            *(Route(path, served.get_file) for path in served.static_files),
            Route("/enter", served.exchange_token, methods=["POST"]),
            Route("/sessions", served.list_sessions),
            Route("/sessions/{session}", served.delete_session, methods=["DELETE"]),
            WebSocketRoute("/ws", served.serve_socket),
        ],
        exception_handlers={HTTPException: _handle_http_error, CallwrightError: _handle_failure},
        lifespan=served.lifespan,
    )
    served.auth = PageAuth(inner, token, hosts, {"/", "/enter", *served.static_files})
    return served.auth


class _WebHandlers:
    """The request handlers, one method each."""

    auth: PageAuth

    def __init__(self, sessions: SessionCatalog) -> None:
        self._hub = SessionHub(sessions)
        folder = files(callwright).joinpath("agent", "ui", "web", "static")
        self.static_files = {f"/static/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self._hub.close()

    async def get_page(self, request: Request) -> Response:
        return Response(self.static_files["/static/index.html"], media_type="text/html")

    async def get_file(self, request: Request) -> Response:
        path = request.url.path
        return Response(self.static_files[path], media_type=_MEDIA_TYPES[path[path.rindex(".") :]])

    async def exchange_token(self, request: Request) -> Response:
        try:
            body = msgspec.json.decode(await request.body(), type=_TokenBody)
        except msgspec.MsgspecError as error:
            return JSONResponse({"problem": str(error)}, 400)
        return self.auth.issue_cookie(body.token, request.headers["host"])

    async def list_sessions(self, request: Request) -> Response:
        try:
            offset = msgspec.convert(request.query_params.get("offset", "0"), _NonNegativeInt, strict=False)
        except msgspec.ValidationError as error:
            return JSONResponse({"problem": f"offset: {error}"}, 400)
        rows = await self._hub.catalog.list_sessions(
            request.query_params.get("query", ""), SESSIONS_PER_PAGE + 1, offset
        )
        body = msgspec.json.encode({"sessions": rows[:SESSIONS_PER_PAGE], "more": len(rows) > SESSIONS_PER_PAGE})
        return Response(body, media_type="application/json")

    async def delete_session(self, request: Request) -> Response:
        await self._hub.delete_session(request.path_params["session"])
        return Response(status_code=204)

    async def serve_socket(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            after = msgspec.convert(socket.query_params.get("after", "0"), _NonNegativeInt, strict=False)
            session = await self._hub.load_session(socket.query_params.get("session", ""))
        except msgspec.ValidationError:
            await socket.close(CloseCode.NOT_UNDERSTOOD, "after must be a number")
        except StoreError:
            await socket.close(CloseCode.NO_SUCH_SESSION, "no such session")
        else:
            await PageConnection(socket, session, after).serve()


async def _handle_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse({"problem": "Not found."}, status)


async def _handle_failure(request: Request, error: Exception) -> Response:
    return JSONResponse({"problem": str(error)}, 409)
