"""Scribe: has the store open, and writes the journal behind the turns, so that none ever waits for a disk or fails with
it.

A turn hands over its draft and goes on. Drafts wait in a queue that is bounded by number and by size; what does not fit
any more, and what the store does not take, is dropped, counted and logged. While nothing is kept, there is no queue,
no task and no database. A reload with other settings opens the new store, and closes the old one behind it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from callwright.engine.conversation_routing import ConversationRegistry
from callwright.errors import CallwrightError, StoreError
from callwright.gateway.entry_builder import JournalEntryBuilder
from callwright.gateway.metrics import Metrics
from callwright.gateway.turn_record import TurnRecord
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry
from callwright.store.settings import StoreSettings
from callwright.wire.base import ErrorResponse

__all__ = ["JournalSink", "JournalWriter", "OpenStore", "StoreOpener"]

log = logging.getLogger("callwright.journal")

_MAX_ENTRIES = 1024
_MAX_SIZE = 64_000_000
"""How much may wait, in rows and in characters."""
_BATCH_SIZE = 16
"""Rows on their way at once: they share a commit."""
_REOPEN_SECONDS = 5.0
"""Before a store that cannot be opened is tried again; rows wait meanwhile."""
_DRAIN_SECONDS = 5.0
"""For what is left when the service stops: about as long as turns have for their last words."""
_LOG_INTERVAL_SECONDS = 60.0
"""Between two lines of the log about rows that were dropped."""


class JournalSink(Protocol):
    """What rows are added to."""

    async def append(self, entry: JournalEntry) -> int:
        """Write a row; `StoreError` when it was not."""
        ...


class OpenStore(Protocol):
    """An open store, as far as it matters here: what it is made of is loaded only where one is opened."""

    @property
    def journal(self) -> JournalSink:
        """Where rows go."""
        ...

    @property
    def conversations(self) -> ConversationRegistry:
        """Which conversation belongs to which history."""
        ...

    async def close(self) -> None:
        """Give back the database."""
        ...


class StoreOpener(NamedTuple):
    """Where the journal goes and conversations are found again: its settings, and how that store is opened."""

    settings: StoreSettings
    open: Callable[[Redactor], Awaitable[OpenStore]]


class _PendingEntry(NamedTuple):
    build_entry: Callable[[], JournalEntry]
    """Makes it: that may take a while."""
    size: int


class JournalWriter:
    """One for the life of the service. Needs the running loop once there is something to keep."""

    def __init__(self, redactor: Redactor, metrics: Metrics) -> None:
        self._redactor = redactor
        self._metrics = metrics
        self._queue: _WriteQueue | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def use_store(self, opener: StoreOpener | None) -> None:
        """Write there from now on; None for nowhere."""
        old = self._queue
        if opener and old and opener.settings == old.opener.settings:
            return
        self._queue = _WriteQueue(opener, self._redactor, self._metrics) if opener else None
        if old:
            task = asyncio.get_running_loop().create_task(old.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def start_entry(self, headers: Mapping[str, str]) -> JournalEntryBuilder | None:
        """A row for a turn that begins; None when nothing is kept."""
        desk = self._queue
        keep = desk.opener.settings.journal if desk else "off"
        return JournalEntryBuilder(headers, keep_content=keep == "full") if keep != "off" else None

    def queue_entry(
        self, entry_builder: JournalEntryBuilder, record: TurnRecord, problem: ErrorResponse | None
    ) -> None:
        """The turn of this draft is over: write it some time soon."""
        if self._queue:
            self._queue.put(
                _PendingEntry(partial(entry_builder.build_entry, record, problem), entry_builder.size_estimate)
            )

    async def get_store(self) -> OpenStore | None:
        """The store, once it is open; None when there is none, or it cannot be opened for now."""
        return await self._queue.wait_for_store() if self._queue else None

    async def close(self) -> None:
        """Write what is left, within the time that there is for it."""
        self.use_store(None)
        if self._closing:
            await asyncio.wait(self._closing)


class _WriteQueue:
    """Rows on their way to one store."""

    def __init__(self, shelf: StoreOpener, redactor: Redactor, metrics: Metrics) -> None:
        self.opener = shelf
        self._redactor = redactor
        self._outcomes = {name: metrics.journal_entries.labels(name) for name in ("written", "dropped")}
        self._entries: deque[_PendingEntry] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._store: OpenStore | None = None
        self._open_tried = asyncio.Event()
        """Whether it can be opened is known."""
        self._closing = False
        self._dropped = 0
        self._logged_at = -_LOG_INTERVAL_SECONDS
        self._task = asyncio.create_task(self._write_entries())

    def put(self, row: _PendingEntry) -> None:
        if len(self._entries) >= _MAX_ENTRIES or self._size + row.size > _MAX_SIZE:
            self._drop_entries(1, "the store is too slow for them")
            return
        self._entries.append(row)
        self._size += row.size
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
                while some := list(islice(self._entries, _BATCH_SIZE)):
                    entries = [await asyncio.to_thread(row.build_entry) for row in some]
                    await asyncio.gather(*(self._write_entry(store, entry) for entry in entries))
                    for row in some:
                        self._size -= row.size
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
                log.error("the journal cannot be opened, and is tried again soon: %s", problem)  # noqa: TRY400 - no bug
            self._open_tried.set()
            await asyncio.sleep(_REOPEN_SECONDS)

    async def _write_entry(self, store: OpenStore, entry: JournalEntry) -> None:
        try:
            await store.journal.append(entry)
        except (StoreError, RecursionError) as problem:  # the second: a schema that is nested too deeply for Python
            self._drop_entries(1, str(problem))
        else:
            self._outcomes["written"].inc()

    def _drop_entries(self, rows: int, reason: str) -> None:
        """Count, and say so now and then: a disk that is full must not fill the log as well."""
        self._outcomes["dropped"].inc(rows)
        self._dropped += rows
        if time.monotonic() - self._logged_at >= _LOG_INTERVAL_SECONDS:
            self._logged_at = time.monotonic()
            log.error("rows of the journal were dropped: %s", reason, extra={"fields": {"rows": self._dropped}})
            self._dropped = 0
