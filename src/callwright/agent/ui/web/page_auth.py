"""Authenticates requests: only the user who can read the terminal has access, and only through our own page.

- `Host` must be a name that the page is served under: a foreign name that resolves to this machine would let a foreign
  page pass for ours (DNS rebinding).
- `Origin` must be our own page: scheme, name and port. Browsers let any page open a WebSocket to any address, and send
  our cookie with requests from pages on other ports of this machine.
- The token is exchanged once for a cookie that scripts cannot read. Both are compared in constant time.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOOPBACK_HOSTS", "PageAuth"]

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_SECURITY_HEADERS = {
    # Trusted types make the browser refuse text that is inserted as HTML, in case our own code ever tries that.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_SAFE_METHODS = ("GET", "HEAD")


class PageAuth:
    """ASGI middleware. `public_paths` contain no secret, so that any user of this machine may load them."""

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str], public_paths: Collection[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        self._public_paths = public_paths
        self._cookie_value = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif problem := self._find_problem(scope):
            await _send_refusal(scope, receive, send, problem)
        else:
            await self._app(scope, receive, _add_security_headers(send))

    def issue_cookie(self, token: str, host: str) -> Response:
        """Return the cookie for a token, or a refusal."""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return JSONResponse({"problem": "Invalid token."}, 403)
        response = Response(status_code=204)
        response.set_cookie(_make_cookie_name(host), self._cookie_value, httponly=True, samesite="strict", path="/")
        return response

    def _find_problem(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _strip_port(host) not in self._hosts:
            return "Unknown host name."
        origin = headers.get("origin")
        harmless = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
        if origin is not None and not harmless and origin != f"http://{host}":
            return "Requests from other origins are not allowed."
        if scope["path"] in self._public_paths:
            return ""
        cookie = _parse_cookies(headers).get(_make_cookie_name(host), "")
        return (
            ""
            if secrets.compare_digest(cookie.encode(), self._cookie_value.encode())
            else "Not signed in: open the URL with the token."
        )


def _strip_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _make_cookie_name(host: str) -> str:
    """Return the cookie's name, which contains the port: browsers share cookies between the ports of a host."""
    return f"callwright-agent-{host.rpartition(':')[2]}" if ":" in host else "callwright-agent"


def _parse_cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _add_security_headers(send: Send) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_SECURITY_HEADERS)
        await send(message)

    return send_guarded


async def _send_refusal(scope: Scope, receive: Receive, send: Send, problem: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the connection request
        await send({"type": "websocket.close"})  # before it is accepted: the browser sees a 403
    else:
        await JSONResponse({"problem": problem}, 403)(scope, receive, _add_security_headers(send))
