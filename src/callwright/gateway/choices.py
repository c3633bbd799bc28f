"""The turns of one request: one for each choice, side by side (W-11). Most requests have one, and it costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from callwright.backends.base import EventStream
from callwright.events import Event

__all__ = ["merge_choices"]


async def merge_choices(turns: Sequence[EventStream]) -> AsyncGenerator[tuple[int, list[Event]], None]:
    """The batches of all turns as they come, each with the number of its choice. The first failure ends all."""
    if len(turns) == 1:
        async with aclosing(turns[0]) as turn:
            async for events in turn:
                yield 0, events
        return
    waiting = {asyncio.ensure_future(_next_batch(turn)): choice for choice, turn in enumerate(turns)}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                choice = waiting.pop(task)
                if events := task.result():
                    waiting[asyncio.ensure_future(_next_batch(turns[choice]))] = choice
                    yield choice, events
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(*(turn.aclose() for turn in turns))


async def _next_batch(turn: EventStream) -> list[Event]:
    """A turn's next batch; none when it is over."""
    return await anext(turn, [])
