"""Calls the model, and shows its answer while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from callwright.agent.event_log import EventLog
from callwright.agent.loop.answer_stream import AnswerStream, DisplayEvent
from callwright.agent.loop.effects import CallModel
from callwright.agent.session.stop_signal import StoppedError, StopSignal
from callwright.agent.session_events import ModelAnswered, TurnStarted
from callwright.agent.tools.base import EditTool, Tool
from callwright.backends.base import EventStream
from callwright.errors import BackendError, RequestError
from callwright.events import Event
from callwright.model import Message, Part, Request, Text, Usage
from callwright.turn import Collected, collect

__all__ = ["ModelCaller", "RunTurn"]

RunTurn = Callable[[Request], EventStream]
"""Runs one turn of the engine."""
_MAX_ANSWER_CHARS = 8_000_000
"""The maximum number of characters of one answer: a longer one is an error."""


class ModelCaller:
    """Calls one model."""

    def __init__(
        self,
        run_turn: RunTurn,
        model: str,
        tools: Mapping[str, Tool],
        options: dict[str, Any],
        log: EventLog,
        stop_signal: StopSignal,
    ) -> None:
        self._run_turn = run_turn
        self._model = model
        self._tools = tools
        self._options = options
        self._log = log
        self._stop_signal = stop_signal

    async def call_model(self, effect: CallModel) -> ModelAnswered:
        """Return the whole answer. A failure is part of it."""
        await self._log.add(TurnStarted(number=effect.number, purpose=effect.purpose))
        request = self._build_request(effect)
        loop = asyncio.get_running_loop()
        began = loop.time()
        events: list[Event] = []
        stopped, problem = False, ""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(effect.seconds or None):
                    await self._stop_signal.run_until_stopped(
                        self._read_answer(request, AnswerStream(effect.title), events)
                    )
        except StoppedError:
            stopped = True
        except (BackendError, RequestError) as error:
            if not (effect.must_edit and getattr(error, "kind", "") == "unusable"):  # the answer without an edit stands
                problem = str(error)
        turn = collect(events)
        return ModelAnswered(
            purpose=effect.purpose,
            message=Message("assistant", _build_parts(turn)),
            finish=turn.finish_reason or "error",
            usage=turn.usage or Usage(),
            seconds=round(loop.time() - began, 3),
            stopped=stopped,
            problem=problem,
        )

    def _build_request(self, effect: CallModel) -> Request:
        offered = [
            tool.spec
            for tool in self._tools.values()
            if effect.purpose == "turn" and (isinstance(tool, EditTool) or not effect.must_edit)
        ]
        choice = "required" if effect.must_edit else "auto"
        return Request(self._model, effect.messages, tuple(offered), choice, options=self._options)

    async def _read_answer(self, request: Request, stream: AnswerStream, events: list[Event]) -> None:
        clock = asyncio.get_running_loop().time
        size = 0
        async with aclosing(self._run_turn(request)) as answer, aclosing(_iter_paced_batches(answer, stream)) as paced:
            async for some in paced:
                for event in some:
                    events.append(event)
                    size += len(getattr(event, "text", ""))
                    await self._log_events(stream.feed(event, clock()))
                if not some:
                    await self._log_events(stream.tick(clock()))
                if size > _MAX_ANSWER_CHARS:
                    raise BackendError(f"the model's answer has more than {_MAX_ANSWER_CHARS} characters")
        await self._log_events(stream.close(clock()))

    async def _log_events(self, events: Sequence[DisplayEvent]) -> None:
        for event in events:
            await self._log.add(event)


async def _iter_paced_batches(answer: EventStream, stream: AnswerStream) -> AsyncGenerator[list[Event], None]:
    """Yield batches of the answer's events, and an empty list when a delayed update is due."""
    next_batch = asyncio.ensure_future(anext(answer))
    try:
        while True:
            wait = None
            if stream.next_flush_at is not None:
                wait = max(0.0, stream.next_flush_at - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait((next_batch,), timeout=wait)
            if not done:
                yield []
                continue
            try:
                some = next_batch.result()
            except StopAsyncIteration:
                return
            next_batch = asyncio.ensure_future(anext(answer))
            yield some
    finally:
        if not next_batch.done():
            next_batch.cancel()
            await asyncio.wait((next_batch,))


def _build_parts(turn: Collected) -> tuple[Part, ...]:
    """Return thinking, text and calls (A-2); calls keep their ids."""
    text = (Text(turn.text),) if turn.text else ()
    return (*turn.thoughts, *text, *turn.tool_calls)
