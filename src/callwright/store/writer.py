"""The one writer: everything that changes the database goes through it, in order, many changes to a commit.

A caller goes on when its change is committed, never before: that is what "acknowledged" means. While one commit waits
for the disk the next changes gather, so the cost of a commit is shared under load and nobody waits without it.
A change that fails spoils no other: the rest of its batch is done again, one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from callwright.errors import StoreError
from callwright.store.errors import DATABASE_ERRORS, get_reason

__all__ = ["DatabaseChange", "DatabaseWriter"]

T = TypeVar("T")
DatabaseChange = Callable[[AsyncConnection], Awaitable[T]]
"""What is to be done, inside a transaction that is not its own. May be called twice, when the first was undone."""

_BATCH_SIZE = 256


class _PendingChange(NamedTuple):
    change: DatabaseChange[Any]
    future: asyncio.Future[Any]

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class DatabaseWriter:
    """Begins at once; `close` waits for what was asked before."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._queue: list[_PendingChange] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task = asyncio.create_task(self._run_batches())

    async def write(self, change: DatabaseChange[T]) -> T:
        """Do it, and return its result once it is committed. `StoreError` when it was not.

        A caller that is cancelled while it waits does not know whether its change was made.
        """
        if self._closing or self._task.done():
            raise StoreError("the store is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_PendingChange(change, done))
        self._wake.set()
        return await done

    async def close(self) -> None:
        """Finish what was asked for, and take nothing more."""
        self._closing = True
        self._wake.set()
        await self._task

    async def _run_batches(self) -> None:
        batch: list[_PendingChange] = []
        try:
            while not self._closing:
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    batch, self._queue = self._queue[:_BATCH_SIZE], self._queue[_BATCH_SIZE:]
                    if staying := [job for job in batch if not job.future.cancelled()]:
                        await self._commit_batch(staying)
        finally:  # after a bug in a change nobody may wait for ever
            for job in (*batch, *self._queue):
                job.fail(StoreError("the store was closed before this was written"))

    async def _commit_batch(self, jobs: Sequence[_PendingChange]) -> None:
        """All of them or, when one fails, each by itself."""
        begun = committing = False
        try:
            async with self._engine.connect() as connection:
                await connection.begin()
                begun = True
                results = [await job.change(connection) for job in jobs]
                committing = True
                await _commit_or_invalidate(connection)
        except DATABASE_ERRORS as error:
            # What could not begin was no change's fault: a lock would be waited for by each of them.
            if not begun or committing or len(jobs) == 1:
                for job in jobs:
                    job.fail(StoreError(f"the store did not take it: {get_reason(error)}"))
                return
        else:
            for job, result in zip(jobs, results, strict=True):
                if not job.future.done():
                    job.future.set_result(result)
            return
        for job in jobs:
            await self._commit_batch([job])


async def _commit_or_invalidate(connection: AsyncConnection) -> None:
    """Commit. Whether one that fails was made cannot be known: it is not tried again, and its connection is not used
    again, since the transaction may still be open there and the next commit would make it."""
    try:
        await connection.commit()
    except DATABASE_ERRORS:
        await connection.invalidate()
        raise
