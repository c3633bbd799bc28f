"""Cross-origin rules for clients that run in a browser shell, such as Obsidian.

A preflight is answered before anything asks for a key, since browsers send none with it, and the headers that it asks
for are reflected: OpenAI's JavaScript SDK adds seven `x-stainless-*` of its own, and one header that is missing from a
fixed list blocks every call (seen in Chromium 147 with @langchain/openai 1.5.6; Obsidian Copilot issue 2854). Errors
and streams carry the origin too: without it the browser hides even the message.

Where no key is needed, a page of another origin must not be able to spend this machine's model in a request that
needs no preflight: it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.gateway.exchange import exchange
from callwright.gateway.refusals import Refusals
from callwright.gateway.settings import ServerSettings
from callwright.wire.base import ErrorResponse

__all__ = ["Cors"]

_EXPOSED = (
    "x-request-id, retry-after, x-codex-tool-call-count, x-codex-tool-call-truncated, x-codex-stop-after-tools-mode"
)


class Cors:
    """Answers preflights, and marks every other answer for its origin."""

    def __init__(self, app: ASGIApp, refusals: Refusals) -> None:
        self._app = app
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (origin := exchange(scope).headers.get("origin")) is None:
            await self._app(scope, receive, send)
            return
        state, headers = exchange(scope).state, exchange(scope).headers
        allowed = _allows(state.server, origin)

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                marked = MutableHeaders(scope=message)
                marked.add_vary_header("Origin")
                if allowed:
                    marked["access-control-allow-origin"] = origin
                    marked["access-control-expose-headers"] = _EXPOSED
            await send(message)

        preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if allowed and preflight:
            await _preflight(headers)(scope, receive, send_marked)
        elif preflight or (
            not allowed and state.keyring.open and origin != f"{scope['scheme']}://{headers.get('host')}"
        ):
            await self._refusals.refuse(scope, _foreign(origin))(scope, receive, send_marked)
        else:
            await self._app(scope, receive, send_marked)


def _allows(server: ServerSettings, origin: str) -> bool:
    return "*" in server.origins or origin in server.origins


def _preflight(asked: Mapping[str, str]) -> Response:
    answer = {
        "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
        "access-control-allow-headers": asked.get("access-control-request-headers", "*"),
        "access-control-max-age": "600",
        "vary": "Origin, Access-Control-Request-Headers",
    }
    if asked.get("access-control-request-private-network") == "true":
        answer["access-control-allow-private-network"] = "true"
    return Response(status_code=204, headers=answer)


def _foreign(origin: str) -> ErrorResponse:
    return ErrorResponse(
        status=403,
        message=f"the gateway does not take requests from web pages of {origin[:200]}. If it should, add that origin "
        "to `origins` in the [server] table.",
        fault="client",
        kind="permission_error",
        code="origin_not_allowed",
    )
