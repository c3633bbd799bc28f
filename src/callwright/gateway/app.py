"""Every route and every middleware, on one page.

From outside in: `Exchanges` gives each request its id and its state, `Cors` answers browsers, Starlette's two error
frames turn exceptions into answers, `Auth` asks for a key. All are plain ASGI: none of them touches a chunk of a
stream but to hand it on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from callwright.errors import CallwrightError
from callwright.gateway import problems
from callwright.gateway.admission import Bounded, Turn
from callwright.gateway.auth import Auth
from callwright.gateway.cors import Cors
from callwright.gateway.endpoints import Endpoints
from callwright.gateway.exchange import Exchanges, exchange
from callwright.gateway.forwarding import forward
from callwright.gateway.openapi import OPERATIONS
from callwright.gateway.refusals import Refusals
from callwright.gateway.service import Service
from callwright.wire.base import Problem, Served

__all__ = ["build"]

log = logging.getLogger("callwright.gateway")

EndpointOf = Callable[[Served], ASGIApp]
"""Makes the ASGI app that handles the turns of one wire."""


def build(service: Service, served: Mapping[str, Served], endpoint: EndpointOf) -> ASGIApp:
    """The whole gateway as one ASGI app."""
    refusals = Refusals(served, service.metrics)
    answers = _Answers(refusals)
    inner = Starlette(
        routes=_routes(service, served, endpoint),
        middleware=[Middleware(Auth, refusals=refusals)],
        exception_handlers={
            HTTPException: answers.unrouted,
            CallwrightError: answers.known,
            Exception: answers.unexpected,
        },
    )
    inner.router.redirect_slashes = False  # Copilot Chat 0.66 takes any redirect for a failure
    return Exchanges(Cors(inner, refusals), service)


def _routes(service: Service, served: Mapping[str, Served], endpoint: EndpointOf) -> list[Route]:
    at = Endpoints(service, served)
    bounded = [Middleware(Bounded)]

    def turn(path: str, wire: str) -> Route:
        return Route(path, Turn(endpoint(served[wire]), service), methods=["POST"])

    def passed(path: str) -> Route:
        return Route(path, forward, methods=["POST"], middleware=[Middleware(Turn, service=service)])

    return [
        # OpenAI
        turn("/v1/chat/completions", "openai_chat"),
        turn("/chat/completions", "openai_chat"),
        turn("/v1/responses", "openai_responses"),
        Route("/v1/models", at.models),
        Route("/v1/models/{id:path}", at.model),
        passed("/v1/completions"),
        passed("/v1/embeddings"),
        # Anthropic
        turn("/v1/messages", "anthropic"),
        Route("/v1/messages/count_tokens", at.count_tokens, methods=["POST"], middleware=bounded),
        # Ollama
        turn("/api/chat", "ollama"),
        turn("/api/generate", "ollama_generate"),
        Route("/api/version", at.version),
        Route("/api/tags", at.tags),
        Route("/api/show", at.show, methods=["POST"], middleware=bounded),
        Route("/api/ps", at.ps),
        passed("/api/embed"),
        passed("/api/embeddings"),
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
    ]


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
        problem = Problem(
            status=status, message=message, fault="client", kind="not_found_error", code="unknown_path", param=""
        )
        return self._refusals.refuse(request.scope, problem, headers)
