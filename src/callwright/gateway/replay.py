"""Replay: a turn of the journal run again, over the answers that were recorded.

Everything but the model is today's: the wire reads the same bytes, the profile is chosen anew, the prompt is made, the
answer is read, guarded and judged. So the row that comes out shows what a change of the code or of the settings does to
a turn that happened. Nothing is sent anywhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
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
from callwright.wire import SERVER_CODECS
from callwright.wire.constraint import ConstraintFlavour

__all__ = ["ReplayBackend", "build_replay_backends", "replay_turn"]


class ReplayBackend:
    """A backend that says what was recorded. `answers` may be shared: they are given in the order of the record."""

    is_available = True

    def __init__(self, name: str, about: RecordedAttempt, answers: deque[RecordedAttempt]) -> None:
        self.settings = BackendSettings(name=name, kind=cast("BackendKind", about.kind or "openai"))
        self.wire = about.wire
        self.flavour = cast("ConstraintFlavour | None", about.flavour)
        self._recorded = about
        self._answers = answers

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """What was said, however the request looks today."""
        if not self._answers:
            raise BackendError("no further answer was recorded: today the model is asked more often", kind="refused")
        asked = self._answers.popleft()
        await asyncio.sleep(0)
        if asked.events:
            yield list(asked.events)
        if asked.failure:
            raise _build_error(asked.failure)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The model of the record; that it takes tools is concluded from how it got them."""
        native = {"native": True, "taught": False, "constrained": False}.get(self._recorded.strategy)
        return (ModelInfo(name=self._recorded.request.model, tools=native),) if self._recorded.request else ()

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Only turns are recorded."""
        raise BackendError(f"{path} was not recorded", kind="refused", status=501)

    async def close(self) -> None:
        """Nothing is held."""


def build_replay_backends(entry: JournalEntry, names: Iterable[str]) -> dict[str, ReplayBackend]:
    """The backends of a row, and others of these names that play them: the settings may have changed since."""
    answers = deque(entry.asked)
    first = entry.asked[0] if entry.asked else RecordedAttempt()
    recorded = {asked.backend: asked for asked in reversed(entry.asked)}
    return {
        name: ReplayBackend(name, recorded.get(name, first), answers) for name in dict.fromkeys([*recorded, *names])
    }


async def replay_turn(entry: JournalEntry, engine: Engine) -> JournalEntry:
    """The row that this turn makes today, on an engine whose backends are `replayed`; the engine is closed.

    `RequestError` when the row does not hold the whole turn.
    """
    if entry.cut or not entry.client_sent:
        raise RequestError('it was not kept whole: set journal = "full", and redact nothing that a request needs')
    caught = _MemoryStore()
    shelf = StoreOpener(StoreSettings(journal="full"), caught.open)
    service = GatewayService(GatewayState(ServerSettings(), (), engine, store_opener=shelf))
    memory = ResponseHistory()
    for name, messages in entry.recalled.items():
        memory.store_conversation("", name, messages)
    turns = TurnEndpoints(service, ErrorResponder(SERVER_CODECS, service.metrics), memory)
    try:
        await engine.refresh_models()
        await _post_request(RequestContextMiddleware(turns.build_endpoint(SERVER_CODECS[entry.wire]), service), entry)
    finally:
        await service.close()
    return caught.entries[0]


async def _post_request(app: RequestContextMiddleware, entry: JournalEntry) -> None:
    """Send the request, and take the answer without looking: what it was is in the new row."""
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
        await asyncio.Event().wait()  # the client stays until it has its answer
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        await asyncio.sleep(0)

    await app(scope, receive, send)


class _MemoryStore:
    """A store that only remembers."""

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []

    @property
    def journal(self) -> _MemoryStore:
        return self

    @property
    def conversations(self) -> ConversationRegistry:
        raise StoreError("a replay goes on with no conversation")

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
