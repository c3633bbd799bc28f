"""Finds the conversation of a backend that belongs to a history, for backends that store conversations.

Clients send whole histories without an id. A backend's conversation contains one history, its *head*, and can only be
continued from there, since a backend cannot forget messages. A history therefore matches the conversation whose head is
its longest prefix; a history that was edited before the head matches none.

Two clients may have identical histories, and then two conversations have the same head. `find` therefore removes the
conversation in the same statement, and `remember` stores it with its new head. Of two requests that continue the same
history, the second finds the other conversation or none and starts a new one. This holds between processes and replicas
too. A conversation that is claimed when a process dies is forgotten, since it is unknown what the backend received.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from callwright.errors import MisuseError
from callwright.model import Message
from callwright.store.identity import ConversationScope, MatchedConversation, hash_prefixes
from callwright.store.tables import INSERTS, conversations
from callwright.store.writer import DatabaseWriter

__all__ = ["ConversationStore", "MatchedConversation"]

_BATCH_SIZE = 500
"""Hashes per statement: below the limit of every driver, and more than most histories have."""


class ConversationStore:
    """The conversations that no turn is using."""

    def __init__(self, writer: DatabaseWriter, *, clock: Callable[[], float] = time.time) -> None:
        self._writer = writer
        self._clock = clock

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Claim the conversation that contains the longest prefix of this history and nothing else; None for a new one.

        It belongs to the caller until `remember`. To return it unused, call `remember(messages[:known_messages], …)`.
        """
        heads = hash_prefixes(messages[:-1], scope)

        async def take(connection: AsyncConnection) -> MatchedConversation | None:
            for batch in _iter_batches(heads):
                row = (await connection.execute(_build_claim(batch))).one_or_none()
                if row:
                    return MatchedConversation(row.backend_id, row.messages)
            return None

        return await self._writer.write(take)

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """Store that this conversation contains these messages, its own answer included, and can be continued."""
        if not messages or not backend_id:
            raise MisuseError("remember requires messages and a backend_id")
        head = {"head": hash_prefixes(messages, scope)[-1], "messages": len(messages), "at": self._clock()}

        async def put(connection: AsyncConnection) -> None:
            row = INSERTS[connection.dialect.name](conversations).values(
                scope=scope.digest, backend_id=backend_id, **head
            )
            await connection.execute(row.on_conflict_do_update(index_elements=["scope", "backend_id"], set_=head))

        await self._writer.write(put)


def _iter_batches(heads: list[str]) -> Iterator[list[str]]:
    for end in range(len(heads), 0, -_BATCH_SIZE):
        yield heads[max(0, end - _BATCH_SIZE) : end]


def _build_claim(heads: list[str]) -> Any:
    """Delete and return the best match. Rows that another replica is claiming are skipped."""
    best = (
        select(conversations.c.number)
        .where(conversations.c.head.in_(heads))
        .order_by(conversations.c.messages.desc(), conversations.c.at.desc())
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    return (
        delete(conversations)
        .where(conversations.c.number == best.scalar_subquery())
        .returning(conversations.c.backend_id, conversations.c.messages)
    )
