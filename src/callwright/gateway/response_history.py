"""Stores conversations for clients that name the last response instead of sending the history again.

Only the Responses wire does that. The newest conversations are kept, up to a number and a size. A client whose
conversation is gone gets the error that makes it send the whole history. Callers cannot see each other's conversations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from callwright.gateway.limits import count_part_characters
from callwright.model import Message

__all__ = ["ResponseHistory"]


class ResponseHistory:
    """Conversations by caller and by the id of their last response."""

    def __init__(self, *, max_entries: int = 1024, max_characters: int = 64_000_000) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._size = 0
        self._conversations: OrderedDict[tuple[str, str], tuple[Message, ...]] = OrderedDict()

    def store_conversation(self, caller: str, response_id: str, messages: Sequence[Message]) -> None:
        """Store a conversation, and drop the oldest ones beyond the limits."""
        self._conversations[caller, response_id] = tuple(messages)
        self._size += _count_characters(messages)
        while len(self._conversations) > self._max_entries or (
            self._size > self._max_characters and len(self._conversations) > 1
        ):
            _, dropped = self._conversations.popitem(last=False)
            self._size -= _count_characters(dropped)

    def find_conversations(self, caller: str, response_ids: Iterable[str]) -> dict[str, tuple[Message, ...]]:
        """Return those of these conversations that are still stored."""
        return {
            response_id: self._conversations[caller, response_id]
            for response_id in response_ids
            if (caller, response_id) in self._conversations
        }


def _count_characters(messages: Iterable[Message]) -> int:
    return sum(count_part_characters(part) for message in messages for part in message.parts)
