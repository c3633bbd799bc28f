"""The effect driver: performs the effects of a loop one after the other, and answers them.

Every result is stored before the loop receives it. An effect with a recorded answer is not performed again.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from callwright.agent.event_log import EventLog
from callwright.agent.loop.effects import (
    CallModel,
    DecideCall,
    Effect,
    EffectAnswer,
    EmitEvent,
    RunTool,
    SaveCheckpoint,
)
from callwright.agent.loop.recorded_answers import RecordedAnswers
from callwright.agent.session.approvals import Approvals
from callwright.agent.session.model_calls import ModelCaller
from callwright.agent.session.tool_runner import ToolRunner
from callwright.agent.session_events import SessionEvent

__all__ = ["EffectDriver"]

T = TypeVar("T")


@dataclass(frozen=True)
class EffectDriver:
    """Performs effects with the model, the approvals and the tools."""

    log: EventLog
    model_caller: ModelCaller
    approvals: Approvals
    tool_runner: ToolRunner

    async def run_loop(self, steps: Generator[Effect, EffectAnswer, T], recorded: RecordedAnswers) -> T:
        """Run a loop to its end and return its result."""
        try:
            effect = next(steps)
            while True:
                answer = recorded.replay_answer(effect)
                if answer is None:
                    answer = await self._perform_effect(effect, recorded)
                    await self.log.add(answer)
                effect = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform_effect(self, effect: Effect, recorded: RecordedAnswers) -> SessionEvent:
        match effect:
            case EmitEvent():
                return effect.event
            case CallModel():
                return await self.model_caller.call_model(effect)
            case DecideCall():
                return await self.approvals.decide_call(effect)
            case SaveCheckpoint():
                return await self.tool_runner.save_checkpoint(effect)
            case RunTool():
                return await self.tool_runner.run_tool(effect, was_started=effect.call.id in recorded.started_calls)
