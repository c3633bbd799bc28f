"""Runs a turn on backends that store conversations. Each history has its own conversation there.

A conversation is removed from the registry for the turn, so that no other turn continues it. It is put back when its
content is certain: with the answer, when that was read to its end, or unchanged, when the service received nothing.
Otherwise it is forgotten, and the next turn sends the whole history to a new one. So does this turn when the service
does not have the conversation any more.
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
"""Maximum number of events of one answer. The conversation of a longer one is forgotten."""


class ConversationRegistry(Protocol):
    """Maps histories to the conversations of backends. `store.conversations` explains it."""

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Claim the conversation that contains the longest prefix of this history and nothing else."""
        ...

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """Store that this conversation contains these messages and can be continued."""
        ...


class ConversationRouting:
    """The conversations of one turn, one per backend."""

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
        # Lines that change with every request do not make it another history.
        self._history, _ = move_volatile_lines_last(request.messages, route.prompt.volatile)
        self._scopes = {name: ConversationScope(caller, route.upstream, name) for name in backends}
        self._slots: dict[str, ConversationSlot] = {}
        self._last_slot: ConversationSlot | None = None

    async def get_slot(self, name: str) -> ConversationSlot | None:
        """Return the conversation of this turn at a backend; None at a backend that stores none."""
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
        """Wrap a turn on its way to the client. The conversation is stored before the turn's last event is sent, since
        the client may continue at once."""
        seen: list[Event] = []
        try:
            async with aclosing(turn):
                async for events in turn:
                    seen += events[: _MAX_EVENTS - len(seen)]
                    if isinstance(seen[-1], Finish):
                        await self._remember_answer(seen)
                    yield events
        finally:
            await self._return_unused()

    async def _remember_answer(self, events: Sequence[Event]) -> None:
        slot = self._last_slot
        if self._conversations is None or slot is None or not slot.is_complete:
            return
        turn = collect(events)
        answer = Message("assistant", ((Text(turn.text),) if turn.text else ()) + turn.tool_calls)
        name = next(name for name, each in self._slots.items() if each is slot)
        await self._conversations.remember((*self._history, answer), self._scopes[name], slot.conversation.id)

    async def _return_unused(self) -> None:
        """Return the claimed conversations that received nothing."""
        for name, slot in self._slots.items():
            if self._conversations is not None and slot.known_messages and not slot.conversation.has_received:
                known = self._history[: slot.known_messages]
                await self._conversations.remember(known, self._scopes[name], slot.conversation.id)


class ConversationSlot:
    """A turn at one backend: the conversation, and how much of the history it contains."""

    def __init__(self, backend: StatefulBackend, history: Sequence[Message], found: MatchedConversation | None) -> None:
        self._backend = backend
        self.conversation = ServiceConversation(found.backend_id if found else "")
        self.known_messages = found.known_messages if found else 0
        self._foreign_answers = sum(message.role == "assistant" for message in history[self.known_messages :])
        """Answers in the history that the conversation does not contain: they came from elsewhere."""
        self._sent_messages = 0
        """Messages of the request that was sent in this turn."""
        self.is_complete = False
        """Whether its last answer was read to the end."""

    def adapt_plan(self, route: ModelRoute, plan: CallPlan) -> tuple[ModelRoute, CallPlan]:
        """Adapt the plan: instructions are sent at the beginning of a conversation only."""
        if self.conversation.has_received and not self.is_complete:
            self._start_new()
        prompt = msgspec.structs.replace(route.prompt, system="fold_first")
        # Messages must not be merged, because only some of them are sent.
        history = msgspec.structs.replace(route.history, roles="as-sent")
        adapted_route = msgspec.structs.replace(route, prompt=prompt, history=history)
        return adapted_route, plan._replace(is_first_turn=not self.conversation.id)

    def unsent_messages(self, backend_request: Request, request: Request) -> Request:
        """Return the part of a request that is to be sent: all of it to a new conversation; to one that has received
        this request already, what was added to it; otherwise what follows the last answer of the conversation."""
        if self.conversation.has_received:
            added = max(1, len(request.messages) - self._sent_messages)
            return msgspec.structs.replace(backend_request, messages=backend_request.messages[-added:])
        self._sent_messages = len(request.messages)
        if not self.conversation.id:
            return backend_request
        answers = [
            position for position, message in enumerate(backend_request.messages, 1) if message.role == "assistant"
        ]
        known_answers = answers[: len(answers) - self._foreign_answers]
        return msgspec.structs.replace(
            backend_request, messages=backend_request.messages[known_answers[-1] if known_answers else 0 :]
        )

    async def stream_answer(self, request: Request) -> EventStream:
        """Send the request and stream the answer."""
        self.is_complete = False
        async with aclosing(self._backend.stream_conversation(request, self.conversation)) as answer:
            async for events in answer:
                self.is_complete = isinstance(events[-1], Finish)
                yield events

    def reset_if_lost(self, problem: BackendError) -> bool:
        """Whether the failure means that the service lost the conversation. A new one is started in that case."""
        if problem.code != CONVERSATION_LOST or not self.conversation.id:
            return False
        self._start_new()
        return True

    def _start_new(self) -> None:
        self.conversation, self.known_messages = ServiceConversation(), 0
