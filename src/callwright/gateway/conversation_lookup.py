"""Finds a backend's conversation in the store that is open.

A failing store never fails a turn: nothing is found, and the whole history is sent to a new conversation.
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
    """Looks up conversations in the journal writer's store."""

    def __init__(self, journal_writer: JournalWriter) -> None:
        self._journal_writer = journal_writer

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Claim the conversation that shares the longest history with these messages. None when there is none."""
        try:
            store = await self._journal_writer.get_store()
            return await store.conversations.find(messages, scope) if store else None
        except StoreError as problem:
            log.warning("conversation lookup failed, a new conversation is started: %s", problem)
            return None

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """Store that this conversation of the backend contains these messages."""
        try:
            if store := await self._journal_writer.get_store():
                await store.conversations.remember(messages, scope, backend_id)
        except StoreError as problem:
            log.warning("conversation not saved, it cannot be continued later: %s", problem)
