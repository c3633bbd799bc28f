"""A loop without a world: tools that do nothing, and a driver that plays a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.loop.effects import CallModel, DecideCall, Effect, EmitEvent, RunTool, SaveCheckpoint
from callwright.agent.loop.recorded_answers import RecordedAnswers
from callwright.agent.loop.task_loop import TaskBrief, TaskResult, run_task_loop
from callwright.agent.session_events import (
    CallDecided,
    CheckpointSaved,
    ModelAnswered,
    SessionEvent,
    StampedEvent,
    ToolFinished,
)
from callwright.agent.settings import TaskLimits
from callwright.agent.tools.base import TerminalCommand
from callwright.model import Message, Part, Text, ToolCall, ToolSpec, Usage

__all__ = ["TOOLS", "Script", "brief", "call", "says"]


class Look:
    spec = ToolSpec("look", "Look.", {"type": "object"})

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        return f"Look at {arguments.get('path', '?')}"

    def list_paths(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        return (str(arguments["path"]),)

    async def read(self, arguments: Mapping[str, Any], context: Any) -> str:
        raise AssertionError


class Write:
    spec = ToolSpec("write", "Write.", {"type": "object"})

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        return f"Write {arguments.get('path', '?')}"

    def plan_changes(self, arguments: Mapping[str, Any], workspace: Any) -> tuple[FileChange, ...]:
        raise AssertionError

    def describe_deferred_content(self, arguments: Mapping[str, Any]) -> str:
        return "" if "content" in arguments else str(arguments.get("description", ""))

    def fill_content(self, arguments: Mapping[str, Any], content: str) -> dict[str, Any]:
        return {**arguments, "content": content}


class Shell:
    spec = ToolSpec("shell", "Run.", {"type": "object"})

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        return f"$ {arguments.get('command', '?')}"

    def build_command(self, arguments: Mapping[str, Any]) -> TerminalCommand:
        return TerminalCommand(text=str(arguments["command"]))

    def replace_command(self, arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
        return {**arguments, "command": text}


TOOLS: dict[str, Any] = {tool.spec.name: tool for tool in (Look(), Write(), Shell())}
_ids = iter(range(1, 1_000_000_000))


def call(name: str, complete: bool = True, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{next(_ids)}", name, json.dumps(arguments), complete=complete)


def says(*parts: str | Part, purpose: Any = "turn", finish: Any = None, **more: Any) -> ModelAnswered:
    """An answer of the model."""
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    calls = any(isinstance(part, ToolCall) for part in said)
    base: dict[str, Any] = {"usage": Usage(10, 5), "seconds": 1.0} | more
    return ModelAnswered(
        purpose=purpose,
        message=Message("assistant", said),
        finish=finish or ("tool_calls" if calls else "stop"),
        **base,
    )


def brief(text: str, **more: Any) -> TaskBrief:
    limits = more.pop("limits", TaskLimits())
    base: dict[str, Any] = {
        "task": 1,
        "history": (Message("system", (Text("You are an agent."),)),),
        "tools": TOOLS,
        "window": 0,
        "count_tokens": _size,
    }
    return TaskBrief(text=text, limits=limits, **(base | more))


def _size(messages: Sequence[Message]) -> int:
    return sum(len(msgspec.json.encode(message)) for message in messages) // 4


class Script:
    """Plays answers of a model; everything may run and works unless `decide` or `run` say otherwise."""

    def __init__(
        self,
        answers: Iterable[ModelAnswered],
        decide: Callable[[DecideCall], CallDecided | None] = lambda _: None,
        run: Callable[[RunTool], ToolFinished | None] = lambda _: None,
    ) -> None:
        self._answers = iter(answers)
        self._decide = decide
        self._run = run
        self.effects: list[Effect] = []
        self.events: list[StampedEvent] = []

    def drive(
        self, brief: TaskBrief, past: Sequence[StampedEvent] = (), crash_after: int = 1_000_000
    ) -> TaskResult | None:
        """Run the loop; None if it crashed after that many events."""
        steps, memory = run_task_loop(brief), RecordedAnswers(past)
        try:
            effect = next(steps)
            while True:
                self.effects.append(effect)
                answer = memory.replay_answer(effect)
                if answer is None:
                    if len(self.events) >= crash_after:
                        return None
                    answer = self._perform(effect)
                    self.events.append(StampedEvent(len(self.events) + 1, 0.0, answer))
                effect = steps.send(answer)
        except StopIteration as end:
            result: TaskResult = end.value
            return result

    def told(self, kind: type) -> list[Any]:
        return [stamped.event for stamped in self.events if isinstance(stamped.event, kind)]

    def asked(self) -> list[CallModel]:
        return [effect for effect in self.effects if isinstance(effect, CallModel)]

    def _perform(self, effect: Effect) -> SessionEvent:
        match effect:
            case EmitEvent():
                return effect.event
            case CallModel():
                return next(self._answers)
            case DecideCall():
                return self._decide(effect) or CallDecided(call=effect.call, verdict="allow", by="policy", why="it may")
            case SaveCheckpoint():
                return CheckpointSaved(call=effect.call.id, paths=("a.py",))
            case RunTool():
                one = effect.call
                done = self._run(effect)
                wrote = one.name != "look"
                return done or ToolFinished(
                    call=one.id, name=one.name, view=one.name, status="ok", content=f"{one.name} done", wrote=wrote
                )
