"""What answers came before: conversations kept for clients that name the last answer instead of sending it again.

Only the Responses wire does that. The newest are kept, within a number and a size; a client whose conversation is
gone is told so in the form that makes it send the whole. One caller never finds another's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from callwright.gateway.limits import count_part_characters
from callwright.model import Message

__all__ = ["ResponseHistory"]


class ResponseHistory:
    """Conversations by the id of their last answer, and by whose they are."""

    def __init__(self, *, max_entries: int = 1024, max_characters: int = 64_000_000) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._size = 0
        self._conversations: OrderedDict[tuple[str, str], tuple[Message, ...]] = OrderedDict()

    def store_conversation(self, caller: str, response_id: str, messages: Sequence[Message]) -> None:
        """Remember a conversation; the oldest ones go when there are too many."""
        self._conversations[caller, response_id] = tuple(messages)
        self._size += _count_characters(messages)
        while len(self._conversations) > self._max_entries or (
            self._size > self._max_characters and len(self._conversations) > 1
        ):
            _, gone = self._conversations.popitem(last=False)
            self._size -= _count_characters(gone)

    def find_conversations(self, caller: str, response_ids: Iterable[str]) -> dict[str, tuple[Message, ...]]:
        """Those of these conversations that are still there."""
        return {
            answer: self._conversations[caller, answer]
            for answer in response_ids
            if (caller, answer) in self._conversations
        }


def _count_characters(messages: Iterable[Message]) -> int:
    return sum(count_part_characters(part) for message in messages for part in message.parts)
