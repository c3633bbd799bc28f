"""A store for a test, in the test's own loop and closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry
from callwright.store.open import Store, open_store
from callwright.store.settings import StoreSettings

NOWHERE = Path("/nowhere")


@asynccontextmanager
async def opened(
    address: str, *, redactor: Redactor | None = None, clock: Callable[[], float] | None = None, **settings: Any
) -> AsyncIterator[Store]:
    """Everything is kept, for ever, unless the settings say otherwise."""
    given = StoreSettings(**{"address": address, "journal": "full", "days": 0, **settings})
    clocks = {"clock": clock} if clock else {}
    store = await open_store(given, NOWHERE, redactor or Redactor(), **clocks)
    try:
        yield store
    finally:
        await store.close()


def entry(request_id: str = "req_1", **fields: Any) -> JournalEntry:
    """A row without much in it."""
    return JournalEntry(**{"at": 1000.0, "request_id": request_id, "wire": "openai_chat", "model": "big", **fields})
