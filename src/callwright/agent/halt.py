"""Stopping: what a person can do at any time, whatever is going on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from callwright.errors import CallwrightError

__all__ = ["Halt", "HaltError"]

T = TypeVar("T")
_ENDING_SECONDS = 10.0


class HaltError(CallwrightError):
    """The person stopped it."""


class Halt:
    """A stop that may come. Everything that takes long is raced with it."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Stop what is going on, and what would come next."""
        self._asked.set()

    def reset(self) -> None:
        """Another task begins."""
        self._asked.clear()

    async def race(self, doing: Coroutine[Any, Any, T], ending: Callable[[], None] | None = None) -> T:
        """Its result, or `HaltError` once it is stopped; it has then been cancelled and is over.

        `ending` asks it to come to a result of its own instead, and soon.
        """
        task = asyncio.ensure_future(doing)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
            if ending is not None and not task.done():
                ending()
                await asyncio.wait((task,), timeout=_ENDING_SECONDS)
            if task.done():
                return task.result()
            raise HaltError("the person stopped it")
        finally:
            asked.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
