"""An HTTP/1.1 client with minimal overhead per turn.

A request is one write, and a response is read as it arrives (`HttpResponse`). After a response that was read to its end
the connection is kept for `KEEPALIVE_SECONDS`. When the server closed a kept connection at the same moment, the request
is sent once more on a new one, since nothing had come back. Redirects are not followed, and proxy settings of the
environment are ignored.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import NamedTuple, Self, cast
from urllib.parse import quote, unquote, urlsplit

from aiohappyeyeballs import start_connection

from callwright.backends.http_response import HttpResponse, NoResponseError

__all__ = ["ConnectTimeoutError", "ConnectionPool", "RequestAddress", "encode_headers"]

KEEPALIVE_SECONDS = 15.0
_HAPPY_EYEBALLS_DELAY = 0.25
"""Seconds before the next address of a host is tried: the delay that RFC 8305 recommends."""
_UNQUOTED_CHARACTERS = "/%:@!$&'()*+,;=~?[]"
"""Characters that need no quoting in a path or a query."""


class ConnectTimeoutError(TimeoutError):
    """The server did not accept the connection in time."""


ServerEndpoint = tuple[str, int, bool]
"""Host, port, and whether to use TLS."""


class RequestAddress(NamedTuple):
    """The parsed URL of a request."""

    endpoint: ServerEndpoint
    target: bytes
    """The target in the request line."""
    headers: dict[str, str]
    """Headers that follow from the URL. They may be overridden."""

    @classmethod
    @lru_cache(256)
    def from_url(cls, url: str) -> Self:
        """Parse a URL. Raises `ValueError` when it is not an HTTP URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an HTTP URL")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        host_header = f"[{host}]" if ":" in host else host
        headers = {"host": f"{host_header}:{parts.port}" if parts.port else host_header}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        target = quote(parts.path or "/", _UNQUOTED_CHARACTERS) + (
            f"?{quote(parts.query, _UNQUOTED_CHARACTERS)}" if parts.query else ""
        )
        tls = parts.scheme == "https"
        return cls((host, parts.port or (443 if tls else 80), tls), target.encode(), headers)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Encode header lines. Raises `ValueError` for a header with a line break."""
    lines = []
    for name, value in headers.items():
        if not {"\r", "\n", "\0"}.isdisjoint(name + value):
            raise ValueError(f"the header {name!r} contains a line break")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


class ConnectionPool:
    """Opens at most `limit` connections at a time; further requests wait. Connecting may take `seconds`. With
    `reuse=False` each connection serves one request, and no request is sent twice."""

    def __init__(self, limit: int, seconds: float, *, reuse: bool = True) -> None:
        self._reuses_connections = reuse
        self._slots = asyncio.Semaphore(limit)
        self._seconds = seconds
        self._idle: dict[ServerEndpoint, list[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    async def send_request(
        self, method: bytes, address: RequestAddress, head: bytes, body: bytes = b""
    ) -> HttpResponse:
        """Send a request and wait for the response to begin. The caller must close it. `head` are the header lines."""
        length = b"content-length: %d\r\n" % len(body) if body else b""
        request = b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (method, address.target, head, length, body)
        await self._slots.acquire()
        response = None
        try:
            response = await self._start_response(address.endpoint, request)
            return response
        finally:
            if response is None:
                self._slots.release()

    async def close(self) -> None:
        """Close every connection, including those in use."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in tuple(self._open):
            connection.close()

    async def _start_response(self, endpoint: ServerEndpoint, request: bytes) -> HttpResponse:
        while True:
            idle = self._idle.get(endpoint)
            is_new = not idle
            connection = idle.pop() if idle else await self._open_connection(endpoint)
            response = connection.send_request(request, partial(self._release_connection, connection))
            has_started = False
            try:
                await response.wait_for_headers()
                has_started = True
            except NoResponseError:
                if is_new:
                    raise
            finally:
                if not has_started:  # also when the caller was cancelled just as the response began
                    connection.close()
            if has_started:
                return response

    async def _open_connection(self, endpoint: ServerEndpoint) -> _Connection:
        host, port, tls = endpoint
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                sock = await start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY)
                try:
                    _, connection = await loop.create_connection(
                        partial(_Connection, endpoint, self._remove_connection),
                        sock=sock,
                        ssl=_load_tls_context() if tls else None,
                        server_hostname=host if tls else None,
                    )
                except (OSError, asyncio.CancelledError):
                    sock.close()
                    raise
        except TimeoutError:
            raise ConnectTimeoutError from None
        self._open.add(connection)
        return connection

    def _release_connection(self, connection: _Connection, reusable: bool) -> None:
        self._slots.release()
        if not (reusable and self._reuses_connections) or connection.is_closing:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.mark_idle(loop.time() + KEEPALIVE_SECONDS)
        self._idle.setdefault(connection.endpoint, []).append(connection)
        if self._sweep_timer is None:
            self._sweep_timer = loop.call_later(KEEPALIVE_SECONDS, self._close_expired)

    def _remove_connection(self, connection: _Connection) -> None:
        self._open.discard(connection)
        idle = self._idle.get(connection.endpoint, [])
        if connection in idle:
            idle.remove(connection)

    def _close_expired(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [each for idle in self._idle.values() for each in idle if each.idle_until <= now]:
            connection.close()
            self._remove_connection(connection)
        self._idle = {endpoint: idle for endpoint, idle in self._idle.items() if idle}
        self._sweep_timer = loop.call_later(KEEPALIVE_SECONDS, self._close_expired) if self._idle else None


class _Connection(asyncio.Protocol):
    """One connection with one response at a time. `on_closed` is called when it is closed."""

    def __init__(self, endpoint: ServerEndpoint, on_closed: Callable[[_Connection], None]) -> None:
        self.endpoint = endpoint
        self._on_closed = on_closed
        self._response: HttpResponse | None = None
        self.idle_until = 0.0
        """When an idle connection expires."""

    def send_request(self, request: bytes, on_close: Callable[[bool], None]) -> HttpResponse:
        """Send a request. `on_close` is passed to `HttpResponse`."""
        self._response = HttpResponse(self._transport, on_close)
        if self.is_closing:
            self._response.handle_disconnect(None)
        else:
            self._transport.write(request)
        return self._response

    def mark_idle(self, until: float) -> None:
        """Mark the connection as idle until this time."""
        self._response = None
        self.idle_until = until

    @property
    def is_closing(self) -> bool:
        """Whether the connection can no longer be used."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection at once and discard unsent data."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            self.close()  # data without a request
        else:
            self._response.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._response is not None:
            self._response.handle_disconnect(error)
        self._on_closed(self)


@cache
def _load_tls_context() -> ssl.SSLContext:
    """Load the certificate authorities of this machine, once: it takes some milliseconds."""
    return ssl.create_default_context()
