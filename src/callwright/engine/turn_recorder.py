"""Records a turn for the journal while it runs.

A turn that is not recorded has no recorder, and no cost. Events are recorded as they pass and are not changed. The size
is limited: only the beginning of a longer answer is recorded, and `is_truncated` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from callwright.backends.base import Backend, EventStream
from callwright.engine.backend_request import CallPlan
from callwright.errors import BackendError
from callwright.events import CallDelta, Event, Malformed, ReasoningDelta, TextDelta, merge_deltas
from callwright.model import Request
from callwright.store.journal_records import RecordedAttempt, RecordedFailure

__all__ = ["TurnRecorder"]

_MAX_CHARACTERS = 1_000_000
"""Maximum characters of one answer: many times what a model writes in a turn, unless it never stops."""


class _BoundedEvents:
    """The events of one answer, up to a limit."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.character_count = 0

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case TextDelta() | ReasoningDelta() | CallDelta():
                    self.character_count += len(event.text)
                case Malformed():
                    self.character_count += len(event.raw)
                case _:
                    pass
        if self.character_count <= _MAX_CHARACTERS:
            self._events += events

    @property
    def events(self) -> tuple[Event, ...]:
        """The events with adjacent deltas joined, so that a secret in several pieces can be masked."""
        return tuple(merge_deltas(self._events))


class _Attempt:
    """One request to a model."""

    def __init__(self, backend: Backend, plan: CallPlan, request: Request, extra: dict[str, Any]) -> None:
        self.backend = backend
        self.flavour = backend.flavour
        self.plan = plan
        self.request = request
        self.extra = extra
        self.answer = _BoundedEvents()
        self.failure: BackendError | None = None
        self.retry_reason = ""


class TurnRecorder:
    """The record of one choice. Without `keep_content` only metadata is recorded."""

    def __init__(self, choice: int = 0, *, keep_content: bool = True) -> None:
        self._choice = choice
        self._keeps_content = keep_content
        self._attempts: list[_Attempt] = []
        self._client_events = _BoundedEvents()

    def record_attempt(
        self, backend: Backend, plan: CallPlan, request: Request, extra: dict[str, Any], answer: EventStream
    ) -> EventStream:
        """Wrap a backend's answer to this request so that it is recorded."""
        attempt = _Attempt(backend, plan, request, extra)
        self._attempts.append(attempt)
        return self._record_answer(attempt, answer)

    async def _record_answer(self, attempt: _Attempt, answer: EventStream) -> EventStream:
        try:
            async with aclosing(answer):
                async for events in answer:
                    if self._keeps_content:
                        attempt.answer.add(events)
                    yield events
        except BackendError as problem:
            attempt.failure = problem
            raise

    def record_retry(self, detail: str) -> None:
        """Record why the last answer is not usable. Ignored when no request was sent."""
        if self._attempts and not self._attempts[-1].retry_reason:
            self._attempts[-1].retry_reason = detail

    async def record_turn(self, turn: EventStream) -> EventStream:
        """Wrap a turn so that the events for the client are recorded."""
        async with aclosing(turn):
            async for events in turn:
                if self._keeps_content:
                    self._client_events.add(events)
                yield events

    @property
    def character_count(self) -> int:
        """Approximate number of recorded characters."""
        return self._client_events.character_count + sum(each.answer.character_count for each in self._attempts)

    @property
    def is_truncated(self) -> bool:
        """Whether a part was too long to be recorded."""
        return any(
            bounded.character_count > _MAX_CHARACTERS
            for bounded in (self._client_events, *(each.answer for each in self._attempts))
        )

    @property
    def attempts(self) -> tuple[RecordedAttempt, ...]:
        """All requests to the model, in order."""
        return tuple(map(self._to_journal_value, self._attempts))

    @property
    def client_events(self) -> tuple[Event, ...]:
        """The events that the client received."""
        return self._client_events.events

    def _to_journal_value(self, attempt: _Attempt) -> RecordedAttempt:
        return RecordedAttempt(
            choice=self._choice,
            backend=attempt.backend.settings.name,
            kind=attempt.backend.settings.kind,
            wire=attempt.backend.wire,
            flavour=attempt.flavour,
            strategy=attempt.plan.strategy,
            strategy_reason=attempt.plan.strategy_reason,
            request=attempt.request if self._keeps_content else None,
            extra=attempt.extra if self._keeps_content else {},
            events=attempt.answer.events,
            failure=_to_failure(attempt.failure) if attempt.failure else None,
            retry_reason=attempt.retry_reason,
        )


def _to_failure(problem: BackendError) -> RecordedFailure:
    fields = {name: getattr(problem, name) for name in RecordedFailure.__struct_fields__ if name != "message"}
    return RecordedFailure(message=str(problem), **fields)
