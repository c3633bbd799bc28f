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

from callwright.backends.codex.rpc import TOOL_CALL, Notice, Rpc
from callwright.errors import BackendError

__all__ = ["HEARD", "SILENCE_SECONDS", "Thread"]

HEARD = frozenset(
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
_HELD_BYTES = 64 * 1024 * 1024
_NO_RESULT = {"contentItems": [], "success": False}


class Thread:
    """A turn that begins when it is made. `close` ends it for real."""

    over = True
    """After the last event there is nothing to wait for."""

    def __init__(self, rpc: Rpc, start: dict[str, Any], items: list[dict[str, Any]], turn: dict[str, Any]) -> None:
        self._rpc = rpc
        self._id = ""
        self._turn = ""
        self._ended = False
        self._interrupted = False
        self._lines: list[bytes] = []
        self._held = 0
        self._failure: BackendError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._open: list[int | str | None] = []
        """The questions of Codex's about calls that nobody has answered …"""
        self._silence: asyncio.TimerHandle | None = None
        """… and when that is done."""
        self._begun = rpc.run(self._begin(start, items, turn))

    async def begin(self) -> None:
        """Wait until the turn has begun. Raises `BackendError`."""
        await asyncio.shield(self._begun)

    async def _begin(self, start: dict[str, Any], items: list[dict[str, Any]], turn: dict[str, Any]) -> None:
        started = await self._rpc.ask("thread/start", **start)
        self._id = started["thread"]["id"]
        self._rpc.followers[self._id] = self
        if items:
            await self._rpc.ask("thread/inject_items", threadId=self._id, items=items)
        begun = await self._rpc.ask("turn/start", threadId=self._id, input=[], **turn)
        self._turn = begun["turn"]["id"]

    def header(self, name: str) -> str:
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
        self._held = 0
        return data

    def close(self) -> None:
        """Nobody reads any more: the provider's generation is ended, and the thread thrown away."""
        if not self._ended:
            self._ended = True
            self.lose(BackendError("the backend's turn was ended", kind="unavailable"))
            self._rpc.run(self._farewell())

    def _answer(self) -> None:
        """Answer the calls, so that Codex tells how their response ended if it has."""
        for question in self._open:
            self._rpc.reply(question, _NO_RESULT)
        self._open.clear()

    def _listen(self) -> None:
        """Begin to wait for a silence anew, while there are calls whose response goes on for all that is known."""
        if self._silence is not None:
            self._silence.cancel()
        if self._open and not self._interrupted:
            self._silence = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._answer)

    async def _farewell(self) -> None:
        # Also where the turn has only half begun: what is running must be known to be ended.
        with suppress(BackendError):
            await self._begun
        self._rpc.followers.pop(self._id, None)
        self._interrupt()
        self._listen()
        if self._id:
            self._rpc.post("thread/unsubscribe", threadId=self._id)

    def _interrupt(self) -> None:
        if self._turn and not self._interrupted:
            self._interrupted = True
            self._rpc.post("turn/interrupt", threadId=self._id, turnId=self._turn)

    # ── for the Rpc ──────────────────────────────────────────────────────────────────────────────

    def hear(self, notice: Notice, line: bytes) -> None:
        """A notice about this thread. Injected history is told too, as part of another turn."""
        if notice.method == "turn/started":
            self._turn = notice.turn  # may come before the reply, and what follows before it too
        elif notice.method == TOOL_CALL:
            self._open.append(notice.id)
            self._listen()
        elif self._failure is None and notice.method in HEARD and notice.turn == self._turn:
            if notice.method == "rawResponse/completed":
                # At once: calls that Codex answers itself, of unknown tools or unreadable, would have it ask again.
                self._interrupt()
            self._listen()
            self._lines.append(line)
            self._held += len(line)
            if self._held > _HELD_BYTES:
                self._lines.clear()
                self.lose(BackendError(f"the backend's answer was not read: more than {_HELD_BYTES} bytes wait"))
            self._wake()

    def lose(self, failure: BackendError) -> None:
        """There will be no more; what has come is read first."""
        self._failure = self._failure or failure
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
