"""Ends a response that takes too long.

Three timers (first event, idle, total) share one handle of the event loop, which compares two timestamps when it fires
and reschedules itself. A read costs one look at the clock. Only time spent waiting for the server counts as idle: the
idle timer stands still while the reader is busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from callwright.backends.errors import TimeoutSetting
from callwright.backends.settings import BackendSettings

__all__ = ["ResponseTimeouts"]


class ResponseTimeouts:
    """The timers of one response. `on_timeout` is called once, when one of them expires."""

    def __init__(self, settings: BackendSettings, started_at: float, on_timeout: Callable[[], None]) -> None:
        self._first = started_at + settings.first_token_seconds
        self._total = started_at + settings.total_seconds
        self._idle = settings.idle_seconds
        self._on_timeout = on_timeout
        self._loop = asyncio.get_running_loop()
        self._reading_since: float | None = None
        self.has_started = False
        """Whether the first event has arrived."""
        self.expired_timer: TimeoutSetting | None = None
        """The timer that expired."""
        self._handle = self._loop.call_soon(self._check_deadlines)

    def mark_started(self) -> None:
        """Note the arrival of the first event. The idle timer applies from now on."""
        self.has_started = True
        self._handle.cancel()
        self._check_deadlines()

    def begin_read(self) -> None:
        """Note the start of a read."""
        self._reading_since = self._loop.time()

    def end_read(self) -> None:
        """Note the end of a read."""
        self._reading_since = None

    def close(self) -> None:
        """Stop the timers at the end of the response."""
        self._handle.cancel()

    def _check_deadlines(self) -> None:
        now = self._loop.time()
        idle_since = now if self._reading_since is None else self._reading_since
        timer: TimeoutSetting = "idle_seconds" if self.has_started else "first_token_seconds"
        due = idle_since + self._idle if self.has_started else self._first
        if self._total <= due:
            timer, due = "total_seconds", self._total
        if now >= due:
            self.expired_timer = timer
            self._on_timeout()
        else:
            self._handle = self._loop.call_at(due, self._check_deadlines)
