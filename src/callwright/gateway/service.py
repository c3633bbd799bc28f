"""The gateway service: the current settings and engine, and what outlives a reload.

A `GatewayState` never changes. A reload builds a new one and swaps it in. Requests that began with the old state finish
with it, and its engine is closed after the last of them. Metrics, limits, the usage and the journal belong to the
service and survive reloads.
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
from callwright.gateway.limits import RateLimiter
from callwright.gateway.metrics import Metrics
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.gateway.turn_record import TurnRecord
from callwright.gateway.usage_recorder import UsageRecorder
from callwright.redaction import Redactor

__all__ = ["GatewayService", "GatewayState"]

log = logging.getLogger("callwright.turns")


@dataclass(frozen=True)
class GatewayState:
    """Everything that a reload replaces."""

    server: ServerSettings
    keys: tuple[KeySettings, ...]
    engine: Engine
    secrets: frozenset[str] = frozenset()
    """Secrets of the backends. They are redacted from the logs, as the clients' keys are."""
    store_opener: StoreOpener | None = None
    """Opens the store of the journal, the conversations and the usage. None = nothing is stored."""

    @cached_property
    def keyring(self) -> Keyring:
        return Keyring(self.keys, self.server.host)


class _StateLease:
    """A state and the number of requests that use it."""

    def __init__(self, state: GatewayState) -> None:
        self.state = state
        self.users = 0
        self.is_replaced = False


class GatewayService:
    """The service. One instance lives as long as the process."""

    def __init__(
        self,
        state: GatewayState,
        *,
        metrics: Metrics | None = None,
        limits: RateLimiter | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.limits = limits or RateLimiter()
        self.redactor = redactor or Redactor()
        self.journal_writer = JournalWriter(self.redactor, self.metrics)
        self.usage = UsageRecorder(self.journal_writer)
        self.is_stopping = False
        """The service accepts no new work and reports itself as not ready. Running turns continue …"""
        self.is_cancelling = False
        """… until this is set. A turn that is cancelled now ends with `error_mapping.build_shutdown_error()`."""
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
        """Keep the current state's engine open for the length of one request."""
        lease = self._lease
        lease.users += 1
        try:
            yield lease.state
        finally:
            lease.users -= 1
            if lease.is_replaced and not lease.users:
                self._run_in_background(lease.state.engine.close())

    def replace_state(self, state: GatewayState) -> None:
        """Swap in a new state. Requires the running loop."""
        old, self._lease = self._lease, _StateLease(state)
        old.is_replaced = True
        self._apply_state(state)
        if not old.users:
            self._run_in_background(old.state.engine.close())

    @contextmanager
    def track_turn(self) -> Iterator[None]:
        """Register the current task as a turn: count it, and cancel it when the time to shut down is over."""
        task = asyncio.current_task()
        if task is None:
            raise MisuseError("track_turn must run inside an asyncio task")
        self._turns.add(task)
        self.metrics.active_turns.inc()
        try:
            yield
        finally:
            self.metrics.active_turns.dec()
            self._turns.discard(task)

    def finish_turn(self, record: TurnRecord) -> None:
        """Report a finished turn to the metrics, the usage and the log."""
        self.metrics.count_turn(record)
        if record.status == 200:
            self.usage.add_turn(record)
        log.info("turn", extra={"fields": record.to_log_fields()})

    def cancel_turns(self) -> None:
        """Cancel every running turn, when the time to shut down is over."""
        self.is_cancelling = True
        for task in self._turns:
            task.cancel()

    async def close(self) -> None:
        """Close the engines, and write the rest of the usage and the journal."""
        await self._lease.state.engine.close()
        await self.usage.close()
        await self.journal_writer.close()
        if self._closing:
            await asyncio.wait(self._closing)

    def _apply_state(self, state: GatewayState) -> None:
        self.redactor.add_secrets({*state.secrets, *(key.key for key in state.keys)})
        self.journal_writer.use_store(state.store_opener)
        state.engine.conversations = self._conversation_lookup

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
