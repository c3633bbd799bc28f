"""The last doors before an endpoint: how large a body may be, and whether there is room for another turn."""

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
    """An app whose request body is bounded; what is larger is refused without being read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = get_request_context(scope)
        length = opened.headers.get("content-length", "")
        await self._app(scope, limit_body(length, receive, opened.state.server.body_bytes), send)


class TurnAdmission:
    """An app that asks a model: bounded, admitted within the caller's limits, and counted while it runs."""

    def __init__(self, app: ASGIApp, service: GatewayService, refusals: ErrorResponder) -> None:
        self._app = BodyLimitMiddleware(app)
        self._service = service
        self._error_responder = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = get_request_context(scope)
        try:
            with self._service.limits.admit_turn(opened.state.server, opened.key), self._service.track_turn():
                await self._app(scope, receive, send)
        except CallwrightError as error:
            refusal = self._error_responder.refuse_request(scope, error_mapping.map_error(error, request_id=opened.id))
            await refusal(scope, receive, send)
