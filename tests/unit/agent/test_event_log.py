"""The log: one order without a gap, whoever is cancelled while an event is stored."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.agent.event_log import EventLog, read_events
from callwright.agent.session_events import StampedEvent, TextAppended
from callwright.store.open import open_agent_store
from callwright.store.session_store import SessionRecord
from callwright.store.settings import StoreSettings


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 4) | st.none(), min_size=1, max_size=12))
def test_an_event_whose_writer_is_cancelled_is_stored_and_shown_in_its_place(steps: list[int | None]) -> None:
    """A number is an event whose writer is cancelled after so many turns of the event loop; None is left alone."""

    async def run(folder: Path) -> None:
        async with open_agent_store(StoreSettings(), folder) as store:
            await store.sessions.create_session(SessionRecord("s", 0, 0, "", "/w", "m", False, 0, 0, 0))
            log = EventLog(store.sessions, "s")
            shown: list[StampedEvent] = []
            log.subscribe(shown.append)
            begun: list[str] = []
            for number, cancelled in enumerate(steps):
                adding = asyncio.ensure_future(log.add(TextAppended(str(number))))
                for _ in range(100 if cancelled is None else cancelled):
                    await asyncio.sleep(0)
                if cancelled != 0:
                    begun.append(str(number))
                if cancelled is not None:
                    adding.cancel()
            last = await log.add(TextAppended("last"))
            stored = read_events(await store.sessions.list_events("s"))
            assert [stamped.event.text for stamped in stored] == [*begun, "last"]  # type: ignore[union-attr]
            assert [stamped.seq for stamped in stored] == list(range(1, last.seq + 1))
            assert shown == stored == log.events

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
