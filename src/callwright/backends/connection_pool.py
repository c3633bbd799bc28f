"""Connections: an HTTP/1.1 client that adds as little as can be to the time of a turn.

A request is one write, an answer is read as it comes (`Incoming`). A connection is kept for the next request after an
answer that was read to its end, for `KEPT_SECONDS`. One that its server closed in the same moment is replaced by a new
one, once: nothing had come back on it. Redirects are not followed, proxies of the environment not used.
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
"""Of each address of a host before the next one: the recommended delay of RFC 8305."""
_UNQUOTED_CHARACTERS = "/%:@!$&'()*+,;=~?[]"
"""What is not quoted in a path or a query: it is already, or need not be."""


class ConnectTimeoutError(TimeoutError):
    """The server did not take the connection in time."""


ServerEndpoint = tuple[str, int, bool]
"""A server: host, port, and whether it speaks TLS."""


class RequestAddress(NamedTuple):
    """A URL, taken apart once."""

    endpoint: ServerEndpoint
    target: bytes
    """What the request line names."""
    headers: dict[str, str]
    """Those that follow from the URL: they come first, and may be replaced."""

    @classmethod
    @lru_cache(256)
    def from_url(cls, url: str) -> Self:
        """Raises `ValueError` when that is no URL of HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an address of HTTP")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        named = f"[{host}]" if ":" in host else host
        headers = {"host": f"{named}:{parts.port}" if parts.port else named}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        target = quote(parts.path or "/", _UNQUOTED_CHARACTERS) + (
            f"?{quote(parts.query, _UNQUOTED_CHARACTERS)}" if parts.query else ""
        )
        tls = parts.scheme == "https"
        return cls((host, parts.port or (443 if tls else 80), tls), target.encode(), headers)


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent. Raises `ValueError` for one that would not be one line."""
    lines = []
    for name, value in headers.items():
        if not {"\r", "\n", "\0"}.isdisjoint(name + value):
            raise ValueError(f"the header {name!r} holds a line break")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


class ConnectionPool:
    """At most `most` at once; who comes later waits. `seconds` are for a connection to be made. Without `keep` each has
    one request, which is then never sent twice."""

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
        """Send a request, and wait until its answer begins, which must be closed. `head` are its header lines."""
        length = b"content-length: %d\r\n" % len(body) if body else b""
        request = b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (method, address.target, head, length, body)
        await self._slots.acquire()
        incoming = None
        try:
            incoming = await self._start_response(address.endpoint, request)
            return incoming
        finally:
            if incoming is None:
                self._slots.release()

    async def close(self) -> None:
        """Close every connection, also those that are in use."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in tuple(self._open):
            connection.close()

    async def _start_response(self, endpoint: ServerEndpoint, request: bytes) -> HttpResponse:
        while True:
            kept = self._idle.get(endpoint)
            fresh = not kept
            connection = kept.pop() if kept else await self._open_connection(endpoint)
            incoming = connection.send_request(request, partial(self._release_connection, connection))
            begun = False
            try:
                await incoming.wait_for_headers()
                begun = True
            except NoResponseError:
                if fresh:
                    raise
            finally:
                if not begun:  # also when whoever waits was cancelled just as it began
                    connection.close()
            if begun:
                return incoming

    async def _open_connection(self, endpoint: ServerEndpoint) -> _Connection:
        host, port, tls = endpoint
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                link = await start_connection(found, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY)
                try:
                    _, connection = await loop.create_connection(
                        partial(_Connection, endpoint, self._remove_connection),
                        sock=link,
                        ssl=_load_tls_context() if tls else None,
                        server_hostname=host if tls else None,
                    )
                except (OSError, asyncio.CancelledError):
                    link.close()
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
        kept = self._idle.get(connection.endpoint, [])
        if connection in kept:
            kept.remove(connection)

    def _close_expired(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [each for kept in self._idle.values() for each in kept if each.idle_until <= now]:
            connection.close()
            self._remove_connection(connection)
        self._idle = {place: kept for place, kept in self._idle.items() if kept}
        self._sweep_timer = loop.call_later(KEEPALIVE_SECONDS, self._close_expired) if self._idle else None


class _Connection(asyncio.Protocol):
    """One connection, with one answer at a time. `gone` is told when it is closed."""

    def __init__(self, place: ServerEndpoint, gone: Callable[[_Connection], None]) -> None:
        self.endpoint = place
        self._on_closed = gone
        self._response: HttpResponse | None = None
        self.idle_until = 0.0
        """When it has been kept for long enough."""

    def send_request(self, request: bytes, done: Callable[[bool], None]) -> HttpResponse:
        """Send a request. `done` is as for `Incoming`."""
        self._response = HttpResponse(self._transport, done)
        if self.is_closing:
            self._response.handle_disconnect(None)
        else:
            self._transport.write(request)
        return self._response

    def mark_idle(self, until: float) -> None:
        """There is no answer any more that could take what comes."""
        self._response = None
        self.idle_until = until

    @property
    def is_closing(self) -> bool:
        """Whether it can not be used again."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close it now, whatever is still to be sent."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            self.close()  # it speaks unasked
        else:
            self._response.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._response is not None:
            self._response.handle_disconnect(error)
        self._on_closed(self)


@cache
def _load_tls_context() -> ssl.SSLContext:
    """The authorities that this machine trusts; reading them takes some milliseconds."""
    return ssl.create_default_context()
