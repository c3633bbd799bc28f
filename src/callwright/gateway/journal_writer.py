"""Writes the journal in the background, so that no turn waits for a disk or fails with one.

A turn hands over its entry builder and continues. Entries wait in a queue that is bounded by number and size. Entries
that do not fit, or that the store refuses, are dropped, counted and logged. While nothing is recorded there is no
queue, no task and no database. A reload with other settings opens the new store and then closes the old one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

from callwright.engine.conversation_routing import ConversationRegistry
from callwright.errors import CallwrightError, StoreError
from callwright.gateway.entry_builder import JournalEntryBuilder
from callwright.gateway.metrics import Metrics
from callwright.gateway.turn_record import TurnRecord
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry
from callwright.store.settings import StoreSettings
from callwright.store.usage_records import UsageRow
from callwright.wire.base import ErrorResponse

__all__ = ["JournalSink", "JournalWriter", "OpenStore", "StoreOpener", "UsageTable"]

log = logging.getLogger("callwright.journal")

_MAX_ENTRIES = 1024
_MAX_SIZE = 64_000_000
"""Limits of the queue, in entries and in characters."""
_BATCH_SIZE = 16
"""Number of entries written at a time. They share a commit."""
_REOPEN_SECONDS = 5.0
"""Seconds before opening the store is tried again. Entries wait meanwhile."""
_DRAIN_SECONDS = 5.0
"""Seconds for writing the remaining entries when the service stops, about as long as cancelled turns have to end."""
_LOG_INTERVAL_SECONDS = 60.0
"""Minimum seconds between two log messages about dropped entries."""


class JournalSink(Protocol):
    """Accepts journal entries."""

    async def append(self, entry: JournalEntry) -> int:
        """Write an entry and return its number. Raises `StoreError` when it cannot be written."""
        ...


class UsageTable(Protocol):
    """Requests and tokens by day, key, model and client."""

    async def add_usage(self, rows: Sequence[UsageRow]) -> None:
        """Add rows. Raises `StoreError` when none of them is written."""
        ...

    async def query_usage(self, by: Sequence[str], since: date | None = None) -> list[dict[str, Any]]:
        """Return the sums for each combination of these columns. Raises `StoreError`."""
        ...


class OpenStore(Protocol):
    """The interface of an open store. The store's own module is imported only where one is opened."""

    @property
    def journal(self) -> JournalSink:
        """The journal of this store."""
        ...

    @property
    def conversations(self) -> ConversationRegistry:
        """Maps message histories to the conversations of backends."""
        ...

    @property
    def usage(self) -> UsageTable:
        """What turns used."""
        ...

    async def close(self) -> None:
        """Close the database."""
        ...


class StoreOpener(NamedTuple):
    """The settings of a store, and the function that opens it."""

    settings: StoreSettings
    open: Callable[[Redactor], Awaitable[OpenStore]]


class _PendingEntry(NamedTuple):
    build_entry: Callable[[], JournalEntry]
    """Builds the entry, which may take a while."""
    size: int


