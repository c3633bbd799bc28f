"""The single writer: every change of the database goes through it, in order, with many changes per commit.

A caller continues only when its change is committed. While one commit waits for the disk, further changes queue up and
share the next commit; without load there is no delay. A failing change does not affect others: the rest of its batch is
repeated one by one.
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
"""Runs inside a shared transaction. It may be called twice, when the first call was rolled back."""

_BATCH_SIZE = 256


class _PendingChange(NamedTuple):
    change: DatabaseChange[Any]
    future: asyncio.Future[Any]

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class DatabaseWriter:
    """Starts at once. `close` waits for pending changes."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._queue: list[_PendingChange] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task = asyncio.create_task(self._run_batches())

    async def write(self, change: DatabaseChange[T]) -> T:
        """Run a change, and return its result once it is committed. Raises `StoreError` when it was not.

        A caller that is cancelled while waiting does not know whether its change was committed.
        """
        if self._closing or self._task.done():
            raise StoreError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append(_PendingChange(change, future))
        self._wake.set()
        return await future

    async def close(self) -> None:
        """Commit pending changes, and accept no more."""
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
                    if active := [job for job in batch if not job.future.cancelled()]:
                        await self._commit_batch(active)
        finally:  # after a bug in a change no caller may wait forever
            for job in (*batch, *self._queue):
                job.fail(StoreError("the store was closed before this was written"))

    async def _commit_batch(self, jobs: Sequence[_PendingChange]) -> None:
        """Commit all changes or, when one fails, each by itself."""
        has_begun = committing = False
        try:
            async with self._engine.connect() as connection:
                await connection.begin()
                has_begun = True
                results = [await job.change(connection) for job in jobs]
                committing = True
                await _commit_or_invalidate(connection)
        except DATABASE_ERRORS as error:
            # A transaction that could not begin is no change's fault; each of them would wait for the same lock again.
            if not has_begun or committing or len(jobs) == 1:
                for job in jobs:
                    job.fail(StoreError(f"the change was not stored: {get_reason(error)}"))
                return
        else:
            for job, result in zip(jobs, results, strict=True):
                if not job.future.done():
                    job.future.set_result(result)
            return
        for job in jobs:
            await self._commit_batch([job])


async def _commit_or_invalidate(connection: AsyncConnection) -> None:
    """Commit. After a failure it is unknown whether the commit took place, so it is not repeated, and the connection is
    discarded: its transaction may still be open, and the next commit would commit it."""
    try:
        await connection.commit()
    except DATABASE_ERRORS:
        await connection.invalidate()
        raise
