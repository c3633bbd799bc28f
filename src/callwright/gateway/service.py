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
from callwright.gateway.conversation_lookup import ConversationLookup
from callwright.gateway.journal_writer import JournalWriter, StoreOpener
from callwright.gateway.keys import Keyring
from callwright.gateway.ledger import UsageLedger
from callwright.gateway.limits import RateLimiter
from callwright.gateway.metrics import Metrics
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.gateway.turn_record import TurnRecord
from callwright.redaction import Redactor

__all__ = ["GatewayService", "GatewayState"]

log = logging.getLogger("callwright.turns")


@dataclass(frozen=True)
class GatewayState:
    """What a reload replaces, as a whole."""

    server: ServerSettings
    keys: tuple[KeySettings, ...]
    engine: Engine
    secrets: frozenset[str] = frozenset()
    """What must never be logged, besides the clients' keys: those of the backends."""
    store_opener: StoreOpener | None = None
    """Where the journal and conversations are kept; None for nowhere."""

    @cached_property
    def keyring(self) -> Keyring:
        return Keyring(self.keys, self.server.host)


class _StateLease:
    """A state, and how many requests use it."""

    def __init__(self, state: GatewayState) -> None:
        self.state = state
        self.users = 0
        self.is_replaced = False


class GatewayService:
    """One for the life of the process."""

    def __init__(
        self,
        state: GatewayState,
        *,
        metrics: Metrics | None = None,
        limits: RateLimiter | None = None,
        ledger: UsageLedger | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.limits = limits or RateLimiter()
        self.ledger = ledger or UsageLedger(state.server.ledger)
        self.redactor = redactor or Redactor()
        self.journal_writer = JournalWriter(self.redactor, self.metrics)
        self.is_stopping = False
        """No new work: readiness says so. Turns in flight go on …"""
        self.is_cancelling = False
        """… until this: a turn that is cancelled now tells its client `problems.stopping()`."""
        self._turns: set[asyncio.Task[Any]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._conversation_lookup = ConversationLookup(self.journal_writer)
        self._lease = _StateLease(state)
        self._apply_state(state)

    @property
    def state(self) -> GatewayState:
        """The state for a request that begins now."""
        return self._lease.state

    @contextmanager
    def lease_state(self) -> Iterator[GatewayState]:
        """Keep the state of this moment alive for one request."""
        held = self._lease
        held.users += 1
        try:
            yield held.state
        finally:
            held.users -= 1
            if held.is_replaced and not held.users:
                self._run_in_background(held.state.engine.close())

    def replace_state(self, state: GatewayState) -> None:
        """Swap in a new state. Needs the running loop."""
        old, self._lease = self._lease, _StateLease(state)
        old.is_replaced = True
        self._apply_state(state)
        if not old.users:
            self._run_in_background(old.state.engine.close())

    @contextmanager
    def track_turn(self) -> Iterator[None]:
        """Around one turn, in its own task: it is counted, and cancelled when the time to shut down is over."""
        task = asyncio.current_task()
        if task is None:
            raise MisuseError("a turn runs in a task of its own")
        self._turns.add(task)
        self.metrics.active_turns.inc()
        try:
            yield
        finally:
            self.metrics.active_turns.dec()
            self._turns.discard(task)

    def finish_turn(self, record: TurnRecord) -> None:
        """Tell everybody who keeps count that a turn is over."""
        self.metrics.count_turn(record)
        if record.status == 200:
            self.ledger.add_turn(record)
        log.info("turn", extra={"fields": record.to_log_fields()})

    def cancel_turns(self) -> None:
        """The time to shut down is over: cancel every turn in flight."""
        self.is_cancelling = True
        for task in self._turns:
            task.cancel()

    async def close(self) -> None:
        """Close the engines, the journal and the ledger."""
        await self._lease.state.engine.close()
        await self.journal_writer.close()
        if self._closing:
            await asyncio.wait(self._closing)
        self.ledger.close()

    def _apply_state(self, state: GatewayState) -> None:
        self.redactor.add_secrets({*state.secrets, *(key.key for key in state.keys)})
        self.journal_writer.use_store(state.store_opener)
        state.engine.conversations = self._conversation_lookup

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
