"""A conversation service over HTTP, with answers streamed as plain text.

    POST {url}/conversations   {"prompt": "…", "model": "…", "system": "…"}          create a conversation
    POST {url}/conversations   {"conversation": "7", "prompt": "…", …}               continue one
    200, x-conversation-id: 7                                                        the answer as UTF-8 text

404 and 410 mean that the conversation to continue does not exist. A message that the service may have received is never
sent twice to the same conversation.
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
"""Kinds of failure that mean that the service rejected the message."""


class ConversationBackend(HttpBackend, StatefulBackend):
    """A conversation service at `settings.url`."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings, _ConversationCodec())
        self._connections = ConnectionPool(settings.connections, settings.connect_seconds, reuse=False)

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the answer of a new conversation that is not continued later."""
        return self.stream_conversation(request, ServiceConversation())

    def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Send the messages and stream the answer."""
        return super().stream_response(request, {"conversation": conversation})

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send the request once, and read the id of the conversation."""
        conversation: ServiceConversation = extra["conversation"]
        known_id = conversation.id
        conversation.has_received = True
        try:
            response = await super().send_request(request, {"conversation": known_id})
        except BackendError as failure:
            conversation.has_received = failure.kind not in _REJECTION_KINDS
            if known_id and (conversation.has_received or failure.status in _NOT_FOUND_STATUSES):
                raise BackendError(
                    str(failure), kind=failure.kind, status=failure.status, code=CONVERSATION_LOST
                ) from None
            raise
        conversation.id = response[0].get_header("x-conversation-id") or known_id
        if not conversation.id:
            response[0].close()
            raise BackendError(
                f"the backend {self.settings.name!r} sent no id for its new conversation: x-conversation-id is missing"
            )
        return response

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models at `{url}/models`, which is optional."""
        try:
            return await super().list_models()
        except BackendError as failure:
            if failure.status in _NOT_FOUND_STATUSES:
                return ()
            raise


class _ConversationCodec:
    """Encodes requests as JSON and reads answers as text. Errors have the format of OpenAI's chat wire, or are text."""

    name = "conversation"

    def get_path(self, request: Request) -> str:
        """Return the path of both operations."""
        return "/conversations"

    def build_headers(self, key: str) -> dict[str, str]:
        """Build the headers with the key, as OpenAI expects it."""
        return CLIENT_CODECS["openai_chat"].build_headers(key)

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the prompt, with the conversation to continue."""
        conversation = {"conversation": extra["conversation"]} if extra["conversation"] else {}
        return msgspec.json.encode({**conversation, **flatten_request(request)._asdict(), "model": request.model})

    def create_reader(self) -> WireReader:
        """Create a reader for one answer."""
        return _PlainTextReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Parse an error response."""
        return CLIENT_CODECS["openai_chat"].parse_error(status, body)


class _PlainTextReader(EventReader):
    """Reads text to its end. A read may split a character."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        if text := self._decoder.decode(data):
            out.append(TextDelta(text))

    def _process_end(self, out: list[Event]) -> None:
        if text := self._decoder.decode(b"", final=True):
            out.append(TextDelta(text))
        out.append(Finish("stop"))
