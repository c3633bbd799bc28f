"""Asking the model, and showing its answer while it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from callwright.agent.effects import CallModel
from callwright.agent.events import Answered, TurnBegan
from callwright.agent.halt import Halt, HaltError
from callwright.agent.log import Log
from callwright.agent.stream import Shown, Stream
from callwright.agent.tools.base import Editor, Tool
from callwright.backends.base import EventStream
from callwright.errors import BackendError, RequestError
from callwright.events import Event
from callwright.model import Message, Part, Request, Text, Usage
from callwright.turn import Collected, collect

__all__ = ["Answering", "Ask"]

Ask = Callable[[Request], EventStream]
"""One turn of the engine."""
_ANSWER_LIMIT = 8_000_000
"""Characters of one answer: more is an error, not an answer."""


class Answering:
    """Asks one model."""

    def __init__(
        self, ask: Ask, model: str, tools: Mapping[str, Tool], options: dict[str, Any], log: Log, halt: Halt
    ) -> None:
        self._ask = ask
        self._model = model
        self._tools = tools
        self._options = options
        self._log = log
        self._halt = halt

    async def answer(self, effect: CallModel) -> Answered:
        """The answer, whole. What goes wrong is told in it."""
        await self._log.add(TurnBegan(number=effect.number, purpose=effect.purpose))
        request = self._request(effect)
        loop = asyncio.get_running_loop()
        began = loop.time()
        events: list[Event] = []
        stopped, problem = False, ""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(effect.seconds or None):
                    await self._halt.race(self._listen(request, Stream(effect.title), events))
        except HaltError:
            stopped = True
        except (BackendError, RequestError) as error:
            if not (effect.must_edit and getattr(error, "kind", "") == "unusable"):  # it still makes no edit
                problem = str(error)
        turn = collect(events)
        return Answered(
            purpose=effect.purpose,
            message=Message("assistant", _parts(turn)),
            finish=turn.finish_reason or "error",
            usage=turn.usage or Usage(),
            seconds=round(loop.time() - began, 3),
            stopped=stopped,
            problem=problem,
        )

    def _request(self, effect: CallModel) -> Request:
        offered = [
            tool.spec
            for tool in self._tools.values()
            if effect.purpose == "turn" and (isinstance(tool, Editor) or not effect.must_edit)
        ]
        choice = "required" if effect.must_edit else "auto"
        return Request(self._model, effect.messages, tuple(offered), choice, options=self._options)

    async def _listen(self, request: Request, stream: Stream, events: list[Event]) -> None:
        clock = asyncio.get_running_loop().time
        size = 0
        async with aclosing(self._ask(request)) as answer, aclosing(_paced(answer, stream)) as paced:
            async for some in paced:
                for event in some:
                    events.append(event)
                    size += len(getattr(event, "text", ""))
                    await self._show(stream.feed(event, clock()))
                if not some:
                    await self._show(stream.tick(clock()))
                if size > _ANSWER_LIMIT:
                    raise BackendError(f"the model's answer has more than {_ANSWER_LIMIT} characters")
        await self._show(stream.close(clock()))

    async def _show(self, shown: Sequence[Shown]) -> None:
        for event in shown:
            await self._log.add(event)


async def _paced(answer: EventStream, stream: Stream) -> AsyncGenerator[list[Event], None]:
    """The answer's events as they come, and an empty list when something that waits may be shown."""
    coming = asyncio.ensure_future(anext(answer))
    try:
        while True:
            wait = None
            if stream.due is not None:
                wait = max(0.0, stream.due - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait((coming,), timeout=wait)
            if not done:
                yield []
                continue
            try:
                some = coming.result()
            except StopAsyncIteration:
                return
            coming = asyncio.ensure_future(anext(answer))
            yield some
    finally:
        if not coming.done():
            coming.cancel()
            await asyncio.wait((coming,))


def _parts(turn: Collected) -> tuple[Part, ...]:
    """Thinking, words and calls (A-2); calls keep the ids that they came with."""
    said = (Text(turn.text),) if turn.text else ()
    return (*turn.thoughts, *said, *turn.tool_calls)
