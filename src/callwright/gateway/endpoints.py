"""Every endpoint that asks no model: listings, health, metrics, usage, documentation."""

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
from callwright.engine.tokens import prompt_tokens
from callwright.errors import RequestError
from callwright.gateway import listing
from callwright.gateway.exchange import exchange
from callwright.gateway.keys import may_use
from callwright.gateway.ledger import COLUMNS
from callwright.gateway.openapi import description
from callwright.gateway.service import Service
from callwright.wire.base import ServerCodec
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["Endpoints", "read_object"]

log = logging.getLogger("callwright.gateway")

_READY_SECONDS = 2.0
_GREETING = (
    f"Callwright {callwright.__version__} is running: OpenAI's, Anthropic's and Ollama's API in one place; see /docs. "
    # Some clients of Ollama look for these words here.
    "To clients set to Ollama: Ollama is running\n"
)


class Endpoints:
    """The handlers, one method each."""

    def __init__(self, service: Service, served: Mapping[str, ServerCodec]) -> None:
        self._service = service
        self._served = served
        self._since = datetime.now(UTC).replace(microsecond=0)
        self._checked: tuple[float, Engine | None, Mapping[str, str]] = (0.0, None, {})
        self._docs = files(callwright).joinpath("gateway", "docs.html").read_text(encoding="utf-8")

    async def root(self, request: Request) -> Response:
        return PlainTextResponse(_GREETING)

    async def hello(self, request: Request) -> Response:
        """Claude Code 2.1 sends a HEAD here to warm the connection up."""
        return _json({"message": "hello"})

    async def models(self, request: Request) -> Response:
        return _json(listing.list_of(_visible(request), self._since))

    async def model(self, request: Request) -> Response:
        name, found = listing.find(_visible(request), request.path_params["id"])
        return _json(listing.model(name, found, self._since))

    async def version(self, request: Request) -> Response:
        return _json({"version": listing.OLLAMA_VERSION, "callwright": callwright.__version__})

    async def tags(self, request: Request) -> Response:
        return _json(listing.tags(_visible(request), self._since))

    async def ps(self, request: Request) -> Response:
        return _json(listing.ps(_visible(request), self._since))

    async def show(self, request: Request) -> Response:
        body = read_object(await request.body())
        name = body.get("model") or body.get("name")
        if not isinstance(name, str):
            raise RequestError("model must be the name of a model.", param="model")
        return _json(listing.show(listing.find(_visible(request), name)[1], self._since))

    async def count_tokens(self, request: Request) -> Response:
        ask = self._served["anthropic"].decode_request(await request.body())
        return _json({"input_tokens": await prompt_tokens(ask.request)})

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "version": callwright.__version__})

    async def ready(self, request: Request) -> Response:
        """Ready while one backend is: requests for others fail by themselves, with their own message.

        Anybody may ask, so what is wrong with a backend, which may name its address, goes to the log only.
        """
        wrong = await self._readiness(exchange(request.scope).state.engine)
        able = not all(wrong.values()) and not self._service.stopping
        status = "stopping" if self._service.stopping else "ready" if able else "no backend can be reached"
        backends = {name: not problem for name, problem in wrong.items()}
        return _json({"status": status, "backends": backends}, 200 if able else 503)

    async def _readiness(self, engine: Engine) -> Mapping[str, str]:
        """Asked at most every few seconds, however often we are."""
        at, asked, wrong = self._checked
        if asked is not engine or time.monotonic() - at > _READY_SECONDS:
            wrong = await engine.ready()
            self._checked = (time.monotonic(), engine, wrong)
            for name, problem in wrong.items():
                if problem:
                    log.warning("the backend %s is not ready: %s", name, problem)
        return wrong

    async def metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.page(), media_type=self._service.metrics.content_type)

    async def usage(self, request: Request) -> Response:
        by = [name for name in request.query_params.get("by", ",".join(COLUMNS)).split(",") if name]
        since = request.query_params.get("since")
        rows = await self._service.ledger.query(by, _day(since) if since else None)
        return _json({"object": "list", "data": rows})

    async def openapi(self, request: Request) -> Response:
        return _json(description())

    async def docs(self, request: Request) -> Response:
        return HTMLResponse(self._docs)


def read_object(body: bytes) -> dict[str, Any]:
    """A body that must be a JSON object."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except JSON_DECODE_ERRORS as error:
        raise RequestError(f"the body is not a JSON object: {error}") from error


def _visible(request: Request) -> list[ModelListing]:
    """The models that the caller may use."""
    opened = exchange(request.scope)
    return [each for each in opened.state.engine.models if may_use(opened.key, each.name)]


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise RequestError(f"since: {text!r} is no day such as 2026-01-31.", param="since") from error


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
