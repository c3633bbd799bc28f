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

from callwright.engine.continuing import Conversations
from callwright.errors import CallwrightError, StoreError
from callwright.gateway.draft import Draft
from callwright.gateway.metrics import Metrics
from callwright.gateway.record import TurnRecord
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry
from callwright.store.settings import StoreSettings
from callwright.wire.base import ErrorResponse

__all__ = ["Kept", "Rows", "Scribe", "Shelf"]

log = logging.getLogger("callwright.journal")

_ROWS = 1024
_SIZE = 64_000_000
"""How much may wait, in rows and in characters."""
_TOGETHER = 16
"""Rows on their way at once: they share a commit."""
_AGAIN_SECONDS = 5.0
"""Before a store that cannot be opened is tried again; rows wait meanwhile."""
_LAST_SECONDS = 5.0
"""For what is left when the service stops: about as long as turns have for their last words."""
_QUIET_SECONDS = 60.0
"""Between two lines of the log about rows that were dropped."""


class Rows(Protocol):
    """What rows are added to."""

    async def append(self, entry: JournalEntry) -> int:
        """Write a row; `StoreError` when it was not."""
        ...


class Kept(Protocol):
    """An open store, as far as it matters here: what it is made of is loaded only where one is opened."""

    @property
    def journal(self) -> Rows:
        """Where rows go."""
        ...

    @property
    def conversations(self) -> Conversations:
        """Which conversation belongs to which history."""
        ...

    async def close(self) -> None:
        """Give back the database."""
        ...


class Shelf(NamedTuple):
    """Where the journal goes and conversations are found again: its settings, and how that store is opened."""

    settings: StoreSettings
    open: Callable[[Redactor], Awaitable[Kept]]


class _Row(NamedTuple):
    entry: Callable[[], JournalEntry]
    """Makes it: that may take a while."""
    size: int


class Scribe:
    """One for the life of the service. Needs the running loop once there is something to keep."""

    def __init__(self, redactor: Redactor, metrics: Metrics) -> None:
        self._redactor = redactor
        self._metrics = metrics
        self._desk: _Desk | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self, shelf: Shelf | None) -> None:
        """Write there from now on; None for nowhere."""
        old = self._desk
        if shelf and old and shelf.settings == old.shelf.settings:
            return
        self._desk = _Desk(shelf, self._redactor, self._metrics) if shelf else None
        if old:
            task = asyncio.get_running_loop().create_task(old.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def draft(self, headers: Mapping[str, str]) -> Draft | None:
        """A row for a turn that begins; None when nothing is kept."""
        desk = self._desk
        keep = desk.shelf.settings.journal if desk else "off"
        return Draft(headers, words=keep == "full") if keep != "off" else None

    def put(self, draft: Draft, record: TurnRecord, problem: ErrorResponse | None) -> None:
        """The turn of this draft is over: write it some time soon."""
        if self._desk:
            self._desk.put(_Row(partial(draft.entry, record, problem), draft.size))

    async def store(self) -> Kept | None:
        """The store, once it is open; None when there is none, or it cannot be opened for now."""
        return await self._desk.opened() if self._desk else None

    async def close(self) -> None:
        """Write what is left, within the time that there is for it."""
        self.follow(None)
        if self._closing:
            await asyncio.wait(self._closing)


class _Desk:
    """Rows on their way to one store."""

    def __init__(self, shelf: Shelf, redactor: Redactor, metrics: Metrics) -> None:
        self.shelf = shelf
        self._redactor = redactor
        self._outcomes = {name: metrics.journal.labels(name) for name in ("written", "dropped")}
        self._rows: deque[_Row] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._store: Kept | None = None
        self._tried = asyncio.Event()
        """Whether it can be opened is known."""
        self._closing = False
        self._dropped = 0
        self._told = -_QUIET_SECONDS
        self._task = asyncio.create_task(self._run())

    def put(self, row: _Row) -> None:
        if len(self._rows) >= _ROWS or self._size + row.size > _SIZE:
            self._drop(1, "the store is too slow for them")
            return
        self._rows.append(row)
        self._size += row.size
        self._wake.set()

    async def opened(self) -> Kept | None:
        await self._tried.wait()
        return self._store

    async def close(self) -> None:
        self._closing = True
        self._tried.set()
        self._wake.set()
        await asyncio.wait([self._task], timeout=_LAST_SECONDS if self._store or self._rows else 0)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_LAST_SECONDS)
        if self._rows:
            self._drop(len(self._rows), "the service stopped before they were written")

    async def _run(self) -> None:
        store = self._store = await self._open()
        self._tried.set()
        try:
            while True:
                self._wake.clear()
                while some := list(islice(self._rows, _TOGETHER)):
                    entries = [await asyncio.to_thread(row.entry) for row in some]
                    await asyncio.gather(*(self._write(store, entry) for entry in entries))
                    for row in some:
                        self._size -= row.size
                        self._rows.popleft()
                if self._closing:
                    return
                await self._wake.wait()
        finally:
            await store.close()

    async def _open(self) -> Kept:
        while True:
            try:
                return await self.shelf.open(self._redactor)
            except CallwrightError as problem:
                log.error("the journal cannot be opened, and is tried again soon: %s", problem)  # noqa: TRY400 - no bug
            self._tried.set()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _write(self, store: Kept, entry: JournalEntry) -> None:
        try:
            await store.journal.append(entry)
        except (StoreError, RecursionError) as problem:  # the second: a schema that is nested too deeply for Python
            self._drop(1, str(problem))
        else:
            self._outcomes["written"].inc()

    def _drop(self, rows: int, why: str) -> None:
        """Count, and say so now and then: a disk that is full must not fill the log as well."""
        self._outcomes["dropped"].inc(rows)
        self._dropped += rows
        if time.monotonic() - self._told >= _QUIET_SECONDS:
            self._told = time.monotonic()
            log.error("rows of the journal were dropped: %s", why, extra={"fields": {"rows": self._dropped}})
            self._dropped = 0