class JournalWriter:
    """Writes journal entries. One instance lives as long as the service; it needs the running loop once it has a
    store."""

    def __init__(self, redactor: Redactor, metrics: Metrics) -> None:
        self._redactor = redactor
        self._metrics = metrics
        self._queue: _WriteQueue | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def use_store(self, opener: StoreOpener | None) -> None:
        """Write to this store from now on. None stops recording."""
        old = self._queue
        if opener and old and opener.settings == old.opener.settings:
            return
        self._queue = _WriteQueue(opener, self._redactor, self._metrics) if opener else None
        if old:
            task = asyncio.get_running_loop().create_task(old.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def start_entry(self, headers: Mapping[str, str]) -> JournalEntryBuilder | None:
        """Start the entry of a turn. Returns None when nothing is recorded."""
        queue = self._queue
        level = queue.opener.settings.journal if queue else "off"
        return JournalEntryBuilder(headers, keep_content=level == "full") if level != "off" else None

    def queue_entry(
        self, entry_builder: JournalEntryBuilder, record: TurnRecord, problem: ErrorResponse | None
    ) -> None:
        """Queue the entry of a finished turn for writing."""
        if self._queue:
            self._queue.put(
                _PendingEntry(partial(entry_builder.build_entry, record, problem), entry_builder.size_estimate)
            )

    @property
    def has_store(self) -> bool:
        """Whether there is a store, open or about to be opened."""
        return self._queue is not None

    async def get_store(self) -> OpenStore | None:
        """Wait for the store and return it. None when there is none, or it cannot be opened at the moment."""
        return await self._queue.wait_for_store() if self._queue else None

    async def close(self) -> None:
        """Write the remaining entries within the time limit, and close the store."""
        self.use_store(None)
        if self._closing:
            await asyncio.wait(self._closing)


class _WriteQueue:
    """Entries waiting to be written to one store."""

    def __init__(self, opener: StoreOpener, redactor: Redactor, metrics: Metrics) -> None:
        self.opener = opener
        self._redactor = redactor
        self._outcomes = {name: metrics.journal_entries.labels(name) for name in ("written", "dropped")}
        self._entries: deque[_PendingEntry] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._store: OpenStore | None = None
        self._open_tried = asyncio.Event()
        """Set after the first attempt to open the store, successful or not."""
        self._closing = False
        self._dropped = 0
        self._logged_at = -_LOG_INTERVAL_SECONDS
        self._task = asyncio.create_task(self._write_entries())

    def put(self, entry: _PendingEntry) -> None:
        if len(self._entries) >= _MAX_ENTRIES or self._size + entry.size > _MAX_SIZE:
            self._drop_entries(1, "the queue is full because the store is too slow")
            return
        self._entries.append(entry)
        self._size += entry.size
        self._wake.set()

    async def wait_for_store(self) -> OpenStore | None:
        await self._open_tried.wait()
        return self._store

    async def close(self) -> None:
        self._closing = True
        self._open_tried.set()
        self._wake.set()
        await asyncio.wait([self._task], timeout=_DRAIN_SECONDS if self._store or self._entries else 0)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_DRAIN_SECONDS)
        if self._entries:
            self._drop_entries(len(self._entries), "the service stopped before they were written")

    async def _write_entries(self) -> None:
        store = self._store = await self._open_store()
        self._open_tried.set()
        try:
            while True:
                self._wake.clear()
                while batch := list(islice(self._entries, _BATCH_SIZE)):
                    entries = [await asyncio.to_thread(pending.build_entry) for pending in batch]
                    await asyncio.gather(*(self._write_entry(store, entry) for entry in entries))
                    for pending in batch:
                        self._size -= pending.size
                        self._entries.popleft()
                if self._closing:
                    return
                await self._wake.wait()
        finally:
            await store.close()

    async def _open_store(self) -> OpenStore:
        while True:
            try:
                return await self.opener.open(self._redactor)
            except CallwrightError as problem:
                log.error("the journal cannot be opened, trying again soon: %s", problem)  # noqa: TRY400 - no bug
            self._open_tried.set()
            await asyncio.sleep(_REOPEN_SECONDS)

    async def _write_entry(self, store: OpenStore, entry: JournalEntry) -> None:
        try:
            await store.journal.append(entry)
        except (StoreError, RecursionError) as problem:  # RecursionError: a schema that is nested too deeply for Python
            self._drop_entries(1, str(problem))
        else:
            self._outcomes["written"].inc()

    def _drop_entries(self, count: int, reason: str) -> None:
        """Count dropped entries, and log them at intervals: a full disk must not fill the log as well."""
        self._outcomes["dropped"].inc(count)
        self._dropped += count
        if time.monotonic() - self._logged_at >= _LOG_INTERVAL_SECONDS:
            self._logged_at = time.monotonic()
            log.error("journal entries dropped: %s", reason, extra={"fields": {"rows": self._dropped}})
            self._dropped = 0
