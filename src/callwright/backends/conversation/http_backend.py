"""A conversation service over HTTP, with answers streamed as plain text.

    POST {url}/conversations   {"prompt": "…", "model": "…", "system": "…"}          a new conversation
    POST {url}/conversations   {"conversation": "7", "prompt": "…", …}               one that goes on
    200, x-conversation-id: 7                                                        and the answer, UTF-8, to its end

404 and 410 to one that goes on mean that the service does not have it. A message that may have been heard is never sent
twice to the same conversation.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import Any

import msgspec

from callwright.backends.base import EventStream, ModelInfo
from callwright.backends.connection_pool import ConnectionPool
from callwright.backends.conversation.contract import (
    CONVERSATION_LOST,
    ServiceConversation,
    StatefulBackend,
    flatten_request,
)
from callwright.backends.http import HttpBackend, StartedResponse
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Request
from callwright.wire import CLIENT_CODECS
from callwright.wire.base import WireReader
from callwright.wire.event_reader import EventReader

__all__ = ["ConversationBackend"]

_NOT_FOUND_STATUSES = (404, 410)
_REJECTION_KINDS = ("auth", "rate_limit", "overloaded", "refused")
"""Failures of a service that said no to a message."""


class ConversationBackend(HttpBackend, StatefulBackend):
    """A service at `settings.url`."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings, _ConversationCodec())
        self._connections = ConnectionPool(settings.connections, settings.connect_seconds, reuse=False)

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Ask in a conversation that nobody will go on with."""
        return self.stream_conversation(request, ServiceConversation())

    def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Say it, and read the answer."""
        return super().stream_response(request, {"conversation": conversation})

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send it once, and learn which conversation the answer belongs to."""
        conversation: ServiceConversation = extra["conversation"]
        known = conversation.id
        conversation.has_received = True
        try:
            begun = await super().send_request(request, {"conversation": known})
        except BackendError as failure:
            conversation.has_received = failure.kind not in _REJECTION_KINDS
            if known and (conversation.has_received or failure.status in _NOT_FOUND_STATUSES):
                raise BackendError(
                    str(failure), kind=failure.kind, status=failure.status, code=CONVERSATION_LOST
                ) from None
            raise
        conversation.id = begun[0].get_header("x-conversation-id") or known
        if not conversation.id:
            begun[0].close()
            raise BackendError(
                f"the backend {self.settings.name!r} began a conversation without a name: x-conversation-id is missing"
            )
        return begun

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Those of `{url}/models`, which a service need not have."""
        try:
            return await super().list_models()
        except BackendError as failure:
            if failure.status in _NOT_FOUND_STATUSES:
                return ()
            raise


class _ConversationCodec:
    """The wire: JSON out, text in. Errors look as on OpenAI's chat wire, or are plain words."""

    name = "conversation"

    def get_path(self, request: Request) -> str:
        """One for both operations."""
        return "/conversations"

    def build_headers(self, key: str) -> dict[str, str]:
        """The key as OpenAI wants it."""
        return CLIENT_CODECS["openai_chat"].build_headers(key)

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """What is said, and where."""
        named = {"conversation": extra["conversation"]} if extra["conversation"] else {}
        return msgspec.json.encode({**named, **flatten_request(request)._asdict(), "model": request.model})

    def create_reader(self) -> WireReader:
        """A reader of one answer."""
        return _PlainTextReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """What an answer with that status means."""
        return CLIENT_CODECS["openai_chat"].parse_error(status, body)


class _PlainTextReader(EventReader):
    """Text to its end; characters may be cut by reads."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        if text := self._decoder.decode(data):
            out.append(TextDelta(text))

    def _process_end(self, out: list[Event]) -> None:
        if text := self._decoder.decode(b"", final=True):
            out.append(TextDelta(text))
        out.append(Finish("stop"))
