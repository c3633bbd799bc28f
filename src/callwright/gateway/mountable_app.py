"""The gateway as one ASGI application, served alone or mounted in another application.

Its lifespan opens the backends, the store and the journal, and closes them. Starlette and FastAPI do not run the
lifespan of an application that is mounted in them, so they are given it:

    gateway = create_app(config)
    app = Starlette(routes=[Mount("/llm", gateway)], lifespan=gateway.lifespan)

Cost: one look at `root_path` for each request; where it is mounted, one copy of the scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.errors import MisuseError
from callwright.gateway.app import build_app
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.server import StateLoader
from callwright.gateway.service import GatewayService
from callwright.gateway.turn_endpoints import TurnEndpoints
from callwright.redaction import Redactor
from callwright.wire import SERVER_CODECS

__all__ = ["GatewayApp", "build_service_app"]

_MODELS_TIMEOUT = 3.0
"""Seconds that the start waits for backends to list their models. The models of slower ones are served later."""


def build_service_app(service: GatewayService) -> ASGIApp:
    """Build the routes of a service, with every wire."""
    endpoints = TurnEndpoints(service, ErrorResponder(SERVER_CODECS, service.metrics))
    return build_app(service, SERVER_CODECS, endpoints.build_endpoint)


class GatewayApp:
    """An ASGI application that serves one gateway."""

    def __init__(self, load: StateLoader, redactor: Redactor) -> None:
        self._load = load
        self._redactor = redactor
        self._app: ASGIApp | None = None
        self._lifespan_router = Router(lifespan=self.lifespan)

    @asynccontextmanager
    async def lifespan(self, _parent: object = None) -> AsyncIterator[None]:
        """Start the gateway, and stop it at the end. Pass it to Starlette or FastAPI as `lifespan`."""
        if self._app is not None:
            raise MisuseError("the gateway runs already: one application can run its lifespan once at a time")
        service = GatewayService(self._load(), redactor=self._redactor)
        listing = asyncio.ensure_future(service.state.engine.refresh_models())
        try:
            await asyncio.wait([listing], timeout=_MODELS_TIMEOUT)
            self._app = build_service_app(service)
            yield
        finally:
            self._app = None
            service.is_stopping = True
            listing.cancel()
            await service.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan_router.lifespan(scope, receive, send)
            return
        if self._app is None:
            raise MisuseError(
                "the gateway has not been started: pass its `lifespan` to the application in which it is mounted"
            )
        if prefix := scope.get("root_path", ""):
            scope = _remove_prefix(scope, prefix)
        await self._app(scope, receive, send)


def _remove_prefix(scope: Scope, prefix: str) -> Scope:
    """The same request as the gateway would see it alone: its paths begin where it is mounted."""
    path: str = scope["path"]
    if path == prefix or path.startswith(f"{prefix}/"):
        path = path[len(prefix) :] or "/"
    return {**scope, "path": path, "root_path": ""}
