"""Assembles the gateway: every route and every middleware.

From the outside in: `RequestContextMiddleware` gives each request its id and its state, `CorsMiddleware` answers
browsers, `AuthMiddleware` checks the key. All are plain ASGI and pass the chunks of a stream on unchanged. Requests for
turns then go straight to their endpoint. They bypass Starlette's router and all but one of its error handlers, because
every request waits for the code between the client and its model.
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
"""Builds the ASGI app that handles the turns of one wire."""


def build_app(service: GatewayService, codecs: Mapping[str, ServerCodec], endpoint_factory: EndpointFactory) -> ASGIApp:
    """Build the gateway as one ASGI app."""
    error_responder = ErrorResponder(codecs, service.metrics)
    handlers = _ExceptionHandlers(error_responder)
    turns = {
        path: ServerErrorMiddleware(
            TurnAdmission(endpoint_factory(codecs[wire]), service, error_responder), handlers.handle_unexpected
        )
        for path, wire in _TURN_PATHS.items()
    }
    others = Starlette(
        routes=_build_routes(service, codecs, turns, error_responder),
        exception_handlers={
            HTTPException: handlers.handle_unrouted,
            CallwrightError: handlers.handle_known,
            Exception: handlers.handle_unexpected,
        },
    )
    others.router.redirect_slashes = False  # Copilot Chat 0.66 treats any redirect as a failure
    return RequestContextMiddleware(
        CorsMiddleware(AuthMiddleware(_TurnDispatcher(turns, others), error_responder), error_responder), service
    )


_TURN_PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
    "/api/generate": "ollama_generate",
}
"""The paths that run turns, and the wire of each."""


def _build_routes(
    service: GatewayService,
    codecs: Mapping[str, ServerCodec],
    turns: Mapping[str, ASGIApp],
    error_responder: ErrorResponder,
) -> list[BaseRoute]:
    endpoints = ServiceEndpoints(service, codecs)
    bridge = BridgeRoutes(service)
    bounded = [Middleware(BodyLimitMiddleware)]
    counted = [Middleware(TurnAdmission, service=service, error_responder=error_responder)]
    return [
        *(Route(path, app, methods=["POST"]) for path, app in turns.items()),
        # OpenAI
        Route("/v1/models", endpoints.list_models),
        Route("/v1/models/{id:path}", endpoints.get_model),
        Route("/v1/completions", forward_request, methods=["POST"], middleware=counted),
        Route("/v1/embeddings", forward_request, methods=["POST"], middleware=counted),
        # Anthropic
        Route("/v1/messages/count_tokens", endpoints.count_tokens, methods=["POST"], middleware=bounded),
        # Ollama
        Route("/api/version", endpoints.get_version),
        Route("/api/tags", endpoints.list_tags),
        Route("/api/show", endpoints.show_model, methods=["POST"], middleware=bounded),
        Route("/api/ps", endpoints.list_running_models),
        Route("/api/embed", forward_request, methods=["POST"], middleware=counted),
        Route("/api/embeddings", forward_request, methods=["POST"], middleware=counted),
        # The service
        Route("/", endpoints.get_root),
        Route("/api/hello", endpoints.get_hello),
        Route("/health", endpoints.get_health),
        Route("/healthz", endpoints.get_health),
        Route("/readyz", endpoints.get_readiness),
        Route("/metrics", endpoints.get_metrics),
        Route("/v1/usage", endpoints.get_usage),
        Route("/openapi.json", endpoints.get_openapi),
        Route("/docs", endpoints.get_docs),
        # Pages that serve conversations
        WebSocketRoute("/bridge", bridge.serve_socket),
        Route("/bridge/client.js", bridge.get_script),
        Route("/bridge/example", bridge.get_example),
    ]


class _TurnDispatcher:
    """Sends turns to their endpoint by path. The router handles everything else, wrong methods included."""

    def __init__(self, turns: Mapping[str, ASGIApp], others: ASGIApp) -> None:
        self._turns = turns
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = self._turns.get(scope["path"]) if scope.get("method") == "POST" else None
        await (turn or self._others)(scope, receive, send)


class _ExceptionHandlers:
    """Turns exceptions that no endpoint caught into error responses."""

    def __init__(self, error_responder: ErrorResponder) -> None:
        self._error_responder = error_responder

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
        """Answer a request for an unknown path, or with a method that the path does not support."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        method, path = request.method, request.url.path
        if status == 405:
            message = f"{path} does not support {method}. See /docs for the methods of each path."
            headers = dict(error.headers or {}) if isinstance(error, HTTPException) else None
        else:
            near = get_close_matches(path, [each.path for each in OPERATIONS], 1, 0)[0]
            message = f"the path {path[:200]} does not exist. Did you mean {near}? See /docs for all paths."
            headers = None
        problem = ErrorResponse(
            status=status, message=message, fault="client", kind="not_found_error", code="unknown_path", param=""
        )
        return self._error_responder.refuse_request(request.scope, problem, headers)
