"""The interface of a service that stores conversations, whatever the transport:

    create(prompt, model, system) → id, text …        send(id, prompt, model, system) → text …

A request contains the messages that the service has not received, which are sent as one. `ServiceConversation` selects
the operation, receives the id of a new conversation, and records whether the service may have received anything.
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
"""Error code: the conversation cannot be continued. Send the whole history to a new one."""


class ServiceConversation(msgspec.Struct):
    """One conversation of a service, used by one turn at a time."""

    id: str = ""
    """Empty until the service has named a new conversation."""
    has_received: bool = False
    """The service may have received something in this turn, so its history may be longer than the stored one."""


class StatefulBackend(ABC):
    """A backend that stores conversations."""

    @abstractmethod
    def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Send the request's messages to a conversation, or create one, and stream the answer. Raises `BackendError`
        with the code `CONVERSATION_LOST` when the service does not have that conversation any more."""


def flatten_request(request: Request) -> FlatPrompt:
    """Flatten a request to the prompt to send. Raises `BackendError` for a request with tools."""
    if request.tools:
        message = "conversations are text: this backend does not support tools"
        raise BackendError(message, kind="refused", code=TOOLS_REFUSED)
    return flatten_messages(request.messages)
