"""Checks API keys. No key is needed on loopback when none is configured.

Accepts `Authorization: Bearer` (OpenAI's clients), `x-api-key` (Anthropic's), `api-key` (Azure's), and Basic with the
key as password for people who open a page in a browser. Browsers repeat Basic credentials by themselves, also on
requests that another site causes, so Basic is accepted only for methods that change nothing.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.keys import is_loopback_host
from callwright.gateway.request_context import get_request_context
from callwright.wire.base import ErrorResponse

__all__ = ["AuthMiddleware", "read_api_key"]

PUBLIC_PATHS = frozenset({"/", "/health", "/healthz", "/readyz", "/api/hello", "/bridge/client.js", "/bridge/example"})
_CHALLENGE = {"www-authenticate": 'Bearer, Basic realm="Callwright: any name, and a key as the password"'}


class AuthMiddleware:
    """Refuses requests without a valid key, and records whose key a request has."""

    def __init__(self, app: ASGIApp, error_responder: ErrorResponder) -> None:
        self._app = app
        self._error_responder = error_responder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC_PATHS or scope["method"] == "OPTIONS":
            await self._app(scope, receive, send)
            return
        context = get_request_context(scope)
        keyring = context.state.keyring
        headers = context.headers
        if keyring.is_open:
            problem = None if is_loopback_host(_parse_hostname(headers)) else _HOST_NOT_ALLOWED
        else:
            secret = read_api_key(headers, allow_basic=scope["method"] in ("GET", "HEAD"))
            context.key = keyring.find_key(secret)
            problem = None if context.key else _INVALID_KEY if secret else _MISSING_KEY
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await self._error_responder.refuse_request(scope, problem, _CHALLENGE if problem.status == 401 else None)(
                scope, receive, send
            )


def read_api_key(headers: Mapping[str, str], *, allow_basic: bool = False) -> str:
    """Read the key of a request; empty when it has none. `allow_basic` accepts Basic credentials too."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    if scheme.lower() == "basic" and allow_basic:
        try:
            return b64decode(value, validate=True).decode("utf-8", "replace").partition(":")[2]
        except (binascii.Error, ValueError):
            return ""
    return headers.get("x-api-key") or headers.get("api-key") or ""


def _parse_hostname(headers: Mapping[str, str]) -> str:
    host = headers.get("host", "localhost")
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.rpartition(":")[0] or host


def _build_auth_error(message: str, code: str) -> ErrorResponse:
    return ErrorResponse(status=401, message=message, fault="client", kind="authentication_error", code=code)


_MISSING_KEY = _build_auth_error(
    "this gateway requires an API key. Set the key in your client, which sends it as `Authorization: Bearer …` or "
    "`x-api-key: …`.",
    "missing_api_key",
)
_INVALID_KEY = _build_auth_error(
    "the API key is invalid. Compare the key in your client with the gateway's [[keys]] tables.",
    "invalid_api_key",
)
# A web page can let its own host name resolve to 127.0.0.1, and is then of the same origin as the gateway.
_HOST_NOT_ALLOWED = ErrorResponse(
    status=403,
    message="the gateway has no keys, so it accepts only the host names localhost and 127.0.0.1. To use another name, "
    "add a [[keys]] table.",
    fault="client",
    kind="permission_error",
    code="host_not_allowed",
)
