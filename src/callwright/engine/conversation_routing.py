"""Continuing: a turn on backends that keep conversations. Each history has a conversation of its own there.

A conversation is taken out of the store for the turn, so that nobody else continues it. It is put back if what it knows
is certain: with the answer, when that was heard to its end, or as it was, when the service heard nothing. Otherwise it
is forgotten, and the next turn tells all of the history to a new one. So does this turn if the service does not have
the conversation any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec

from callwright.backends.base import EventStream
from callwright.backends.conversation.contract import CONVERSATION_LOST, ServiceConversation, StatefulBackend
from callwright.engine.backend_request import CallPlan
from callwright.engine.routing import ModelRoute
from callwright.errors import BackendError
from callwright.events import Event, Finish
from callwright.model import Message, Request, Text
from callwright.prompt.volatile_lines import move_volatile_lines_last
from callwright.store.identity import ConversationScope, MatchedConversation
from callwright.turn import collect

__all__ = ["ConversationRegistry", "ConversationRouting", "ConversationSlot"]


_MAX_EVENTS = 200_000
"""Events of one answer: a conversation in which a model does not stop is forgotten."""


class ConversationRegistry(Protocol):
    """Which of a backend's conversations belongs to a history. `store.conversations` says more."""

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Take out the one that has seen most of this history and nothing else."""
        ...

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """It has seen these messages, and may be continued from there."""
        ...


class ConversationRouting:
    """The conversations of one turn, one for each backend that is asked."""

    def __init__(
        self,
        backends: Mapping[str, StatefulBackend],
        conversations: ConversationRegistry | None,
        request: Request,
        route: ModelRoute,
        caller: str,
    ) -> None:
        self._backends = backends
        self._conversations = conversations
        # Lines that change from request to request do not make it another history.
        self._history, _ = move_volatile_lines_last(request.messages, route.prompt.volatile)
        self._scopes = {name: ConversationScope(caller, route.upstream, name) for name in backends}
        self._slots: dict[str, ConversationSlot] = {}
        self._last_slot: ConversationSlot | None = None

    async def get_slot(self, name: str) -> ConversationSlot | None:
        """Where this turn is at a backend; None at one that keeps nothing."""
        if name not in self._backends:
            self._last_slot = None
            return None
        if name not in self._slots:
            found = None
            if self._conversations is not None:
                found = await self._conversations.find(self._history, self._scopes[name])
            self._slots[name] = ConversationSlot(self._backends[name], self._history, found)
        self._last_slot = self._slots[name]
        return self._last_slot

    async def track_turn(self, turn: EventStream) -> EventStream:
        """A turn on its way to the client. What its backend's conversation knows is remembered before the turn's end
        goes out: the client may go on from there at once."""
        said: list[Event] = []
        try:
            async with aclosing(turn):
                async for events in turn:
                    said += events[: _MAX_EVENTS - len(said)]
                    if isinstance(said[-1], Finish):
                        await self._remember_answer(said)
                    yield events
        finally:
            await self._return_unused()

    async def _remember_answer(self, events: Sequence[Event]) -> None:
        place = self._last_slot
        if self._conversations is None or place is None or not place.is_complete:
            return
        turn = collect(events)
        answer = Message("assistant", ((Text(turn.text),) if turn.text else ()) + turn.tool_calls)
        name = next(name for name, each in self._slots.items() if each is place)
        await self._conversations.remember((*self._history, answer), self._scopes[name], place.conversation.id)

    async def _return_unused(self) -> None:
        """Those that were taken out, and heard nothing."""
        for name, place in self._slots.items():
            if self._conversations is not None and place.known_messages and not place.conversation.has_received:
                heard = self._history[: place.known_messages]
                await self._conversations.remember(heard, self._scopes[name], place.conversation.id)


class ConversationSlot:
    """Where a turn is at one backend: the conversation, and how much of the history it has heard."""

    def __init__(self, keeper: StatefulBackend, history: Sequence[Message], found: MatchedConversation | None) -> None:
        self._backend = keeper
        self.conversation = ServiceConversation(found.backend_id if found else "")
        self.known_messages = found.known_messages if found else 0
        self._foreign_answers = sum(message.role == "assistant" for message in history[self.known_messages :])
        """Answers in the history that it has not heard: they came from elsewhere."""
        self._sent_messages = 0
        """Messages of the request that it was asked with in this turn."""
        self.is_complete = False
        """Its last answer was heard to the end."""

    def adapt_plan(self, route: ModelRoute, plan: CallPlan) -> tuple[ModelRoute, CallPlan]:
        """How it is told: instructions at the beginning of the conversation only, where they are heard."""
        if self.conversation.has_received and not self.is_complete:
            self._start_new()
        prompt = msgspec.structs.replace(route.prompt, system="fold_first")
        # Messages must not be joined: a part of them is sent.
        history = msgspec.structs.replace(route.history, roles="as-sent")
        told = msgspec.structs.replace(route, prompt=prompt, history=history)
        return told, plan._replace(is_first_turn=not self.conversation.id)

    def unsent_messages(self, backend_request: Request, request: Request) -> Request:
        """What is to be said of a request as it is told: all of it in a new conversation; in one that has heard this
        request already what was added to it; else what follows the last answer that it gave."""
        if self.conversation.has_received:
            new = max(1, len(request.messages) - self._sent_messages)
            return msgspec.structs.replace(backend_request, messages=backend_request.messages[-new:])
        self._sent_messages = len(request.messages)
        if not self.conversation.id:
            return backend_request
        answers = [at for at, message in enumerate(backend_request.messages, 1) if message.role == "assistant"]
        heard = answers[: len(answers) - self._foreign_answers]
        return msgspec.structs.replace(backend_request, messages=backend_request.messages[heard[-1] if heard else 0 :])

    async def stream_answer(self, request: Request) -> EventStream:
        """Say it, and hear what comes back."""
        self.is_complete = False
        async with aclosing(self._backend.stream_conversation(request, self.conversation)) as answer:
            async for events in answer:
                self.is_complete = isinstance(events[-1], Finish)
                yield events

    def reset_if_lost(self, problem: BackendError) -> bool:
        """Whether it failed because the service does not have the conversation any more; there is a new one then."""
        if problem.code != CONVERSATION_LOST or not self.conversation.id:
            return False
        self._start_new()
        return True

    def _start_new(self) -> None:
        self.conversation, self.known_messages = ServiceConversation(), 0
