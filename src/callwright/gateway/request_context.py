"""The context of one HTTP request: its id, the state that it began with, and its caller.

The outermost middleware of the app. It takes `x-request-id` from the client when the value is safe to log, and makes
one otherwise; every response carries it. Cost: one small object per request and one wrapped `send`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.backends.trace_context import TRACEPARENT, continue_trace
from callwright.gateway.service import GatewayService, GatewayState
from callwright.gateway.settings import KeySettings

__all__ = ["RequestContext", "RequestContextMiddleware", "get_request_context"]

_SCOPE_KEY = "callwright.request_context"
_REQUEST_ID_PATTERN = re.compile(r"[\w.:+/=@-]{1,128}", re.ASCII)


@dataclass
class RequestContext:
    """What is known about one request."""

    id: str
    state: GatewayState
    headers: Mapping[str, str]
    """Headers of the request by lower-case name, as ASGI has them. The last of several with one name counts."""
    traceparent: str = ""
    """The trace that the request belongs to, as it is sent to model servers."""
    key: KeySettings | None = None
    """Set by `AuthMiddleware`. None where no key is needed."""


def get_request_context(scope: Scope) -> RequestContext:
    """Return the context of this scope."""
    found: RequestContext = scope[_SCOPE_KEY]
    return found


class RequestContextMiddleware:
    """Creates a context for each request."""

    def __init__(self, app: ASGIApp, service: GatewayService) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        trace = continue_trace(headers.get("traceparent", ""))
        TRACEPARENT.set(trace)
        request_id = given if _REQUEST_ID_PATTERN.fullmatch(given) else f"req_{secrets.token_hex(12)}"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        with self._service.lease_state() as state:
            scope[_SCOPE_KEY] = RequestContext(request_id, state, headers, trace)
            await self._app(scope, receive, send_with_id)
