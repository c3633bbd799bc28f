"""The web face's app: its routes, and the files of the page."""

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
from callwright.agent.faces.base import SessionList
from callwright.agent.faces.web.desk import Desk
from callwright.agent.faces.web.door import LOOPBACK, Door
from callwright.agent.faces.web.page import Code, Page
from callwright.errors import CallwrightError, StoreError

__all__ = ["address", "app"]

ROWS = 50
"""Sessions in an answer of the list."""

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Token(msgspec.Struct):
    token: str


def address(url: str, token: str) -> str:
    """What the person opens. What follows `#` stays in the browser, and the page takes it out of sight at once."""
    return f"{url}/#token={token}"


def app(sessions: SessionList, token: str, *, hosts: Collection[str] = LOOPBACK) -> ASGIApp:
    """The page and its connections. `hosts` are the names that it is served under, without ports."""
    served = _Served(sessions)
    inner = Starlette(
        routes=[
            Route("/", served.page),
            *(Route(path, served.file) for path in served.files),
            Route("/enter", served.enter, methods=["POST"]),
            Route("/sessions", served.rows),
            Route("/sessions/{session}", served.delete, methods=["DELETE"]),
            WebSocketRoute("/ws", served.socket),
        ],
        exception_handlers={HTTPException: _unrouted, CallwrightError: _failed},
        lifespan=served.lifespan,
    )
    served.door = Door(inner, token, hosts, {"/", "/enter", *served.files})
    return served.door


class _Served:
    """The handlers, one method each."""

    door: Door

    def __init__(self, sessions: SessionList) -> None:
        self._desk = Desk(sessions)
        folder = files(callwright).joinpath("agent", "faces", "web", "static")
        self.files = {f"/static/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await self._desk.close()

    async def page(self, request: Request) -> Response:
        return Response(self.files["/static/index.html"], media_type="text/html")

    async def file(self, request: Request) -> Response:
        path = request.url.path
        return Response(self.files[path], media_type=_TYPES[path[path.rindex(".") :]])

    async def enter(self, request: Request) -> Response:
        try:
            said = msgspec.json.decode(await request.body(), type=_Token)
        except msgspec.MsgspecError as error:
            return JSONResponse({"problem": str(error)}, 400)
        return self.door.admit(said.token, request.headers["host"])

    async def rows(self, request: Request) -> Response:
        try:
            offset = msgspec.convert(request.query_params.get("offset", "0"), _Count, strict=False)
        except msgspec.ValidationError as error:
            return JSONResponse({"problem": f"offset: {error}"}, 400)
        rows = await self._desk.sessions.rows(request.query_params.get("query", ""), ROWS + 1, offset)
        body = msgspec.json.encode({"sessions": rows[:ROWS], "more": len(rows) > ROWS})
        return Response(body, media_type="application/json")

    async def delete(self, request: Request) -> Response:
        await self._desk.delete(request.path_params["session"])
        return Response(status_code=204)

    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            after = msgspec.convert(socket.query_params.get("after", "0"), _Count, strict=False)
            shown = await self._desk.show(socket.query_params.get("session", ""))
        except msgspec.ValidationError:
            await socket.close(Code.NOT_UNDERSTOOD, "after must be a number")
        except StoreError:
            await socket.close(Code.NO_SUCH_SESSION, "no such session")
        else:
            await Page(socket, shown, after).serve()


async def _unrouted(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse({"problem": "There is nothing at this address."}, status)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"problem": str(error)}, 409)
