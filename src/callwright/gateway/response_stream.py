"""Sends one response stream to a client.

All bytes go through one lock, so heartbeats and buffered text, which timers send, never interrupt another write.
Nothing is queued: a client that does not read delays the writer and with it the backend, and memory stays bounded by
the server's write buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from starlette.types import Send

from callwright.events import Event
from callwright.wire.base import ErrorResponse, StreamEncoder

__all__ = ["ResponseStream"]

_FLUSH_SECONDS = 0.04
"""How long text may wait to be joined with the text that follows. Too short to be seen."""


class ResponseStream:
    """Writes an encoder's bytes. The first write opens the stream, or a timer when there is none in time; `end` or
    `fail` closes it. Always call `cancel_timers` at the end."""

    def __init__(
        self, send: Send, encoder: StreamEncoder, content_type: str, *, heartbeat_seconds: float, open_seconds: float
    ) -> None:
        self._send = send
        self._encoder = encoder
        self._content_type = content_type.encode()
        self._heartbeat_seconds = heartbeat_seconds
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._last_write = 0.0
        self._timer = self._loop.call_later(open_seconds, self._open_on_timeout)
        self._flush_timer: asyncio.TimerHandle | None = None
        self._senders: set[asyncio.Task[None]] = set()
        self.has_started = False
        """Whether the client has received the status. From then on, a failure must end the stream."""

    async def write(self, events: Sequence[Event], choice: int = 0) -> None:
        """Send the next events of one choice."""
        async with self._lock:
            opening = b"" if self.has_started else await self._send_start()
            data = self._encoder.encode_events(events, choice)
            if opening or data:
                await self._send_body(opening + data)
        if self._flush_timer is None and self._encoder.has_pending:
            self._flush_timer = self._loop.call_later(_FLUSH_SECONDS, self._flush_on_timeout)

    async def end(self, comment: str) -> None:
        """Send the last bytes of the stream."""
        await self._send_last(self._encoder.end_stream(comment))

    async def fail(self, problem: ErrorResponse) -> None:
        """End the stream with an error."""
        await self._send_last(self._encoder.fail_stream(problem))

    def cancel_timers(self) -> None:
        """Stop the timers. Nothing is sent after this."""
        self._timer.cancel()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        for task in self._senders:
            task.cancel()

    async def _send_start(self) -> bytes:
        """Send the status and the headers. Returns the first bytes of the stream."""
        self.has_started = True
        self._timer.cancel()
        if self._heartbeat_seconds > 0:
            self._timer = self._loop.call_later(self._heartbeat_seconds, self._check_heartbeat)
        # The last header stops nginx from buffering the stream.
        headers = [
            (b"content-type", self._content_type),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        return self._encoder.begin_stream()

    async def _send_last(self, last: bytes) -> None:
        self.cancel_timers()
        async with self._lock:
            await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _send_body(self, data: bytes) -> None:
        self._last_write = self._loop.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    # ── timers ───────────────────────────────────────────────────────────────────────────────────

    def _open_on_timeout(self) -> None:
        """Open the stream when the backend is slow. A later failure can then no longer have an error status."""
        self._start_sender(self._send_opening())

    def _check_heartbeat(self) -> None:
        """Send a heartbeat when nothing was sent for one period, then wait for the rest of the next."""
        silent = self._loop.time() - self._last_write
        if silent >= self._heartbeat_seconds:
            self._start_sender(self._send_heartbeat())
            silent = 0.0
        self._timer = self._loop.call_later(self._heartbeat_seconds - silent, self._check_heartbeat)

    def _flush_on_timeout(self) -> None:
        self._flush_timer = None
        if self._encoder.has_pending:
            self._start_sender(self._send_buffered())

    def _start_sender(self, work: Coroutine[Any, Any, None]) -> None:
        # A client that does not read blocks the lock: one waiting sender is enough.
        if self._senders:
            work.close()
            return
        task = self._loop.create_task(work)
        self._senders.add(task)
        task.add_done_callback(self._senders.discard)

    async def _send_opening(self) -> None:
        async with self._lock:
            if not self.has_started:
                await self._send_body(await self._send_start())

    async def _send_heartbeat(self) -> None:
        async with self._lock:
            if data := self._encoder.encode_heartbeat():
                await self._send_body(data)

    async def _send_buffered(self) -> None:
        async with self._lock:
            if data := self._encoder.flush():
                await self._send_body(data)
