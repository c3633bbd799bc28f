"""One HTTP/1.1 response while it is being received.

Received data is returned as it is, joined when several pieces wait. Reading from the socket pauses while more than
`MAX_PENDING_BYTES` wait, which slows the server down. Data that arrived before a failure is returned before the failure
is raised. Every failure is an `OSError`.
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
"""Maximum size of one read of a response that is compressed although no compression was requested."""
_EITHER_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS


class NotHttpError(ConnectionError):
    """The server does not use HTTP."""


class NoResponseError(ConnectionError):
    """The connection was closed before any byte of the response."""


class IncompleteResponseError(ConnectionError):
    """The connection was closed in the middle of the response."""


class HttpResponse:
    """A response on `transport`. `on_close` is called once with whether the connection can be reused."""

    def __init__(self, transport: asyncio.Transport, on_close: Callable[[bool], None]) -> None:
        self.status = 0
        self.is_complete = False
        """Whether everything was received. `read` may still have data to return."""
        self._transport = transport
        self._has_received = False
        self._on_close: Callable[[bool], None] | None = on_close
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._pending_bytes = 0
        self._paused = False
        self._reusable = False
        self._ends_with_connection = False
        """The response has neither a length nor chunks, and ends with the connection."""
        self._inflate: zlib._Decompress | None = None
        self._failure: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None

    # ── for the reader ───────────────────────────────────────────────────────────────────────────

    async def wait_for_headers(self) -> None:
        """Wait for the status and the headers."""
        while not self.status:
            if self._failure is not None:
                raise self._failure
            await self._wait_for_data()

    def get_header(self, name: str) -> str:
        """Return a header by its lower-case name; empty when it is missing."""
        return self._headers.get(name, "")

    async def read(self) -> bytes:
        """Read the next bytes, at least one; empty at the end."""
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
        """Stop reading. A complete response frees its connection for reuse; otherwise the connection is closed, which
        stops the server."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close(self._reusable and self._failure is None)
            self.fail(IncompleteResponseError("closed by us"))

    async def _wait_for_data(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _take_pending(self) -> bytes:
        """Take and join waiting data, at most about 64 KiB, since parsing it needs several times its size."""
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
            raise NotHttpError("the response is not compressed as its header says") from None
        if inflate.unconsumed_tail:
            self._parts.insert(0, inflate.unconsumed_tail)
            self._pending_bytes += len(inflate.unconsumed_tail)
        return out

    # ── for the connection ───────────────────────────────────────────────────────────────────────

    def feed(self, data: bytes) -> None:
        """Process received bytes."""
        self._has_received = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, NotHttpError) as error:
            # An exception of a callback is the context of the parser's own exception.
            self.fail(NotHttpError(str(error.__context__ or error)))
        else:
            self._wake_reader()

    def handle_disconnect(self, error: Exception | None) -> None:
        """Handle the end of the connection."""
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
        """Raise this to the reader, after the data that arrived before it."""
        self._failure = self._failure or failure
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ── callbacks of the parser ──────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise NotHttpError("a second response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _MAX_HEAD_BYTES:
            raise NotHttpError(f"more than {_MAX_HEAD_BYTES} bytes of headers")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # an interim response; the final one follows
            self._headers.clear()
            return
        self.status = status
        chunked = "chunked" in self.get_header("transfer-encoding").lower()
        self._ends_with_connection = not chunked and "content-length" not in self._headers
        encoding = self.get_header("content-encoding").lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(_EITHER_ZLIB_OR_GZIP)
        elif encoding not in ("", "identity"):
            raise NotHttpError(f"the response is compressed with {encoding}, which was not requested")

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
