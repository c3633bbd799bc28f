"""Every route and every middleware, on one page.

From outside in: `Exchanges` gives each request its id and its state, `Cors` answers browsers, `Auth` asks for a key.
All are plain ASGI: none of them touches a chunk of a stream but to hand it on. Turns then go straight to their
endpoint, past Starlette's router and all but one of its error frames: what stands between a client and its model is
waited for with every request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.errors import CallwrightError
from callwright.gateway import error_mapping
from callwright.gateway.admission import BodyLimitMiddleware, TurnAdmission
from callwright.gateway.auth import AuthMiddleware
from callwright.gateway.bridge_routes import BridgeRoutes
from callwright.gateway.cors import CorsMiddleware
from callwright.gateway.endpoints import ServiceEndpoints
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.forwarding import forward_request
from callwright.gateway.openapi import OPERATIONS
from callwright.gateway.request_context import RequestContextMiddleware, get_request_context
from callwright.gateway.service import GatewayService
from callwright.wire.base import ErrorResponse, ServerCodec

__all__ = ["build_app"]

log = logging.getLogger("callwright.gateway")

EndpointFactory = Callable[[ServerCodec], ASGIApp]
"""Makes the ASGI app that handles the turns of one wire."""


def build_app(service: GatewayService, codecs: Mapping[str, ServerCodec], endpoint_factory: EndpointFactory) -> ASGIApp:
    """The whole gateway as one ASGI app."""
    refusals = ErrorResponder(codecs, service.metrics)
    answers = _ExceptionHandlers(refusals)
    turns = {
        path: ServerErrorMiddleware(
            TurnAdmission(endpoint_factory(codecs[wire]), service, refusals), answers.handle_unexpected
        )
        for path, wire in _TURN_PATHS.items()
    }
    others = Starlette(
        routes=_build_routes(service, codecs, turns, refusals),
        exception_handlers={
            HTTPException: answers.handle_unrouted,
            CallwrightError: answers.handle_known,
            Exception: answers.handle_unexpected,
        },
    )
    others.router.redirect_slashes = False  # Copilot Chat 0.66 takes any redirect for a failure
    return RequestContextMiddleware(
        CorsMiddleware(AuthMiddleware(_TurnDispatcher(turns, others), refusals), refusals), service
    )


_TURN_PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
    "/api/generate": "ollama_generate",
}
"""The paths that ask a model, and the wire of each."""


def _build_routes(
    service: GatewayService, codecs: Mapping[str, ServerCodec], turns: Mapping[str, ASGIApp], refusals: ErrorResponder
) -> list[BaseRoute]:
    at = ServiceEndpoints(service, codecs)
    bridge = BridgeRoutes(service)
    bounded = [Middleware(BodyLimitMiddleware)]
    counted = [Middleware(TurnAdmission, service=service, refusals=refusals)]
    return [
        *(Route(path, app, methods=["POST"]) for path, app in turns.items()),
        # OpenAI
        Route("/v1/models", at.list_models),
        Route("/v1/models/{id:path}", at.get_model),
        Route("/v1/completions", forward_request, methods=["POST"], middleware=counted),
        Route("/v1/embeddings", forward_request, methods=["POST"], middleware=counted),
        # Anthropic
        Route("/v1/messages/count_tokens", at.count_tokens, methods=["POST"], middleware=bounded),
        # Ollama
        Route("/api/version", at.get_version),
        Route("/api/tags", at.list_tags),
        Route("/api/show", at.show_model, methods=["POST"], middleware=bounded),
        Route("/api/ps", at.list_running_models),
        Route("/api/embed", forward_request, methods=["POST"], middleware=counted),
        Route("/api/embeddings", forward_request, methods=["POST"], middleware=counted),
        # The service
        Route("/", at.get_root),
        Route("/api/hello", at.get_hello),
        Route("/health", at.get_health),
        Route("/healthz", at.get_health),
        Route("/readyz", at.get_readiness),
        Route("/metrics", at.get_metrics),
        Route("/v1/usage", at.get_usage),
        Route("/openapi.json", at.get_openapi),
        Route("/docs", at.get_docs),
        # Pages that serve conversations
        WebSocketRoute("/bridge", bridge.serve_socket),
        Route("/bridge/client.js", bridge.get_script),
        Route("/bridge/example", bridge.get_example),
    ]


class _TurnDispatcher:
    """Turns by their path; everything else, also the wrong method, is the router's."""

    def __init__(self, turns: Mapping[str, ASGIApp], others: ASGIApp) -> None:
        self._turns = turns
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = self._turns.get(scope["path"]) if scope.get("method") == "POST" else None
        await (turn or self._others)(scope, receive, send)


class _ExceptionHandlers:
    """What becomes of an exception that no endpoint took."""

    def __init__(self, refusals: ErrorResponder) -> None:
        self._error_responder = refusals

    async def handle_known(self, request: Request, error: Exception) -> Response:
        return self._error_responder.refuse_request(
            request.scope, error_mapping.map_error(error, request_id=get_request_context(request.scope).id)
        )

    async def handle_unexpected(self, request: Request, error: Exception) -> Response:
        request_id = get_request_context(request.scope).id
        log.error("unexpected exception", exc_info=error, extra={"fields": {"request_id": request_id}})
        return self._error_responder.refuse_request(
            request.scope, error_mapping.map_error(error, request_id=request_id)
        )

    async def handle_unrouted(self, request: Request, error: Exception) -> Response:
        """A path that is not there, or a method that it does not take."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        method, path = request.method, request.url.path
        if status == 405:
            message = f"{path} does not take {method}. See /docs for what it takes."
            headers = dict(error.headers or {}) if isinstance(error, HTTPException) else None
        else:
            near = get_close_matches(path, [each.path for each in OPERATIONS], 1, 0)[0]
            message = f"there is no {path[:200]} here. The nearest is {near}; see /docs for all."
            headers = None
        problem = ErrorResponse(
            status=status, message=message, fault="client", kind="not_found_error", code="unknown_path", param=""
        )
        return self._error_responder.refuse_request(request.scope, problem, headers)
