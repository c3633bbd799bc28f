"""Runs the turns of one request side by side, one per choice (W-11). A single choice costs nothing extra."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from callwright.backends.base import EventStream
from callwright.events import Event

__all__ = ["merge_choices"]


async def merge_choices(turns: Sequence[EventStream]) -> AsyncGenerator[tuple[int, list[Event]], None]:
    """Yield the batches of all turns as they arrive, each with the number of its choice. A failure ends all turns."""
    if len(turns) == 1:
        async with aclosing(turns[0]) as turn:
            async for events in turn:
                yield 0, events
        return
    pending = {asyncio.ensure_future(_next_batch(turn)): choice for choice, turn in enumerate(turns)}
    try:
        while pending:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                choice = pending.pop(task)
                if events := task.result():
                    pending[asyncio.ensure_future(_next_batch(turns[choice]))] = choice
                    yield choice, events
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await asyncio.gather(*(turn.aclose() for turn in turns))


async def _next_batch(turn: EventStream) -> list[Event]:
    """Return a turn's next batch; an empty one at its end."""
    return await anext(turn, [])
