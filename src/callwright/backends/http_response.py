"""Incoming: one HTTP/1.1 answer while it comes in.

What was received is read as it is, joined when several pieces wait. Reading stops at the socket while more than
`HELD_BYTES` wait here, which is what slows a server down. What came before a connection broke is read before the
failure is told. Every failure is an `OSError`.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

import httptools

__all__ = ["MAX_PENDING_BYTES", "HttpResponse", "IncompleteResponseError", "NoResponseError", "NotHttpError"]

MAX_PENDING_BYTES = 128 * 1024
_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_MAX_INFLATED_BYTES = 1024 * 1024
"""What one read gives at most of an answer that is compressed although we ask for none: a little may become a lot."""
_EITHER_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS


class NotHttpError(ConnectionError):
    """The server speaks something else."""


class NoResponseError(ConnectionError):
    """The connection was closed before a byte of the answer came."""


class IncompleteResponseError(ConnectionError):
    """The connection was closed in the middle of the answer."""


class HttpResponse:
    """An answer on `transport`. `done` is called once with whether the connection may be used for another one."""

    def __init__(self, transport: asyncio.Transport, done: Callable[[bool], None]) -> None:
        self.status = 0
        self.is_complete = False
        """All of it was received; `read` may still have to give it."""
        self._transport = transport
        self._has_received = False
        self._on_close: Callable[[bool], None] | None = done
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._paused = False
        self._reusable = False
        self._ends_with_connection = False
        """Neither a length nor chunks: the answer ends with the connection."""
        self._inflate: zlib._Decompress | None = None
        self._failure: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None

    # ── for whoever reads ────────────────────────────────────────────────────────────────────────

    async def wait_for_headers(self) -> None:
        """Wait for the status and the headers."""
        while not self.status:
            if self._failure is not None:
                raise self._failure
            await self._wait_for_data()

    def get_header(self, name: str) -> str:
        """One of the headers, by its name in small letters; empty when there is none."""
        return self._headers.get(name, "")

    async def read(self) -> bytes:
        """The next bytes, at least one; none at the end."""
        while True:
            if self._parts:
                data = self._take_pending()
                if self._inflate is None or (data := self._decompress_chunk(self._inflate, data)):
                    return data
            elif self.is_complete:
                return b""
            elif self._failure is not None:
                raise self._failure
            else:
                await self._wait_for_data()

    def close(self) -> None:
        """Read no more. The connection is kept if the answer is over; else closing it tells the server to stop."""
        if self._on_close is not None:
            done, self._on_close = self._on_close, None
            done(self._reusable and self._failure is None)
            self.fail(IncompleteResponseError("closed by us"))

    async def _wait_for_data(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _take_pending(self) -> bytes:
        """What waits, joined; of much a part, since whoever reads makes several times as much of it."""
        size = taken = 0
        for part in self._parts:
            size += len(part)
            taken += 1
            if size >= _READ_BYTES:
                break
        data = self._parts[0] if taken == 1 else b"".join(self._parts[:taken])
        del self._parts[:taken]
        self._pending_bytes -= size
        if self._paused and self._pending_bytes <= MAX_PENDING_BYTES:
            self._paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    def _decompress_chunk(self, inflate: zlib._Decompress, data: bytes) -> bytes:
        try:
            out = inflate.decompress(data, _MAX_INFLATED_BYTES)
        except zlib.error:
            raise NotHttpError("the answer is not compressed as it says") from None
        if inflate.unconsumed_tail:
            self._parts.insert(0, inflate.unconsumed_tail)
            self._pending_bytes += len(inflate.unconsumed_tail)
        return out

    # ── for the connection ───────────────────────────────────────────────────────────────────────

    def feed(self, data: bytes) -> None:
        """Take what was received."""
        self._has_received = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, NotHttpError) as error:
            # What a callback raises comes out as the context of the parser's own error.
            self.fail(NotHttpError(str(error.__context__ or error)))
        else:
            self._wake_reader()

    def handle_disconnect(self, error: Exception | None) -> None:
        """The connection is closed."""
        if self.is_complete:
            return
        if self._ends_with_connection and error is None:
            self.is_complete = True
            self._wake_reader()
        elif not self._has_received:
            self.fail(NoResponseError("closed without an answer"))
        else:
            self.fail(IncompleteResponseError("closed in the middle of an answer"))

    def fail(self, failure: OSError) -> None:
        """Whoever reads gets this after what came before."""
        self._failure = self._failure or failure
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ── what the parser finds ────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise NotHttpError("another answer, to nothing that was asked")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _MAX_HEAD_BYTES:
            raise NotHttpError(f"more than {_MAX_HEAD_BYTES} bytes of headers")
        key, said = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {said}" if key in self._headers else said

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # a word in between; the answer follows
            self._headers.clear()
            return
        self.status = status
        chunked = "chunked" in self.get_header("transfer-encoding").lower()
        self._ends_with_connection = not chunked and "content-length" not in self._headers
        encoding = self.get_header("content-encoding").lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(_EITHER_ZLIB_OR_GZIP)
        elif encoding not in ("", "identity"):
            raise NotHttpError(f"the answer is compressed with {encoding}, which was not asked for")

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > MAX_PENDING_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.status:
            self.is_complete = True
            self._reusable = self._parser.should_keep_alive()
