"""Who may come in: a key by any of the headers that clients use, or none on loopback where none is set.

`Authorization: Bearer` (OpenAI's clients), `x-api-key` (Anthropic's), `api-key` (Azure's), and Basic with the key as
password for a person who opens a page in a browser. Browsers repeat Basic credentials by themselves, also when a
foreign page makes them, so it only opens what changes nothing.
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
    """Lets in who has a key, and notes whose it is."""

    def __init__(self, app: ASGIApp, refusals: ErrorResponder) -> None:
        self._app = app
        self._error_responder = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC_PATHS or scope["method"] == "OPTIONS":
            await self._app(scope, receive, send)
            return
        opened = get_request_context(scope)
        keyring = opened.state.keyring
        headers = opened.headers
        if keyring.is_open:
            problem = None if is_loopback_host(_parse_hostname(headers)) else _HOST_NOT_ALLOWED
        else:
            secret = read_api_key(headers, allow_basic=scope["method"] in ("GET", "HEAD"))
            opened.key = keyring.find_key(secret)
            problem = None if opened.key else _INVALID_KEY if secret else _MISSING_KEY
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await self._error_responder.refuse_request(scope, problem, _CHALLENGE if problem.status == 401 else None)(
                scope, receive, send
            )


def read_api_key(headers: Mapping[str, str], *, allow_basic: bool = False) -> str:
    """The key that a request brings; empty for none. `browser` takes Basic, too."""
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
    "this gateway asks for a key and the request has none. Set the API key in your client; it is sent as "
    "`Authorization: Bearer …` or `x-api-key: …`.",
    "missing_api_key",
)
_INVALID_KEY = _build_auth_error(
    "the key in it is not one of this gateway's. Compare the API key in your client with the gateway's "
    "[[keys]] tables.",
    "invalid_api_key",
)
# A page of the web can make its own name point to 127.0.0.1 and then counts as same-origin with us.
_HOST_NOT_ALLOWED = ErrorResponse(
    status=403,
    message="the gateway has no keys set, so it answers only when it is addressed as localhost or 127.0.0.1. To reach "
    "it by another name, add a [[keys]] table.",
    fault="client",
    kind="permission_error",
    code="host_not_allowed",
)
