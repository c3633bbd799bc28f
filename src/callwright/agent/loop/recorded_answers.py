"""The recorded answers of a session: they answer effects when a task is replayed, and give the model's messages so
far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callwright.agent.loop.effects import (
    CallModel,
    DecideCall,
    Effect,
    EffectAnswer,
    EmitEvent,
    RunTool,
    SaveCheckpoint,
)
from callwright.agent.loop.message_history import (
    make_answer_message,
    make_result_message,
    make_user_message,
    replace_with_summary,
    shorten_old_results,
    truncate_results,
)
from callwright.agent.loop.nudges import CALL_INTERRUPTED, prepend_user_note
from callwright.agent.session_events import (
    CallDecided,
    CheckpointSaved,
    GroupClosed,
    GroupOpened,
    HistoryCondensed,
    ModelAnswered,
    ModelNudged,
    SessionEvent,
    SessionOpened,
    StampedEvent,
    TaskStarted,
    TaskStopped,
    ToolFinished,
    ToolStarted,
)
from callwright.errors import StoreError
from callwright.model import Message, Part, Text, ToolCall, ToolResult

__all__ = ["RecordedAnswers", "build_history", "find_unfinished_task"]

_REPLAYED_EVENTS = (
    TaskStarted,
    ModelAnswered,
    CallDecided,
    CheckpointSaved,
    ToolFinished,
    ModelNudged,
    HistoryCondensed,
    GroupOpened,
    GroupClosed,
    TaskStopped,
)
"""The events that the loop sent or received. All others are only for display."""


class RecordedAnswers:
    """Answers effects from recorded events, in order, as long as there are any."""

    def __init__(self, events: Iterable[StampedEvent]) -> None:
        happened = [stamped.event for stamped in events]
        self._events: list[SessionEvent] = [event for event in happened if _is_replayed(event)]
        self._next = 0
        self.started_calls = _find_open_calls(happened, ToolStarted)
        """Calls that were running when the process ended."""
        self.planned_edits = _find_open_calls(happened, CheckpointSaved)
        """Edits that were planned or in progress."""

    def replay_answer(self, effect: Effect) -> EffectAnswer | None:
        """Return the recorded answer to an effect; None if it was never performed, or not completely.

        Raises `StoreError` if another effect was recorded: the session was written by another version.
        """
        if self._next == len(self._events):
            return None
        event = self._events[self._next]
        if not _matches_effect(effect, event):
            what = f"the session expects {type(effect).__name__}, but {type(event).__name__} is recorded"
            raise StoreError(f"{what}; it was written by another version of Callwright")
        self._next += 1
        return event


def _find_open_calls(events: Iterable[SessionEvent], kind: type[ToolStarted | CheckpointSaved]) -> frozenset[str]:
    """Return calls that were started and not finished. In order, since some models give every call the same id."""
    left: set[str] = set()
    for event in events:
        if isinstance(event, kind):
            left.add(event.call)
        elif isinstance(event, ToolFinished):
            left.discard(event.call)
    return frozenset(left)


def _is_replayed(event: SessionEvent) -> bool:
    if isinstance(event, CallDecided):
        return bool(event.call.name)  # the approval of a server is not a call of the loop
    return isinstance(event, _REPLAYED_EVENTS)


def _matches_effect(effect: Effect, event: SessionEvent) -> bool:
    match effect:
        case EmitEvent():
            return type(event) is type(effect.event)
        case CallModel():
            return isinstance(event, ModelAnswered) and event.purpose == effect.purpose
        case DecideCall():
            return isinstance(event, CallDecided) and event.call.id == effect.call.id
        case SaveCheckpoint():
            return isinstance(event, CheckpointSaved) and event.call == effect.call.id
        case RunTool():
            return isinstance(event, ToolFinished) and event.call == effect.call.id


def find_unfinished_task(events: Sequence[StampedEvent]) -> int | None:
    """Return the index at which the unfinished task begins; None if there is none."""
    for index in range(len(events) - 1, -1, -1):
        event = events[index].event
        if isinstance(event, TaskStopped):
            return None
        if isinstance(event, TaskStarted):
            return index
    return None


def build_history(events: Iterable[StampedEvent]) -> tuple[Message, ...]:
    """Build the model's messages from events, as condensed as the loop made them."""
    messages: list[Message] = []
    task = 0
    summary: Message | None = None
    calls: dict[str, ToolCall] = {}  # without a result so far
    words: dict[str, str] = {}
    for stamped in events:
        match stamped.event:
            case SessionOpened(system=system):
                messages.append(Message("system", (Text(system),)))
            case TaskStarted(text=text) | ModelNudged(text=text):
                # The task ended in the middle of a call, and servers reject a call without its result.
                messages.extend(make_result_message(left, CALL_INTERRUPTED, is_error=True) for left in calls.values())
                task = len(messages) if isinstance(stamped.event, TaskStarted) else task
                messages.append(make_user_message(text))
                calls = {}
            case ModelAnswered(purpose="condense", message=message):
                summary = message
            case HistoryCondensed(max_result_chars=max_chars):
                messages = shorten_old_results(messages, task)
                if summary is not None:
                    messages, task = replace_with_summary(messages, task, summary)
                    summary = None
                messages = truncate_results(messages, max_chars) if max_chars else messages
            case ModelAnswered(purpose="turn", message=message) as answer if parts := _get_usable_parts(answer):
                messages.append(make_answer_message(Message(message.role, parts)))
                calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
            case CallDecided(verdict="allow") as decided:
                words[decided.call.id] = decided.words
            case ToolFinished() as ended:
                calls.pop(ended.call, None)
                content = prepend_user_note(words.pop(ended.call, ""), ended.content)
                part = ToolResult(ended.call, content, name=ended.name, is_error=ended.status != "ok")
                messages.append(Message("tool", (part,)))
            case _:
                pass
    return tuple(messages)


def _get_usable_parts(answer: ModelAnswered) -> tuple[Part, ...]:
    """Return the parts of an answer; an interrupted answer made no calls, since none of them was processed."""
    parts = answer.message.parts
    return tuple(part for part in parts if isinstance(part, Text)) if answer.stopped or answer.problem else parts
