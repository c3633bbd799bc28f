"""Runs a recorded turn again, with the model's recorded answers.

Everything except the model is current: the wire decodes the same bytes, the profile is chosen, the prompt is built, the
answer is read, guarded and checked. The new entry shows what a change of the code or the settings does to a real turn.
Nothing is sent over the network.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, cast

from starlette.types import Message, Scope

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.engine import Engine
from callwright.engine.conversation_routing import ConversationRegistry
from callwright.errors import BackendError, RequestError, StoreError
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.journal_writer import StoreOpener
from callwright.gateway.request_context import RequestContextMiddleware
from callwright.gateway.response_history import ResponseHistory
from callwright.gateway.service import GatewayService, GatewayState
from callwright.gateway.settings import ServerSettings
from callwright.gateway.turn_endpoints import TurnEndpoints
from callwright.model import Request
from callwright.redaction import Redactor
from callwright.store.journal_records import JournalEntry, RecordedAttempt, RecordedFailure
from callwright.store.settings import StoreSettings
from callwright.store.usage_records import UsageRow
from callwright.wire import SERVER_CODECS
from callwright.wire.constraint import ConstraintFlavour

__all__ = ["ReplayBackend", "build_replay_backends", "replay_turn"]


class ReplayBackend:
    """Yields recorded answers. Several backends may share `answers`, which are used in the order of the record."""

    is_available = True

    def __init__(self, name: str, recorded: RecordedAttempt, answers: deque[RecordedAttempt]) -> None:
        self.settings = BackendSettings(name=name, kind=cast("BackendKind", recorded.kind or "openai"))
        self.wire = recorded.wire
        self.flavour = cast("ConstraintFlavour | None", recorded.flavour)
        self._recorded = recorded
        self._answers = answers

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Yield the next recorded answer, whatever the request contains."""
        if not self._answers:
            raise BackendError(
                "the record has no further answer: the current code sends the model more requests", kind="refused"
            )
        attempt = self._answers.popleft()
        await asyncio.sleep(0)
        if attempt.events:
            yield list(attempt.events)
        if attempt.failure:
            raise _build_error(attempt.failure)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the recorded model. Its tool support is inferred from the recorded strategy."""
        native = {"native": True, "taught": False, "constrained": False}.get(self._recorded.strategy)
        return (ModelInfo(name=self._recorded.request.model, tools=native),) if self._recorded.request else ()

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Raise `BackendError`: only turns are recorded."""
        raise BackendError(f"{path} was not recorded", kind="refused", status=501)

    async def close(self) -> None:
        """Do nothing: no resource is open."""


def build_replay_backends(entry: JournalEntry, names: Iterable[str]) -> dict[str, ReplayBackend]:
    """Build the backends of an entry. `names` adds others that share its answers, as the settings may have changed."""
    answers = deque(entry.asked)
    first = entry.asked[0] if entry.asked else RecordedAttempt()
    recorded = {attempt.backend: attempt for attempt in reversed(entry.asked)}
    return {
        name: ReplayBackend(name, recorded.get(name, first), answers) for name in dict.fromkeys([*recorded, *names])
    }


async def replay_turn(entry: JournalEntry, engine: Engine) -> JournalEntry:
    """Replay a turn and return its new entry. The engine must use `build_replay_backends`, and is closed.

    Raises `RequestError` when the entry does not contain the whole turn.
    """
    if entry.cut or not entry.client_sent:
        raise RequestError(
            'the journal entry is incomplete and cannot be replayed. Record with journal = "full", and do not redact '
            "parts that a request needs"
        )
    store = _MemoryStore()
    opener = StoreOpener(StoreSettings(journal="full"), store.open)
    service = GatewayService(GatewayState(ServerSettings(), (), engine, store_opener=opener))
    history = ResponseHistory()
    for name, messages in entry.recalled.items():
        history.store_conversation("", name, messages)
    turns = TurnEndpoints(service, ErrorResponder(SERVER_CODECS, service.metrics), history)
    try:
        await engine.refresh_models()
        await _post_request(RequestContextMiddleware(turns.build_endpoint(SERVER_CODECS[entry.wire]), service), entry)
    finally:
        await service.close()
    return store.entries[0]


async def _post_request(app: RequestContextMiddleware, entry: JournalEntry) -> None:
    """Post the request and discard the response: the new entry records it."""
    headers = {"x-request-id": entry.request_id, **entry.headers}
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "headers": [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()],
    }
    body = iter((entry.client_sent.encode(),))

    async def receive() -> Message:
        for data in body:
            return {"type": "http.request", "body": data}
        await asyncio.Event().wait()  # the client stays connected until it has its answer
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        await asyncio.sleep(0)

    await app(scope, receive, send)


class _MemoryStore:
    """A store that keeps entries in memory."""

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []

    @property
    def journal(self) -> _MemoryStore:
        return self

    @property
    def conversations(self) -> ConversationRegistry:
        raise StoreError("a replay does not continue conversations")

    @property
    def usage(self) -> _MemoryStore:
        return self

    async def add_usage(self, rows: Sequence[UsageRow]) -> None:
        """Ignore them: a replay is no new use."""

    async def query_usage(self, by: Sequence[str], since: date | None = None) -> list[dict[str, Any]]:
        return []

    async def open(self, _redactor: Redactor) -> _MemoryStore:
        return self

    async def append(self, entry: JournalEntry) -> int:
        self.entries.append(entry)
        return len(self.entries)

    async def close(self) -> None:
        pass


def _build_error(failure: RecordedFailure) -> BackendError:
    return BackendError(
        failure.message,
        kind=failure.kind,
        retryable=failure.retryable,
        status=failure.status,
        retry_after=failure.retry_after,
        salvage=failure.salvage,
        code=failure.code,
    )
