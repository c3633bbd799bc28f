"""CORS for clients that run in a browser, such as Obsidian.

A preflight is answered before the key is checked, since browsers send no key with it. The response allows every header
that the preflight names: OpenAI's JavaScript SDK adds seven `x-stainless-*` headers, and a fixed list that lacks one
blocks every request (seen in Chromium 147 with @langchain/openai 1.5.6; Obsidian Copilot issue 2854). Errors and
streams carry the CORS headers too: without them the browser hides even the message.

Where no key is needed, requests of other origins are refused, so that a foreign page cannot use the models of this
machine with a request that needs no preflight.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.request_context import get_request_context
from callwright.gateway.settings import ServerSettings
from callwright.wire.base import ErrorResponse

__all__ = ["CorsMiddleware"]

_EXPOSED_HEADERS = (
    "x-request-id, retry-after, x-codex-tool-call-count, x-codex-tool-call-truncated, x-codex-stop-after-tools-mode"
)


class CorsMiddleware:
    """Answers preflights and adds CORS headers to every other response."""

    def __init__(self, app: ASGIApp, error_responder: ErrorResponder) -> None:
        self._app = app
        self._error_responder = error_responder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (origin := get_request_context(scope).headers.get("origin")) is None:
            await self._app(scope, receive, send)
            return
        state, headers = get_request_context(scope).state, get_request_context(scope).headers
        allowed = _is_origin_allowed(state.server, origin)

        async def send_with_cors(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                response_headers.add_vary_header("Origin")
                if allowed:
                    response_headers["access-control-allow-origin"] = origin
                    response_headers["access-control-expose-headers"] = _EXPOSED_HEADERS
            await send(message)

        preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if allowed and preflight:
            await _build_preflight_response(headers)(scope, receive, send_with_cors)
        elif preflight or (
            not allowed and state.keyring.is_open and origin != f"{scope['scheme']}://{headers.get('host')}"
        ):
            await self._error_responder.refuse_request(scope, _build_origin_error(origin))(
                scope, receive, send_with_cors
            )
        else:
            await self._app(scope, receive, send_with_cors)


def _is_origin_allowed(server: ServerSettings, origin: str) -> bool:
    return "*" in server.origins or origin in server.origins


def _build_preflight_response(request_headers: Mapping[str, str]) -> Response:
    headers = {
        "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
        "access-control-allow-headers": request_headers.get("access-control-request-headers", "*"),
        "access-control-max-age": "600",
        "vary": "Origin, Access-Control-Request-Headers",
    }
    if request_headers.get("access-control-request-private-network") == "true":
        headers["access-control-allow-private-network"] = "true"
    return Response(status_code=204, headers=headers)


def _build_origin_error(origin: str) -> ErrorResponse:
    return ErrorResponse(
        status=403,
        message=f"the gateway does not accept requests from the origin {origin[:200]}. To allow it, add it to "
        "`origins` in the [server] table.",
        fault="client",
        kind="permission_error",
        code="origin_not_allowed",
    )
