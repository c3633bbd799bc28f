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
from callwright.agent.history import answered, user
from callwright.errors import StoreError
from callwright.model import Message, Text, ToolResult

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
        told = [stamped.event for stamped in events]
        self._events: list[SessionEvent] = [event for event in told if _is_decisive(event)]
        self._next = 0
        begun = {event.call for event in told if isinstance(event, ToolBegan)}
        ended = {event.call for event in told if isinstance(event, ToolEnded)}
        self.begun = frozenset(begun - ended)
        """Calls that ran when the process ended."""

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
    """What the model was told and said, as far as these events go. What was condensed is there at its full length."""
    messages: list[Message] = []
    for stamped in events:
        match stamped.event:
            case SessionOpened(system=system):
                messages.append(Message("system", (Text(system),)))
            case TaskGiven(text=text) | Nudged(text=text):
                messages.append(user(text))
            case Answered(purpose="turn", message=message) if message.parts:
                messages.append(answered(message))
            case ToolEnded() as ended:
                content = ToolResult(ended.call, ended.content, name=ended.name, is_error=ended.status != "ok")
                messages.append(Message("tool", (content,)))
            case _:
                pass
    return tuple(messages)
