"""Which of a backend's conversations belongs to a history, for backends that keep conversations.

Clients send whole histories and no id. A backend's conversation stands at one place: the history that it has seen, its
*head*. It may be continued only from there, since a backend cannot unsay anything. So a history finds the conversation
whose head is its longest prefix, and one that was edited before the head finds none.

Two clients may have said and heard exactly the same; then there are two conversations with the same head. Finding one
therefore takes it out, in the same statement, and `remember` puts it back where the next turn will look for it. Of two
requests that continue the same history, the second finds the other conversation or none, and starts a new one; this
holds between processes and replicas too. What is taken out when a process dies is forgotten: nobody knows what the
backend saw of that turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from callwright.errors import MisuseError
from callwright.model import Message
from callwright.store.identity import ConversationScope, MatchedConversation, hash_prefixes
from callwright.store.tables import conversations
from callwright.store.writer import DatabaseWriter

__all__ = ["ConversationStore", "MatchedConversation"]

_BATCH_SIZE = 500
"""Hashes in one statement: below the limit of every driver, and more than most histories have."""

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class ConversationStore:
    """The conversations that nobody is continuing at the moment."""

    def __init__(self, writer: DatabaseWriter, *, clock: Callable[[], float] = time.time) -> None:
        self._writer = writer
        self._clock = clock

    async def find(self, messages: Sequence[Message], scope: ConversationScope) -> MatchedConversation | None:
        """Take out the conversation that has seen most of this history and nothing else; None for a new one.

        It is the caller's alone until `remember`. To give it back untouched: `remember(messages[:known], …)`.
        """
        heads = hash_prefixes(messages[:-1], scope)

        async def take(connection: AsyncConnection) -> MatchedConversation | None:
            for some in _iter_batches(heads):
                row = (await connection.execute(_build_claim(some))).one_or_none()
                if row:
                    return MatchedConversation(row.backend_id, row.messages)
            return None

        return await self._writer.write(take)

    async def remember(self, messages: Sequence[Message], scope: ConversationScope, backend_id: str) -> None:
        """This conversation has seen these messages, its own answer included, and may be continued from there."""
        if not messages or not backend_id:
            raise MisuseError("a conversation has messages and an id")
        place = {"head": hash_prefixes(messages, scope)[-1], "messages": len(messages), "at": self._clock()}

        async def put(connection: AsyncConnection) -> None:
            row = _INSERTS[connection.dialect.name](conversations).values(
                scope=scope.digest, backend_id=backend_id, **place
            )
            await connection.execute(row.on_conflict_do_update(index_elements=["scope", "backend_id"], set_=place))

        await self._writer.write(put)


def _iter_batches(heads: list[str]) -> Iterator[list[str]]:
    for end in range(len(heads), 0, -_BATCH_SIZE):
        yield heads[max(0, end - _BATCH_SIZE) : end]


def _build_claim(heads: list[str]) -> Any:
    """Take out the best of them. One that another replica is just taking is passed over."""
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
