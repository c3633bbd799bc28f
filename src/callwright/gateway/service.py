"""What every request needs: the settings and the engine of the moment, and what outlives them.

A `State` never changes. A reload makes a new one and swaps it in; requests that began with the old one finish with
it, and its engine is closed after the last of them. Metrics, limits, the ledger and the journal belong to the service
and survive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from callwright.engine import Engine
from callwright.errors import MisuseError
from callwright.gateway.keys import Keyring
from callwright.gateway.ledger import Ledger
from callwright.gateway.limits import Limits
from callwright.gateway.metrics import Metrics
from callwright.gateway.recall import Recall
from callwright.gateway.record import TurnRecord
from callwright.gateway.scribe import Scribe, Shelf
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.redaction import Redactor

__all__ = ["Service", "State"]

log = logging.getLogger("callwright.turns")


@dataclass(frozen=True)
class State:
    """What a reload replaces, as a whole."""

    server: ServerSettings
    keys: tuple[KeySettings, ...]
    engine: Engine
    secrets: frozenset[str] = frozenset()
    """What must never be logged, besides the clients' keys: those of the backends."""
    shelf: Shelf | None = None
    """Where the journal and conversations are kept; None for nowhere."""

    @cached_property
    def keyring(self) -> Keyring:
        return Keyring(self.keys, self.server.host)


class _Held:
    """A state, and how many requests use it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.users = 0
        self.replaced = False


class Service:
    """One for the life of the process."""

    def __init__(
        self,
        state: State,
        *,
        metrics: Metrics | None = None,
        limits: Limits | None = None,
        ledger: Ledger | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.limits = limits or Limits()
        self.ledger = ledger or Ledger(state.server.ledger)
        self.redactor = redactor or Redactor()
        self.scribe = Scribe(self.redactor, self.metrics)
        self.stopping = False
        """No new work: readiness says so. Turns in flight go on …"""
        self.ending = False
        """… until this: a turn that is cancelled now tells its client `problems.stopping()`."""
        self._turns: set[asyncio.Task[Any]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._recall = Recall(self.scribe)
        self._held = _Held(state)
        self._adopt(state)

    @property
    def state(self) -> State:
        """The state for a request that begins now."""
        return self._held.state

    @contextmanager
    def using(self) -> Iterator[State]:
        """Keep the state of this moment alive for one request."""
        held = self._held
        held.users += 1
        try:
            yield held.state
        finally:
            held.users -= 1
            if held.replaced and not held.users:
                self._later(held.state.engine.close())

    def replace(self, state: State) -> None:
        """Swap in a new state. Needs the running loop."""
        old, self._held = self._held, _Held(state)
        old.replaced = True
        self._adopt(state)
        if not old.users:
            self._later(old.state.engine.close())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Around one turn, in its own task: it is counted, and cancelled when the time to shut down is over."""
        task = asyncio.current_task()
        if task is None:
            raise MisuseError("a turn runs in a task of its own")
        self._turns.add(task)
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self.metrics.streams.dec()
            self._turns.discard(task)

    def finish(self, record: TurnRecord) -> None:
        """Tell everybody who keeps count that a turn is over."""
        self.metrics.count(record)
        if record.status == 200:
            self.ledger.add(record)
        log.info("turn", extra={"fields": record.fields()})

    def end_turns(self) -> None:
        """The time to shut down is over: cancel every turn in flight."""
        self.ending = True
        for task in self._turns:
            task.cancel()

    async def close(self) -> None:
        """Close the engines, the journal and the ledger."""
        await self._held.state.engine.close()
        await self.scribe.close()
        if self._closing:
            await asyncio.wait(self._closing)
        self.ledger.close()

    def _adopt(self, state: State) -> None:
        self.redactor.add_secrets({*state.secrets, *(key.key for key in state.keys)})
        self.scribe.follow(state.shelf)
        state.engine.conversations = self._recall

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
