"""One turn of a model, in a temporary thread of Codex.

It is read like an HTTP response: `read` returns the notifications of the turn, one per line. All turns share the
child's output, so a slow reader cannot slow the child down. The size of unread lines is therefore limited, and a turn
that is not read fails.

The calls of a response stay unanswered, and the turn is interrupted when the response is complete. But Codex does not
report a response that broke off before its calls are answered (measured with 0.166.0). So calls are answered after a
silence: Codex then reports the failure, or sends the provider one more request that ends with the response.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from callwright.backends.codex.rpc_client import TOOL_CALL, RpcClient, RpcMessage
from callwright.errors import BackendError

__all__ = ["ANSWER_METHODS", "SILENCE_SECONDS", "CodexThread"]

ANSWER_METHODS = frozenset(
    {
        "item/agentMessage/delta",
        "item/reasoning/summaryPartAdded",
        "item/reasoning/summaryTextDelta",
        "item/reasoning/textDelta",
        "rawResponseItem/completed",
        "rawResponse/completed",
        "turn/completed",
    }
)
"""Notifications that are part of the answer."""
SILENCE_SECONDS = 5.0
"""Seconds of silence after a call before it is answered. A call that is still being written is silent too."""
_MAX_PENDING_BYTES = 64 * 1024 * 1024
_EMPTY_RESULT = {"contentItems": [], "success": False}


class CodexThread:
    """A turn that begins when the object is created. `close` ends it."""

    is_complete = True
    """After the last event there is nothing to wait for."""

    def __init__(
        self, rpc: RpcClient, start: dict[str, Any], items: list[dict[str, Any]], turn: dict[str, Any]
    ) -> None:
        self._rpc = rpc
        self._id = ""
        self._turn_id = ""
        self._is_closed = False
        self._interrupted = False
        self._lines: list[bytes] = []
        self._pending_bytes = 0
        self._failure: BackendError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._open_calls: list[int | str | None] = []
        """Ids of Codex's tool call requests that are not answered yet …"""
        self._silence_timer: asyncio.TimerHandle | None = None
        """… and the timer that answers them."""
        self._startup = rpc.start_task(self._start_turn(start, items, turn))

    async def wait_until_started(self) -> None:
        """Wait until the turn has started. Raises `BackendError`."""
        await asyncio.shield(self._startup)

    async def _start_turn(self, start: dict[str, Any], items: list[dict[str, Any]], turn: dict[str, Any]) -> None:
        started = await self._rpc.send_request("thread/start", **start)
        self._id = started["thread"]["id"]
        self._rpc.subscribers[self._id] = self
        if items:
            await self._rpc.send_request("thread/inject_items", threadId=self._id, items=items)
        reply = await self._rpc.send_request("turn/start", threadId=self._id, input=[], **turn)
        self._turn_id = reply["turn"]["id"]

    def get_header(self, name: str) -> str:
        """Return an empty string: there are no headers."""
        return ""

    async def read(self) -> bytes:
        """Read the next notifications, one per line."""
        while not self._lines:
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = b"".join(self._lines)
        self._lines.clear()
        self._pending_bytes = 0
        return data

    def close(self) -> None:
        """Stop reading: end the provider's generation and discard the thread."""
        if not self._is_closed:
            self._is_closed = True
            self.handle_disconnect(BackendError("the turn of the backend was cancelled", kind="unavailable"))
            self._rpc.start_task(self._discard_thread())

    def _answer_calls(self) -> None:
        """Answer the open calls, so that Codex reports how the response ended."""
        for request_id in self._open_calls:
            self._rpc.send_reply(request_id, _EMPTY_RESULT)
        self._open_calls.clear()

    def _restart_silence_timer(self) -> None:
        """Restart the timer while there are open calls and the response may still be running."""
        if self._silence_timer is not None:
            self._silence_timer.cancel()
        if self._open_calls and not self._interrupted:
            self._silence_timer = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._answer_calls)

    async def _discard_thread(self) -> None:
        # A turn that is still starting must be started before it can be interrupted.
        with suppress(BackendError):
            await self._startup
        self._rpc.subscribers.pop(self._id, None)
        self._interrupt_turn()
        self._restart_silence_timer()
        if self._id:
            self._rpc.post_request("thread/unsubscribe", threadId=self._id)

    def _interrupt_turn(self) -> None:
        if self._turn_id and not self._interrupted:
            self._interrupted = True
            self._rpc.post_request("turn/interrupt", threadId=self._id, turnId=self._turn_id)

    # ── callbacks of the RPC client ──────────────────────────────────────────────────────────────

    def handle_message(self, message: RpcMessage, line: bytes) -> None:
        """Handle a notification of this thread. Injected history is reported too, as part of another turn."""
        if message.method == "turn/started":
            self._turn_id = message.turn_id  # may arrive before the reply, and so may the notifications after it
        elif message.method == TOOL_CALL:
            self._open_calls.append(message.id if message.has_id else None)
            self._restart_silence_timer()
        elif self._failure is None and message.method in ANSWER_METHODS and message.turn_id == self._turn_id:
            if message.method == "rawResponse/completed":
                # At once: Codex answers calls of unknown tools and unreadable calls itself, and would continue.
                self._interrupt_turn()
            self._restart_silence_timer()
            self._lines.append(line)
            self._pending_bytes += len(line)
            if self._pending_bytes > _MAX_PENDING_BYTES:
                self._lines.clear()
                self.handle_disconnect(
                    BackendError(f"the backend's answer was not read: more than {_MAX_PENDING_BYTES} bytes are waiting")
                )
            self._wake_reader()

    def handle_disconnect(self, failure: BackendError) -> None:
        """Raise this failure to the reader, after the lines that have arrived."""
        self._failure = self._failure or failure
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
