"""Stopping: what a person can do at any time, whatever is going on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from callwright.errors import CallwrightError

__all__ = ["StopSignal", "StoppedError"]

T = TypeVar("T")
_STOP_TIMEOUT_S = 10.0


class StoppedError(CallwrightError):
    """The person stopped it."""


class StopSignal:
    """A stop that may come. Everything that takes long is raced with it."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()

    def request_stop(self) -> None:
        """Stop what is going on, and what would come next."""
        self._requested.set()

    def reset(self) -> None:
        """Another task begins."""
        self._requested.clear()

    async def run_until_stopped(self, work: Coroutine[Any, Any, T], on_stop: Callable[[], None] | None = None) -> T:
        """Its result, or `HaltError` once it is stopped; it has then been cancelled and is over.

        `ending` asks it to come to a result of its own instead, and soon.
        """
        task = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._requested.wait())
        try:
            await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
            if on_stop is not None and not task.done():
                on_stop()
                await asyncio.wait((task,), timeout=_STOP_TIMEOUT_S)
            if task.done():
                return task.result()
            raise StoppedError("the person stopped it")
        finally:
            asked.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
