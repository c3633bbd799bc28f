"""Middleware that enforces body size and concurrency limits."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.errors import CallwrightError
from callwright.gateway import error_mapping
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.limits import limit_body
from callwright.gateway.request_context import get_request_context
from callwright.gateway.service import GatewayService

__all__ = ["BodyLimitMiddleware", "TurnAdmission"]


class BodyLimitMiddleware:
    """Limits the size of request bodies. Refuses a larger body without reading it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = get_request_context(scope)
        length = context.headers.get("content-length", "")
        await self._app(scope, limit_body(length, receive, context.state.server.body_bytes), send)


class TurnAdmission:
    """Admits a turn within the caller's limits, limits its body, and counts it while it runs."""

    def __init__(self, app: ASGIApp, service: GatewayService, error_responder: ErrorResponder) -> None:
        self._app = BodyLimitMiddleware(app)
        self._service = service
        self._error_responder = error_responder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = get_request_context(scope)
        try:
            with self._service.limits.admit_turn(context.state.server, context.key), self._service.track_turn():
                await self._app(scope, receive, send)
        except CallwrightError as error:
            refusal = self._error_responder.refuse_request(scope, error_mapping.map_error(error, request_id=context.id))
            await refusal(scope, receive, send)
