"""Watch: ends an answer that takes too long.

Three timers (to the first event, between two reads, for all of it) share one handle of the loop, which looks at two
timestamps when it fires and sets itself anew. A read costs one look at the clock. Only time spent waiting for the
server counts as silence: while whoever reads the answer is busy, the idle timer stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from callwright.backends.errors import TimeoutSetting
from callwright.backends.settings import BackendSettings

__all__ = ["ResponseTimeouts"]


class ResponseTimeouts:
    """The timers of one answer that began at `begun`. `end` is called once, when one of them runs out."""

    def __init__(self, settings: BackendSettings, started_at: float, on_timeout: Callable[[], None]) -> None:
        self._first = started_at + settings.first_token_seconds
        self._total = started_at + settings.total_seconds
        self._idle = settings.idle_seconds
        self._on_timeout = on_timeout
        self._loop = asyncio.get_running_loop()
        self._reading_since: float | None = None
        self.has_started = False
        """Whether the first event came."""
        self.expired_timer: TimeoutSetting | None = None
        """The timer that ran out."""
        self._handle = self._loop.call_soon(self._check_deadlines)

    def mark_started(self) -> None:
        """The first event came: from now on silence counts."""
        self.has_started = True
        self._handle.cancel()
        self._check_deadlines()

    def begin_read(self) -> None:
        """A read begins."""
        self._reading_since = self._loop.time()

    def end_read(self) -> None:
        """A read is over."""
        self._reading_since = None

    def close(self) -> None:
        """The answer is over."""
        self._handle.cancel()

    def _check_deadlines(self) -> None:
        now = self._loop.time()
        silent = now if self._reading_since is None else self._reading_since
        timer: TimeoutSetting = "idle_seconds" if self.has_started else "first_token_seconds"
        due = silent + self._idle if self.has_started else self._first
        if self._total <= due:
            timer, due = "total_seconds", self._total
        if now >= due:
            self.expired_timer = timer
            self._on_timeout()
        else:
            self._handle = self._loop.call_at(due, self._check_deadlines)
