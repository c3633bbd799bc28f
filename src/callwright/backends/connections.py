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

from callwright.backends.incoming import Incoming, NoAnswerError

__all__ = ["Address", "ConnectTimeoutError", "Connections", "head_lines"]

KEPT_SECONDS = 15.0
_HEAD_START_SECONDS = 0.25
"""Of each address of a host before the next one: the recommended delay of RFC 8305."""
_AS_IT_IS = "/%:@!$&'()*+,;=~?[]"
"""What is not quoted in a path or a query: it is already, or need not be."""


class ConnectTimeoutError(TimeoutError):
    """The server did not take the connection in time."""


Place = tuple[str, int, bool]
"""A server: host, port, and whether it speaks TLS."""


class Address(NamedTuple):
    """A URL, taken apart once."""

    place: Place
    target: bytes
    """What the request line names."""
    headers: dict[str, str]
    """Those that follow from the URL: they come first, and may be replaced."""

    @classmethod
    @lru_cache(256)
    def of(cls, url: str) -> Self:
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
        target = quote(parts.path or "/", _AS_IT_IS) + (f"?{quote(parts.query, _AS_IT_IS)}" if parts.query else "")
        tls = parts.scheme == "https"
        return cls((host, parts.port or (443 if tls else 80), tls), target.encode(), headers)


def head_lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent. Raises `ValueError` for one that would not be one line."""
    lines = []
    for name, value in headers.items():
        if not {"\r", "\n", "\0"}.isdisjoint(name + value):
            raise ValueError(f"the header {name!r} holds a line break")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


class Connections:
    """At most `most` at once; who comes later waits. `seconds` are for a connection to be made. Without `keep` each has
    one request, which is then never sent twice."""

    def __init__(self, most: int, seconds: float, *, keep: bool = True) -> None:
        self._keep = keep
        self._room = asyncio.Semaphore(most)
        self._seconds = seconds
        self._kept: dict[Place, list[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None

    async def ask(self, method: bytes, address: Address, head: bytes, body: bytes = b"") -> Incoming:
        """Send a request, and wait until its answer begins, which must be closed. `head` are its header lines."""
        length = b"content-length: %d\r\n" % len(body) if body else b""
        request = b"%b %b HTTP/1.1\r\n%b%b\r\n%b" % (method, address.target, head, length, body)
        await self._room.acquire()
        incoming = None
        try:
            incoming = await self._begun(address.place, request)
            return incoming
        finally:
            if incoming is None:
                self._room.release()

    async def close(self) -> None:
        """Close every connection, also those that are in use."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self._open):
            connection.close()

    async def _begun(self, place: Place, request: bytes) -> Incoming:
        while True:
            kept = self._kept.get(place)
            fresh = not kept
            connection = kept.pop() if kept else await self._connected(place)
            incoming = connection.ask(request, partial(self._done, connection))
            begun = False
            try:
                await incoming.begin()
                begun = True
            except NoAnswerError:
                if fresh:
                    raise
            finally:
                if not begun:  # also when whoever waits was cancelled just as it began
                    connection.close()
            if begun:
                return incoming

    async def _connected(self, place: Place) -> _Connection:
        host, port, tls = place
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                link = await start_connection(found, happy_eyeballs_delay=_HEAD_START_SECONDS)
                try:
                    _, connection = await loop.create_connection(
                        partial(_Connection, place, self._gone),
                        sock=link,
                        ssl=_trusted() if tls else None,
                        server_hostname=host if tls else None,
                    )
                except (OSError, asyncio.CancelledError):
                    link.close()
                    raise
        except TimeoutError:
            raise ConnectTimeoutError from None
        self._open.add(connection)
        return connection

    def _done(self, connection: _Connection, reusable: bool) -> None:
        self._room.release()
        if not (reusable and self._keep) or connection.is_closing:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.rest(loop.time() + KEPT_SECONDS)
        self._kept.setdefault(connection.place, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(KEPT_SECONDS, self._close_old)

    def _gone(self, connection: _Connection) -> None:
        self._open.discard(connection)
        kept = self._kept.get(connection.place, [])
        if connection in kept:
            kept.remove(connection)

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [each for kept in self._kept.values() for each in kept if each.until <= now]:
            connection.close()
            self._gone(connection)
        self._kept = {place: kept for place, kept in self._kept.items() if kept}
        self._sweep = loop.call_later(KEPT_SECONDS, self._close_old) if self._kept else None


class _Connection(asyncio.Protocol):
    """One connection, with one answer at a time. `gone` is told when it is closed."""

    def __init__(self, place: Place, gone: Callable[[_Connection], None]) -> None:
        self.place = place
        self._tell_gone = gone
        self._incoming: Incoming | None = None
        self.until = 0.0
        """When it has been kept for long enough."""

    def ask(self, request: bytes, done: Callable[[bool], None]) -> Incoming:
        """Send a request. `done` is as for `Incoming`."""
        self._incoming = Incoming(self._transport, done)
        if self.is_closing:
            self._incoming.lost(None)
        else:
            self._transport.write(request)
        return self._incoming

    def rest(self, until: float) -> None:
        """There is no answer any more that could take what comes."""
        self._incoming = None
        self.until = until

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
        if self._incoming is None:
            self.close()  # it speaks unasked
        else:
            self._incoming.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._incoming is not None:
            self._incoming.lost(error)
        self._tell_gone(self)


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities that this machine trusts; reading them takes some milliseconds."""
    return ssl.create_default_context()
