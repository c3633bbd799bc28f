"""The last doors before an endpoint: how large a body may be, and whether there is room for another turn."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.gateway.exchange import exchange
from callwright.gateway.limits import limited
from callwright.gateway.service import Service

__all__ = ["Bounded", "Turn"]


class Bounded:
    """An app whose request body is bounded; what is larger is refused without being read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, limited(scope, receive, exchange(scope).state.server.body_bytes), send)


class Turn:
    """An app that asks a model: bounded, admitted within the caller's limits, and counted while it runs."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = Bounded(app)
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = exchange(scope)
        with self._service.limits.turn(opened.state.server, opened.key), self._service.turn():
            await self._app(scope, receive, send)
