"""Outflow: one stream on its way to a client.

Everything that is sent goes through one lock, so that signs of life and held-back text, which come by the clock, never
stand in the middle of something else. Nothing is queued: a client that does not read holds up whoever writes, and so
the backend, and memory stays bounded by the server's own write buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from starlette.types import Send

from callwright.events import Event
from callwright.wire.base import ErrorResponse, StreamEncoder

__all__ = ["Outflow"]

_FLUSH_SECONDS = 0.04
"""How long text may wait to be joined with what follows: less than an eye sees."""


class Outflow:
    """Writes an encoder's bytes. The stream is opened by what is written first, or when that takes too long; `end` or
    `fail` close it. `stop` must be called in any case."""

    def __init__(
        self, send: Send, encoder: StreamEncoder, content_type: str, *, heartbeat_seconds: float, open_seconds: float
    ) -> None:
        self._send = send
        self._encoder = encoder
        self._content_type = content_type.encode()
        self._period = heartbeat_seconds
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._pulse = self._loop.call_later(open_seconds, self._open_late)
        self._flush: asyncio.TimerHandle | None = None
        self._late: set[asyncio.Task[None]] = set()
        self.opened = False
        """Whether the client has its status: from now on a failure is an ending of the stream."""

    async def write(self, events: Sequence[Event], choice: int = 0) -> None:
        """Send a choice's next events."""
        async with self._lock:
            begin = b"" if self.opened else await self._open()
            data = self._encoder.encode_events(events, choice)
            if begin or data:
                await self._write(begin + data)
        if self._flush is None and self._encoder.has_pending:
            self._flush = self._loop.call_later(_FLUSH_SECONDS, self._flush_late)

    async def end(self, comment: str) -> None:
        """Send the stream's last bytes."""
        await self._close(self._encoder.end_stream(comment))

    async def fail(self, problem: ErrorResponse) -> None:
        """Send an ending that says what went wrong."""
        await self._close(self._encoder.fail_stream(problem))

    def stop(self) -> None:
        """Stop the timers: nothing more is sent."""
        self._pulse.cancel()
        if self._flush is not None:
            self._flush.cancel()
        for task in self._late:
            task.cancel()

    async def _open(self) -> bytes:
        """Send the status and the headers; returns the stream's first bytes."""
        self.opened = True
        self._pulse.cancel()
        if self._period > 0:
            self._pulse = self._loop.call_later(self._period, self._beat)
        # The last header tells nginx not to hold a stream back.
        headers = [
            (b"content-type", self._content_type),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        return self._encoder.begin_stream()

    async def _close(self, last: bytes) -> None:
        self.stop()
        async with self._lock:
            await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _write(self, data: bytes) -> None:
        self._last = self._loop.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    # ── by the clock ─────────────────────────────────────────────────────────────────────────────

    def _open_late(self) -> None:
        """Nothing was said for long: show the client that we live, at the price of a proper error status."""
        self._soon(self._send_opening())

    def _beat(self) -> None:
        """A sign of life, if nothing was sent for a period; then again after the rest of the next."""
        silent = self._loop.time() - self._last
        if silent >= self._period:
            self._soon(self._send_heartbeat())
            silent = 0.0
        self._pulse = self._loop.call_later(self._period - silent, self._beat)

    def _flush_late(self) -> None:
        self._flush = None
        if self._encoder.has_pending:
            self._soon(self._send_held())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        # A client that does not read keeps the lock busy: one late sender at a time is enough.
        if self._late:
            work.close()
            return
        task = self._loop.create_task(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _send_opening(self) -> None:
        async with self._lock:
            if not self.opened:
                await self._write(await self._open())

    async def _send_heartbeat(self) -> None:
        async with self._lock:
            if data := self._encoder.encode_heartbeat():
                await self._write(data)

    async def _send_held(self) -> None:
        async with self._lock:
            if data := self._encoder.flush():
                await self._write(data)
