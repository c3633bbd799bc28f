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
from callwright.gateway import problems
from callwright.gateway.admission import Bounded, Turn
from callwright.gateway.auth import Auth
from callwright.gateway.bridge import BridgeRoutes
from callwright.gateway.cors import Cors
from callwright.gateway.endpoints import Endpoints
from callwright.gateway.exchange import Exchanges, exchange
from callwright.gateway.forwarding import forward
from callwright.gateway.openapi import OPERATIONS
from callwright.gateway.refusals import Refusals
from callwright.gateway.service import Service
from callwright.wire.base import ErrorResponse, ServerCodec

__all__ = ["build"]

log = logging.getLogger("callwright.gateway")

EndpointOf = Callable[[ServerCodec], ASGIApp]
"""Makes the ASGI app that handles the turns of one wire."""


def build(service: Service, served: Mapping[str, ServerCodec], endpoint: EndpointOf) -> ASGIApp:
    """The whole gateway as one ASGI app."""
    refusals = Refusals(served, service.metrics)
    answers = _Answers(refusals)
    turns = {
        path: ServerErrorMiddleware(Turn(endpoint(served[wire]), service, refusals), answers.unexpected)
        for path, wire in _TURNS.items()
    }
    others = Starlette(
        routes=_routes(service, served, turns, refusals),
        exception_handlers={
            HTTPException: answers.unrouted,
            CallwrightError: answers.known,
            Exception: answers.unexpected,
        },
    )
    others.router.redirect_slashes = False  # Copilot Chat 0.66 takes any redirect for a failure
    return Exchanges(Cors(Auth(_Paths(turns, others), refusals), refusals), service)


_TURNS = {
    "/v1/chat/completions": "openai_chat",
    "/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
    "/api/generate": "ollama_generate",
}
"""The paths that ask a model, and the wire of each."""


def _routes(
    service: Service, served: Mapping[str, ServerCodec], turns: Mapping[str, ASGIApp], refusals: Refusals
) -> list[BaseRoute]:
    at = Endpoints(service, served)
    bridge = BridgeRoutes(service)
    bounded = [Middleware(Bounded)]
    counted = [Middleware(Turn, service=service, refusals=refusals)]
    return [
        *(Route(path, app, methods=["POST"]) for path, app in turns.items()),
        # OpenAI
        Route("/v1/models", at.models),
        Route("/v1/models/{id:path}", at.model),
        Route("/v1/completions", forward, methods=["POST"], middleware=counted),
        Route("/v1/embeddings", forward, methods=["POST"], middleware=counted),
        # Anthropic
        Route("/v1/messages/count_tokens", at.count_tokens, methods=["POST"], middleware=bounded),
        # Ollama
        Route("/api/version", at.version),
        Route("/api/tags", at.tags),
        Route("/api/show", at.show, methods=["POST"], middleware=bounded),
        Route("/api/ps", at.ps),
        Route("/api/embed", forward, methods=["POST"], middleware=counted),
        Route("/api/embeddings", forward, methods=["POST"], middleware=counted),
        # The service
        Route("/", at.root),
        Route("/api/hello", at.hello),
        Route("/health", at.health),
        Route("/healthz", at.health),
        Route("/readyz", at.ready),
        Route("/metrics", at.metrics),
        Route("/v1/usage", at.usage),
        Route("/openapi.json", at.openapi),
        Route("/docs", at.docs),
        # Pages that serve conversations
        WebSocketRoute("/bridge", bridge.socket),
        Route("/bridge/client.js", bridge.script),
        Route("/bridge/example", bridge.example),
    ]


class _Paths:
    """Turns by their path; everything else, also the wrong method, is the router's."""

    def __init__(self, turns: Mapping[str, ASGIApp], others: ASGIApp) -> None:
        self._turns = turns
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = self._turns.get(scope["path"]) if scope.get("method") == "POST" else None
        await (turn or self._others)(scope, receive, send)


class _Answers:
    """What becomes of an exception that no endpoint took."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals

    async def known(self, request: Request, error: Exception) -> Response:
        return self._refusals.refuse(request.scope, problems.of(error, request_id=exchange(request.scope).id))

    async def unexpected(self, request: Request, error: Exception) -> Response:
        request_id = exchange(request.scope).id
        log.error("unexpected exception", exc_info=error, extra={"fields": {"request_id": request_id}})
        return self._refusals.refuse(request.scope, problems.of(error, request_id=request_id))

    async def unrouted(self, request: Request, error: Exception) -> Response:
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
        return self._refusals.refuse(request.scope, problem, headers)
