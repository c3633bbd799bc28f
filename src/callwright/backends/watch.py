"""Watch: ends an answer that takes too long.

Three timers (to the first event, between two reads, for all of it) share one handle of the loop, which looks at two
timestamps when it fires and sets itself anew. A read costs one look at the clock. Only time spent waiting for the
server counts as silence: while whoever reads the answer is busy, the idle timer stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from callwright.backends.faults import Timer
from callwright.backends.settings import BackendSettings

__all__ = ["Watch"]


class Watch:
    """The timers of one answer that began at `begun`. `end` is called once, when one of them runs out."""

    def __init__(self, settings: BackendSettings, begun: float, end: Callable[[], None]) -> None:
        self._first = begun + settings.first_token_seconds
        self._total = begun + settings.total_seconds
        self._idle = settings.idle_seconds
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._waiting: float | None = None
        self.started = False
        """Whether the first event came."""
        self.late: Timer | None = None
        """The timer that ran out."""
        self._handle = self._loop.call_soon(self._look)

    def start(self) -> None:
        """The first event came: from now on silence counts."""
        self.started = True
        self._handle.cancel()
        self._look()

    def waits(self) -> None:
        """A read begins."""
        self._waiting = self._loop.time()

    def reads(self) -> None:
        """A read is over."""
        self._waiting = None

    def close(self) -> None:
        """The answer is over."""
        self._handle.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        silent = now if self._waiting is None else self._waiting
        timer: Timer = "idle_seconds" if self.started else "first_token_seconds"
        due = silent + self._idle if self.started else self._first
        if self._total <= due:
            timer, due = "total_seconds", self._total
        if now >= due:
            self.late = timer
            self._end()
        else:
            self._handle = self._loop.call_at(due, self._look)
