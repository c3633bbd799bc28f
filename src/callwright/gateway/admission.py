"""The last doors before an endpoint: how large a body may be, and whether there is room for another turn."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.errors import CallwrightError
from callwright.gateway import problems
from callwright.gateway.exchange import exchange
from callwright.gateway.limits import limited
from callwright.gateway.refusals import Refusals
from callwright.gateway.service import Service

__all__ = ["Bounded", "Turn"]


class Bounded:
    """An app whose request body is bounded; what is larger is refused without being read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = exchange(scope)
        length = opened.headers.get("content-length", "")
        await self._app(scope, limited(length, receive, opened.state.server.body_bytes), send)


class Turn:
    """An app that asks a model: bounded, admitted within the caller's limits, and counted while it runs."""

    def __init__(self, app: ASGIApp, service: Service, refusals: Refusals) -> None:
        self._app = Bounded(app)
        self._service = service
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = exchange(scope)
        try:
            with self._service.limits.turn(opened.state.server, opened.key), self._service.turn():
                await self._app(scope, receive, send)
        except CallwrightError as error:
            refusal = self._refusals.refuse(scope, problems.of(error, request_id=opened.id))
            await refusal(scope, receive, send)
