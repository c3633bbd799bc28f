"""The past of a session: what its events answer when a task is played again, and what the model knew by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callwright.agent.effects import Answer, CallModel, Checkpoint, Decide, Effect, RunTool, Tell
from callwright.agent.events import (
    Answered,
    Checkpointed,
    Condensed,
    Decided,
    GroupClosed,
    GroupOpened,
    Nudged,
    SessionEvent,
    SessionOpened,
    Stamped,
    Stopped,
    TaskGiven,
    ToolBegan,
    ToolEnded,
)
from callwright.agent.history import answered, cut, result, shortened, summed_up, user
from callwright.agent.nudges import INTERRUPTED, told
from callwright.errors import StoreError
from callwright.model import Message, Part, Text, ToolCall, ToolResult

__all__ = ["Past", "history_of", "unfinished"]

_DECISIVE = (
    TaskGiven,
    Answered,
    Decided,
    Checkpointed,
    ToolEnded,
    Nudged,
    Condensed,
    GroupOpened,
    GroupClosed,
    Stopped,
)
"""What the loop said, or was answered. The rest was for those who watched."""


class Past:
    """Answers effects from events, in order, as long as there are any."""

    def __init__(self, events: Iterable[Stamped]) -> None:
        happened = [stamped.event for stamped in events]
        self._events: list[SessionEvent] = [event for event in happened if _is_decisive(event)]
        self._next = 0
        self.begun = _left_open(happened, ToolBegan)
        """Calls that ran when the process ended."""
        self.planned = _left_open(happened, Checkpointed)
        """Edits that were to be made, or were being made."""

    def answer(self, effect: Effect) -> Answer | None:
        """What came of it then; None when it was never done, or not to its end.

        `StoreError` when something else was done: the session was written by another version.
        """
        if self._next == len(self._events):
            return None
        event = self._events[self._next]
        if not _fits(effect, event):
            what = f"the session wants {type(effect).__name__} where {type(event).__name__} happened"
            raise StoreError(f"{what}; it was written by another version of Callwright")
        self._next += 1
        return event


def _left_open(events: Iterable[SessionEvent], kind: type[ToolBegan | Checkpointed]) -> frozenset[str]:
    """Calls that came so far and not to their end. In order: some models give every call the same id."""
    left: set[str] = set()
    for event in events:
        if isinstance(event, kind):
            left.add(event.call)
        elif isinstance(event, ToolEnded):
            left.discard(event.call)
    return frozenset(left)


def _is_decisive(event: SessionEvent) -> bool:
    if isinstance(event, Decided):
        return bool(event.call.name)  # a server that may be started is no call of the loop's
    return isinstance(event, _DECISIVE)


def _fits(effect: Effect, event: SessionEvent) -> bool:
    match effect:
        case Tell():
            return type(event) is type(effect.event)
        case CallModel():
            return isinstance(event, Answered) and event.purpose == effect.purpose
        case Decide():
            return isinstance(event, Decided) and event.call.id == effect.call.id
        case Checkpoint():
            return isinstance(event, Checkpointed) and event.call == effect.call.id
        case RunTool():
            return isinstance(event, ToolEnded) and event.call == effect.call.id


def unfinished(events: Sequence[Stamped]) -> int | None:
    """Where the task begins that has no end; None when all have."""
    for place in range(len(events) - 1, -1, -1):
        event = events[place].event
        if isinstance(event, Stopped):
            return None
        if isinstance(event, TaskGiven):
            return place
    return None


def history_of(events: Iterable[Stamped]) -> tuple[Message, ...]:
    """What the model was told and said, as far as these events go, as short as the loop made it."""
    messages: list[Message] = []
    task = 0
    summary: Message | None = None
    calls: dict[str, ToolCall] = {}  # without a result so far
    words: dict[str, str] = {}
    for stamped in events:
        match stamped.event:
            case SessionOpened(system=system):
                messages.append(Message("system", (Text(system),)))
            case TaskGiven(text=text) | Nudged(text=text):
                # A task that was left in the middle of a call: no server takes a call without its result.
                messages.extend(result(left, INTERRUPTED, is_error=True) for left in calls.values())
                task = len(messages) if isinstance(stamped.event, TaskGiven) else task
                messages.append(user(text))
                calls = {}
            case Answered(purpose="condense", message=message):
                summary = message
            case Condensed(cut=most):
                messages = shortened(messages, task)
                if summary is not None:
                    messages, task = summed_up(messages, task, summary)
                    summary = None
                messages = cut(messages, most) if most else messages
            case Answered(purpose="turn", message=message) as answer if said := _said(answer):
                messages.append(answered(Message(message.role, said)))
                calls = {part.id: part for part in said if isinstance(part, ToolCall)}
            case Decided(verdict="allow") as decided:
                words[decided.call.id] = decided.words
            case ToolEnded() as ended:
                calls.pop(ended.call, None)
                content = told(words.pop(ended.call, ""), ended.content)
                part = ToolResult(ended.call, content, name=ended.name, is_error=ended.status != "ok")
                messages.append(Message("tool", (part,)))
            case _:
                pass
    return tuple(messages)


def _said(answer: Answered) -> tuple[Part, ...]:
    """An answer that broke off made no calls: none of them was looked at."""
    parts = answer.message.parts
    return tuple(part for part in parts if isinstance(part, Text)) if answer.stopped or answer.problem else parts
