"""The driver: does what a loop asks for, one effect after the other, and answers it.

Whatever an effect comes to is stored before the loop hears of it. What the past has an answer for is not done again.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from callwright.agent.answering import Answering
from callwright.agent.approvals import Approvals
from callwright.agent.effects import Answer, CallModel, Checkpoint, Decide, Effect, RunTool, Tell
from callwright.agent.events import SessionEvent
from callwright.agent.log import Log
from callwright.agent.past import Past
from callwright.agent.runner import ToolRunner

__all__ = ["Driver"]

T = TypeVar("T")


@dataclass(frozen=True)
class Driver:
    """The parts that do things."""

    log: Log
    answering: Answering
    approvals: Approvals
    runner: ToolRunner

    async def drive(self, steps: Generator[Effect, Answer, T], past: Past) -> T:
        """Run a loop to its end; its result."""
        try:
            effect = next(steps)
            while True:
                answer = past.answer(effect)
                if answer is None:
                    answer = await self._perform(effect, past)
                    await self.log.add(answer)
                effect = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform(self, effect: Effect, past: Past) -> SessionEvent:
        match effect:
            case Tell():
                return effect.event
            case CallModel():
                return await self.answering.answer(effect)
            case Decide():
                return await self.approvals.decide(effect)
            case Checkpoint():
                return await self.runner.checkpoint(effect)
            case RunTool():
                return await self.runner.run(effect, begun=effect.call.id in past.begun)
