"""Recall: finds a backend's conversation again, in whichever store is open.

A store that fails costs no turn: nothing is found then, and all of the history is told to a new conversation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from callwright.errors import StoreError
from callwright.gateway.journal_writer import JournalWriter
from callwright.model import Message
from callwright.store.identity import ConversationScope, MatchedConversation

__all__ = ["ConversationLookup"]

log = logging.getLogger("callwright.store")


class ConversationLookup:
    """The conversations of the scribe's store."""

    def __init__(self, scribe: JournalWriter) -> None:
        self._journal_writer = scribe

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Take out the conversation that has seen most of this history."""
        try:
            store = await self._journal_writer.get_store()
            return await store.conversations.find(messages, scope) if store else None
        except StoreError as problem:
            log.warning("a conversation was not found again: %s", problem)
            return None

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """This conversation has seen these messages."""
        try:
            if store := await self._journal_writer.get_store():
                await store.conversations.remember(messages, scope, backend_id)
        except StoreError as problem:
            log.warning("a conversation will not be found again: %s", problem)
