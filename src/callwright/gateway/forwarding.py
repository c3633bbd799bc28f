"""Forwards requests that are no turns, such as embeddings, to a backend with the same API."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.backends.base import Backend
from callwright.errors import RequestError
from callwright.gateway.endpoints import read_object
from callwright.gateway.keys import check_model_access
from callwright.gateway.request_context import get_request_context

__all__ = ["forward_request"]

_OLLAMA_KINDS = ("ollama",)
_OPENAI_KINDS = ("openai", "responses", "completions", "harmony")


async def forward_request(request: Request) -> Response:
    """Forward a request under the backend's own name for the model."""
    body = read_object(await request.body())
    name = body.get("model")
    if not isinstance(name, str):
        raise RequestError("model must be the name of a model.", param="model")
    context = get_request_context(request.scope)
    engine = context.state.engine
    route = await engine.find_route(name)
    check_model_access(context.key, route.settings.name)
    path = request.url.path
    backend = next(
        (engine.backends[each] for each in route.backends if _supports_path(engine.backends[each], path)), None
    )
    if backend is None:
        raise RequestError(
            f"the backend of the model {name!r} does not support {path}. Use a model of a backend of kind "
            f"{'ollama' if path.startswith('/api/') else 'openai'}.",
            param="model",
            status=501,
            code="not_supported",
        )
    body["model"] = route.upstream
    # The `url` of a backend with OpenAI's API already ends in `/v1`.
    answer = await backend.forward_request(path.removeprefix("/v1"), msgspec.json.encode(body))
    content_type = next(
        (value for key, value in answer.headers.items() if key.lower() == "content-type"), "application/json"
    )
    return Response(answer.body, answer.status, {"content-type": content_type})


def _supports_path(backend: Backend, path: str) -> bool:
    return backend.settings.kind in (_OLLAMA_KINDS if path.startswith("/api/") else _OPENAI_KINDS)
