"""Thread: one turn of a model, in a thread of Codex that is made for it and thrown away after it.

It is read like an answer over HTTP: bytes as they come, here the notices about the turn, one in a line. Reading cannot
slow the child down, since all turns share its output; so what waits is bounded, and a turn that nobody reads fails.

The calls of a response are left open, and their turn is ended with it. But Codex does not tell of a response that broke
off before its calls are answered (measured with 0.166.0). So after a silence they are: nothing comes of that but the
truth, or one more request of Codex's at the provider that ends as soon as the response does.
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
"""Notices that say something of the answer."""
SILENCE_SECONDS = 5.0
"""How long nothing may follow a call before it is answered. A call that is still being written is silent too."""
_MAX_PENDING_BYTES = 64 * 1024 * 1024
_EMPTY_RESULT = {"contentItems": [], "success": False}


class CodexThread:
    """A turn that begins when it is made. `close` ends it for real."""

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
        """The questions of Codex's about calls that nobody has answered …"""
        self._silence_timer: asyncio.TimerHandle | None = None
        """… and when that is done."""
        self._startup = rpc.start_task(self._start_turn(start, items, turn))

    async def wait_until_started(self) -> None:
        """Wait until the turn has begun. Raises `BackendError`."""
        await asyncio.shield(self._startup)

    async def _start_turn(self, start: dict[str, Any], items: list[dict[str, Any]], turn: dict[str, Any]) -> None:
        started = await self._rpc.send_request("thread/start", **start)
        self._id = started["thread"]["id"]
        self._rpc.subscribers[self._id] = self
        if items:
            await self._rpc.send_request("thread/inject_items", threadId=self._id, items=items)
        begun = await self._rpc.send_request("turn/start", threadId=self._id, input=[], **turn)
        self._turn_id = begun["turn"]["id"]

    def get_header(self, name: str) -> str:
        """There are none."""
        return ""

    async def read(self) -> bytes:
        """The next notices, one in a line."""
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
        """Nobody reads any more: the provider's generation is ended, and the thread thrown away."""
        if not self._is_closed:
            self._is_closed = True
            self.handle_disconnect(BackendError("the backend's turn was ended", kind="unavailable"))
            self._rpc.start_task(self._discard_thread())

    def _answer_calls(self) -> None:
        """Answer the calls, so that Codex tells how their response ended if it has."""
        for question in self._open_calls:
            self._rpc.send_reply(question, _EMPTY_RESULT)
        self._open_calls.clear()

    def _restart_silence_timer(self) -> None:
        """Begin to wait for a silence anew, while there are calls whose response goes on for all that is known."""
        if self._silence_timer is not None:
            self._silence_timer.cancel()
        if self._open_calls and not self._interrupted:
            self._silence_timer = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._answer_calls)

    async def _discard_thread(self) -> None:
        # Also where the turn has only half begun: what is running must be known to be ended.
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

    # ── for the Rpc ──────────────────────────────────────────────────────────────────────────────

    def handle_message(self, message: RpcMessage, line: bytes) -> None:
        """A notice about this thread. Injected history is told too, as part of another turn."""
        if message.method == "turn/started":
            self._turn_id = message.turn_id  # may come before the reply, and what follows before it too
        elif message.method == TOOL_CALL:
            self._open_calls.append(message.id)
            self._restart_silence_timer()
        elif self._failure is None and message.method in ANSWER_METHODS and message.turn_id == self._turn_id:
            if message.method == "rawResponse/completed":
                # At once: calls that Codex answers itself, of unknown tools or unreadable, would have it ask again.
                self._interrupt_turn()
            self._restart_silence_timer()
            self._lines.append(line)
            self._pending_bytes += len(line)
            if self._pending_bytes > _MAX_PENDING_BYTES:
                self._lines.clear()
                self.handle_disconnect(
                    BackendError(f"the backend's answer was not read: more than {_MAX_PENDING_BYTES} bytes wait")
                )
            self._wake_reader()

    def handle_disconnect(self, failure: BackendError) -> None:
        """There will be no more; what has come is read first."""
        self._failure = self._failure or failure
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
