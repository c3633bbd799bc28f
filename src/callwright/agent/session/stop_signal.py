"""The stop signal, with which the user can stop a task at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from callwright.errors import CallwrightError

__all__ = ["StopSignal", "StoppedError"]

T = TypeVar("T")
_STOP_TIMEOUT_S = 10.0


class StoppedError(CallwrightError):
    """The user stopped the task."""


class StopSignal:
    """A stop that may be requested at any time; everything slow runs in a race with it."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()

    def request_stop(self) -> None:
        """Stop the current step and the task."""
        self._requested.set()

    def reset(self) -> None:
        """Reset the signal for the next task."""
        self._requested.clear()

    async def run_until_stopped(self, work: Coroutine[Any, Any, T], on_stop: Callable[[], None] | None = None) -> T:
        """Return the result of `work`, or raise `StoppedError` after a stop, when it has been cancelled.

        `on_stop` makes it return a result of its own soon instead.
        """
        task = asyncio.ensure_future(work)
        requested = asyncio.ensure_future(self._requested.wait())
        try:
            await asyncio.wait((task, requested), return_when=asyncio.FIRST_COMPLETED)
            if on_stop is not None and not task.done():
                on_stop()
                await asyncio.wait((task,), timeout=_STOP_TIMEOUT_S)
            if task.done():
                return task.result()
            raise StoppedError("stopped by the user")
        finally:
            requested.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
