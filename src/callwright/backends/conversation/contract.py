"""The contract with a service that keeps conversations, whatever way it is reached:

    create(prompt, model, system) → id, text …        send(id, prompt, model, system) → text …

A request holds the messages that the service has not heard; they go out as one. `Conversation` says which operation it
is, is told the id of a new one, and whether the service may have heard anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from callwright.backends.base import EventStream
from callwright.backends.errors import TOOLS_REFUSED
from callwright.errors import BackendError
from callwright.model import Request
from callwright.prompt.flatten import FlatPrompt, flatten_messages

__all__ = ["CONVERSATION_LOST", "ServiceConversation", "StatefulBackend", "flatten_request"]

CONVERSATION_LOST = "conversation_lost"
"""The code of a failure after which a conversation cannot be continued: tell all of it to a new one."""


class ServiceConversation(msgspec.Struct):
    """One of a service's conversations, while a turn has it to itself."""

    id: str = ""
    """Empty until the service has named a new one."""
    has_received: bool = False
    """The service may have heard something in this turn: it knows more than is remembered of it."""


class StatefulBackend(ABC):
    """A backend that keeps conversations."""

    @abstractmethod
    def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Say the request's messages in a conversation, or begin one. `BackendError` with the code `LOST` when the
        service does not have that conversation any more."""


def flatten_request(request: Request) -> FlatPrompt:
    """What is to be said. There is no place for tools beside it."""
    if request.tools:
        message = "a conversation is text: this backend does not support tools"
        raise BackendError(message, kind="refused", code=TOOLS_REFUSED)
    return flatten_messages(request.messages)
