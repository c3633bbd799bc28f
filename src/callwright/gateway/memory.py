"""What answers came before: conversations kept for clients that name the last answer instead of sending it again.

Only the Responses wire does that. The newest are kept, within a number and a size; a client whose conversation is
gone is told so in the form that makes it send the whole. One caller never finds another's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from callwright.gateway.limits import length
from callwright.model import Message

__all__ = ["Memory"]


class Memory:
    """Conversations by the id of their last answer, and by whose they are."""

    def __init__(self, *, most: int = 1024, characters: int = 64_000_000) -> None:
        self._most = most
        self._characters = characters
        self._size = 0
        self._kept: OrderedDict[tuple[str, str], tuple[Message, ...]] = OrderedDict()

    def keep(self, caller: str, answer: str, messages: Sequence[Message]) -> None:
        """Remember a conversation; the oldest ones go when there are too many."""
        self._kept[caller, answer] = tuple(messages)
        self._size += _size(messages)
        while len(self._kept) > self._most or (self._size > self._characters and len(self._kept) > 1):
            _, gone = self._kept.popitem(last=False)
            self._size -= _size(gone)

    def recall(self, caller: str, answers: Iterable[str]) -> dict[str, tuple[Message, ...]]:
        """Those of these conversations that are still there."""
        return {answer: self._kept[caller, answer] for answer in answers if (caller, answer) in self._kept}


def _size(messages: Iterable[Message]) -> int:
    return sum(length(part) for message in messages for part in message.parts)
