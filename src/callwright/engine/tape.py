"""Tape: what is recorded of a turn for the journal, while it runs.

One for each turn that is to be kept; a turn that is not has none, and costs nothing. Events are recorded as they pass
and are handed on untouched. What is recorded is bounded: of an answer that is longer only the beginning is kept, and
`cut` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from callwright.backends.base import Backend, EventStream
from callwright.engine.telling import Way
from callwright.errors import BackendError
from callwright.events import CallDelta, Event, Malformed, ReasoningDelta, TextDelta, merge_deltas
from callwright.model import Request
from callwright.store.journal_records import RecordedAttempt, RecordedFailure

__all__ = ["Tape"]

_MOST = 1_000_000
"""Characters of one answer: many times what a model writes in a turn, unless it never stops."""


class _Track:
    """Events of one answer, as far as they are kept."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.size = 0

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case TextDelta() | ReasoningDelta() | CallDelta():
                    self.size += len(event.text)
                case Malformed():
                    self.size += len(event.raw)
                case _:
                    pass
        if self.size <= _MOST:
            self._events += events

    @property
    def events(self) -> tuple[Event, ...]:
        """Neighbouring deltas are joined: a secret that came in pieces is one again, and can be masked."""
        return tuple(merge_deltas(self._events))


class _Asking:
    """One time that the model is being asked."""

    def __init__(self, backend: Backend, way: Way, request: Request, extra: dict[str, Any]) -> None:
        self.backend = backend
        self.flavour = backend.flavour
        self.way = way
        self.request = request
        self.extra = extra
        self.said = _Track()
        self.failure: BackendError | None = None
        self.again = ""


class Tape:
    """The record of one choice. `words`: whether what was said is kept, or only that it was."""

    def __init__(self, choice: int = 0, *, words: bool = True) -> None:
        self._choice = choice
        self._words = words
        self._asked: list[_Asking] = []
        self._out = _Track()

    def asking(
        self, backend: Backend, way: Way, request: Request, extra: dict[str, Any], answer: EventStream
    ) -> EventStream:
        """A backend's answer to this request, recorded while it comes."""
        asking = _Asking(backend, way, request, extra)
        self._asked.append(asking)
        return self._heard(asking, answer)

    async def _heard(self, asking: _Asking, answer: EventStream) -> EventStream:
        try:
            async with aclosing(answer):
                async for events in answer:
                    if self._words:
                        asking.said.add(events)
                    yield events
        except BackendError as problem:
            asking.failure = problem
            raise

    def again(self, why: str) -> None:
        """The last answer will not do. What was not even asked has no place here."""
        if self._asked and not self._asked[-1].again:
            self._asked[-1].again = why

    async def sent(self, turn: EventStream) -> EventStream:
        """A turn, recorded on its way to the client."""
        async with aclosing(turn):
            async for events in turn:
                if self._words:
                    self._out.add(events)
                yield events

    @property
    def size(self) -> int:
        """Roughly how many characters it holds."""
        return self._out.size + sum(each.said.size for each in self._asked)

    @property
    def cut(self) -> bool:
        """Something was too long to be kept whole."""
        return any(track.size > _MOST for track in (self._out, *(each.said for each in self._asked)))

    @property
    def asked(self) -> tuple[RecordedAttempt, ...]:
        """Each time that the model was asked, in order."""
        return tuple(map(self._value, self._asked))

    @property
    def got(self) -> tuple[Event, ...]:
        """What the client got."""
        return self._out.events

    def _value(self, asking: _Asking) -> RecordedAttempt:
        return RecordedAttempt(
            choice=self._choice,
            backend=asking.backend.settings.name,
            kind=asking.backend.settings.kind,
            wire=asking.backend.wire,
            flavour=asking.flavour,
            strategy=asking.way.strategy,
            strategy_reason=asking.way.why,
            request=asking.request if self._words else None,
            extra=asking.extra if self._words else {},
            events=asking.said.events,
            failure=_failure(asking.failure) if asking.failure else None,
            retry_reason=asking.again,
        )


def _failure(problem: BackendError) -> RecordedFailure:
    same = {name: getattr(problem, name) for name in RecordedFailure.__struct_fields__ if name != "message"}
    return RecordedFailure(message=str(problem), **same)
