"""The endpoints that run no turn: listings, health, metrics, usage, documentation."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

import callwright
from callwright.engine import Engine, ModelListing
from callwright.engine.tokens import count_prompt_tokens
from callwright.errors import RequestError
from callwright.gateway import listing
from callwright.gateway.keys import can_use_model
from callwright.gateway.openapi import build_openapi_document
from callwright.gateway.request_context import get_request_context
from callwright.gateway.service import GatewayService
from callwright.store.usage_records import USAGE_COLUMNS
from callwright.wire.base import ServerCodec
from callwright.wire.request_fields import parse_body

__all__ = ["ServiceEndpoints", "read_object"]

log = logging.getLogger("callwright.gateway")

_READINESS_CACHE_SECONDS = 2.0
_GREETING = (
    f"Callwright {callwright.__version__} is running. It serves the APIs of OpenAI, Anthropic and Ollama; see /docs. "
    # Some clients of Ollama look for the last three words.
    "For clients of Ollama: Ollama is running\n"
)


class ServiceEndpoints:
    """The request handlers, one method per endpoint."""

    def __init__(self, service: GatewayService, codecs: Mapping[str, ServerCodec]) -> None:
        self._service = service
        self._codecs = codecs
        self._started_at = datetime.now(UTC).replace(microsecond=0)
        self._last_readiness: tuple[float, Engine | None, Mapping[str, str]] = (0.0, None, {})
        self._docs = files(callwright).joinpath("gateway", "docs.html").read_text(encoding="utf-8")

    async def get_root(self, request: Request) -> Response:
        return PlainTextResponse(_GREETING)

    async def get_hello(self, request: Request) -> Response:
        """Answer Claude Code 2.1, which sends HEAD here to open the connection early."""
        return _json_response({"message": "hello"})

    async def list_models(self, request: Request) -> Response:
        return _json_response(listing.build_model_list(_list_visible_models(request), self._started_at))

    async def get_model(self, request: Request) -> Response:
        name, found = listing.find_model(_list_visible_models(request), request.path_params["id"])
        return _json_response(listing.build_model_object(name, found, self._started_at))

    async def get_version(self, request: Request) -> Response:
        return _json_response({"version": listing.OLLAMA_VERSION, "callwright": callwright.__version__})

    async def list_tags(self, request: Request) -> Response:
        return _json_response(listing.build_tags(_list_visible_models(request), self._started_at))

    async def list_running_models(self, request: Request) -> Response:
        return _json_response(listing.build_running_models(_list_visible_models(request), self._started_at))

    async def show_model(self, request: Request) -> Response:
        body = read_object(await request.body())
        name = body.get("model") or body.get("name")
        if not isinstance(name, str):
            raise RequestError("model must be the name of a model.", param="model")
        return _json_response(
            listing.build_model_details(listing.find_model(_list_visible_models(request), name)[1], self._started_at)
        )

    async def count_tokens(self, request: Request) -> Response:
        client_request = self._codecs["anthropic"].decode_request(await request.body())
        return _json_response({"input_tokens": await count_prompt_tokens(client_request.request)})

    async def get_health(self, request: Request) -> Response:
        return _json_response({"status": "ok", "version": callwright.__version__})

    async def get_readiness(self, request: Request) -> Response:
        """Report ready while at least one backend is. Requests for other backends fail with their own message.

        This endpoint needs no key. The reason why a backend is not ready may name its address and goes to the log only.
        """
        problems = await self._check_readiness(get_request_context(request.scope).state.engine)
        is_ready = not all(problems.values()) and not self._service.is_stopping
        status = "stopping" if self._service.is_stopping else "ready" if is_ready else "no backend is reachable"
        backends = {name: not problem for name, problem in problems.items()}
        return _json_response({"status": status, "backends": backends}, 200 if is_ready else 503)

    async def _check_readiness(self, engine: Engine) -> Mapping[str, str]:
        """Check the backends, at most every two seconds. Returns what is wrong with each; empty when it is ready."""
        checked_at, checked_engine, problems = self._last_readiness
        if checked_engine is not engine or time.monotonic() - checked_at > _READINESS_CACHE_SECONDS:
            problems = await engine.check_readiness()
            self._last_readiness = (time.monotonic(), engine, problems)
            for name, problem in problems.items():
                if problem:
                    log.warning("backend %s is not ready: %s", name, problem)
        return problems

    async def get_metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.render_text(), media_type=self._service.metrics.content_type)

    async def get_usage(self, request: Request) -> Response:
        by = [name for name in request.query_params.get("by", ",".join(USAGE_COLUMNS)).split(",") if name]
        since = request.query_params.get("since")
        rows = await self._service.usage.query_usage(by, _parse_day(since) if since else None)
        return _json_response({"object": "list", "data": rows})

    async def get_openapi(self, request: Request) -> Response:
        return _json_response(build_openapi_document())

    async def get_docs(self, request: Request) -> Response:
        return HTMLResponse(self._docs)


def read_object(body: bytes) -> dict[str, Any]:
    """Decode a body that must be a JSON object. Raises `RequestError` otherwise."""
    return dict(parse_body(body).values)


def _list_visible_models(request: Request) -> list[ModelListing]:
    """List the models that the caller may use."""
    context = get_request_context(request.scope)
    return [each for each in context.state.engine.models if can_use_model(context.key, each.name)]


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise RequestError(f"since must be a date such as 2026-01-31, not {text!r}.", param="since") from error


def _json_response(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
