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

from callwright.backends.base import Answer, ModelInfo
from callwright.backends.connections import Connections
from callwright.backends.conversation.contract import LOST, Conversation, Keeper, checked
from callwright.backends.http import Begun, HttpBackend
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Request
from callwright.wire import CLIENT_CODECS
from callwright.wire.base import WireReader
from callwright.wire.event_reader import EventReader

__all__ = ["ConversationBackend"]

_GONE = (404, 410)
_UNHEARD = ("auth", "rate_limit", "overloaded", "refused")
"""Failures of a service that said no to a message."""


class ConversationBackend(HttpBackend, Keeper):
    """A service at `settings.url`."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings, _Text())
        self._connections = Connections(settings.connections, settings.connect_seconds, keep=False)

    def answer(self, request: Request, extra: dict[str, Any]) -> Answer:
        """Ask in a conversation that nobody will go on with."""
        return self.converse(request, Conversation())

    def converse(self, request: Request, conversation: Conversation) -> Answer:
        """Say it, and read the answer."""
        return super().answer(request, {"conversation": conversation})

    async def send(self, request: Request, extra: dict[str, Any]) -> Begun:
        """Send it once, and learn which conversation the answer belongs to."""
        conversation: Conversation = extra["conversation"]
        known = conversation.id
        conversation.heard = True
        try:
            begun = await super().send(request, {"conversation": known})
        except BackendError as failure:
            conversation.heard = failure.kind not in _UNHEARD
            if known and (conversation.heard or failure.status in _GONE):
                raise BackendError(str(failure), kind=failure.kind, status=failure.status, code=LOST) from None
            raise
        conversation.id = begun[0].header("x-conversation-id") or known
        if not conversation.id:
            begun[0].close()
            raise BackendError(
                f"the backend {self.settings.name!r} began a conversation without a name: x-conversation-id is missing"
            )
        return begun

    async def models(self) -> tuple[ModelInfo, ...]:
        """Those of `{url}/models`, which a service need not have."""
        try:
            return await super().models()
        except BackendError as failure:
            if failure.status in _GONE:
                return ()
            raise


class _Text:
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
        return msgspec.json.encode({**named, **checked(request)._asdict(), "model": request.model})

    def create_reader(self) -> WireReader:
        """A reader of one answer."""
        return _Reader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """What an answer with that status means."""
        return CLIENT_CODECS["openai_chat"].parse_error(status, body)


class _Reader(EventReader):
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
