"""What all wires share: the values that cross them, and the two codecs that each wire implements.

Server side: `ServerCodec.decode_request` turns a body into a `ClientRequest`; a `StreamEncoder` turns events into that
client's stream. An encoder guarantees that `begin_stream`, any `encode_events`, and `end_stream` or `fail_stream` make
a stream whose end the client can recognize, whatever happens in between.

Client side: `ClientCodec.encode_request` writes a request for a server; a `WireReader` turns the server's bytes into
events. The events of a reader are as the server sent them: calls may interleave and arguments are unchecked. The guard
repairs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from callwright.errors import BackendError
from callwright.events import Event
from callwright.model import Request
from callwright.turn import Collected

__all__ = [
    "ClientCodec",
    "ClientRequest",
    "ErrorResponse",
    "ErrorSource",
    "ResponseHead",
    "ServerCodec",
    "StreamEncoder",
    "StreamStyle",
    "ToolOrigin",
    "WireReader",
]

ErrorSource = Literal["client", "gateway", "backend"]
_SOURCE_PREFIXES: dict[ErrorSource, str] = {
    "client": "The request cannot be served: ",
    "gateway": "The gateway failed: ",
    "backend": "The backend failed: ",
}


class ToolOrigin(msgspec.Struct, frozen=True):
    """What a tool was in the client's request, if it was not a plain function."""

    name: str
    kind: Literal["function", "custom"] = "function"
    """`custom` tools take free text; the model sees a function with one string parameter, `input`."""
    namespace: str = ""


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request as it was read from a wire.

    `request.options` uses OpenAI's chat names for what all wires share (`temperature`, `top_p`, `max_tokens`, `stop`,
    `seed`, `presence_penalty`, `frequency_penalty`, `response_format`, `reasoning_effort`, …); `extra` has the fields
    of the body that only this wire has, for a backend with the same API.
    """

    request: Request
    stream: bool = False
    choices: int = 1
    include_usage: bool = False
    functions: bool = False
    """Whether the client used the legacy `functions` and expects `function_call` back."""
    origins: dict[str, ToolOrigin] = msgspec.field(default_factory=dict)
    """By the name that the model sees; only tools that are not plain functions."""
    previous: str = ""
    """The id of the answer that this request continues (Responses)."""
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class ResponseHead(msgspec.Struct, frozen=True):
    """The fields that every chunk of one answer repeats. `id` is bare; each wire adds its own prefix."""

    id: str
    created: int
    model: str


class StreamStyle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one client expects its stream; every client accepts the defaults."""

    arguments: Literal["generated", "whole"] | int = "generated"
    """How arguments are split (W-12): as generated, complete at the end of a call, or in chunks of this many
    characters."""
    begin_tool_calls: bool = False
    """Send a `beginToolCalls` delta before the first call (W-13)."""
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    """Chat fields for reasoning; each repeats the same text. Empty = do not send it."""
    heartbeat: Literal["comment", "event", "none"] = "comment"
    """What keeps an idle stream alive (W-20)."""
    null_content: bool = True
    """Send `content: null` instead of an empty string on complete answers that have only calls (C-1)."""


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An error as a client sees it. `fault` says who failed; the message says what to do about it."""

    status: int
    message: str
    fault: ErrorSource
    kind: str = "invalid_request_error"
    """OpenAI's `error.type`; other wires map it."""
    code: str = ""
    param: str = ""
    retry_after: float | None = None

    @property
    def text(self) -> str:
        """The message for the client's user. Clients show it as it is, so it says who failed."""
        return _SOURCE_PREFIXES[self.fault] + self.message


class StreamEncoder(Protocol):
    """Encodes one client's stream. Each method returns the bytes to send now, possibly none."""

    @property
    def has_pending(self) -> bool:
        """Whether text waits to be joined with what follows: call `flush` if nothing follows for a moment."""
        ...

    def begin_stream(self) -> bytes:
        """Return the first bytes of the stream. Call it once, before all other methods."""
        ...

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """Encode the next events of a choice."""
        ...

    def flush(self) -> bytes:
        """Return the text that was held back."""
        ...

    def encode_heartbeat(self) -> bytes:
        """Return bytes that keep an idle connection alive."""
        ...

    def fail_stream(self, error: ErrorResponse) -> bytes:
        """End the stream of a turn that failed after its first byte, with an error in this client's form."""
        ...

    def end_stream(self, comment: str = "") -> bytes:
        """Return the last bytes of the stream. A choice without a finish makes this a failure. Send nothing after
        it."""
        ...


class ServerCodec(Protocol):
    """The server half of a wire."""

    name: str
    content_type: str
    """The content type of the stream."""

    def decode_request(self, body: bytes) -> ClientRequest:
        """Decode a request; `RequestError` names the field that is wrong."""
        ...

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        """Create the encoder for one stream."""
        ...

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        """Encode the complete answer: the same turns as in a stream, collected, one for each choice."""
        ...

    def encode_error(self, error: ErrorResponse) -> bytes:
        """Encode the body of an error that occurred before the first byte."""
        ...


class WireReader(Protocol):
    """Reads one server's stream, from bytes that may be split anywhere.

    Events before a failure are not lost: an error after events in the same bytes is raised by the next call, once. The
    caller uses `raise_pending_error` after it has processed the events, since a server may send nothing after its
    error. After an error the reader must not be used. `event_reader.EventReader` implements this for a wire.
    """

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of these bytes. Raise `BackendError` if the server reports one, `WireError` if it sends
        garbage."""
        ...

    def close(self) -> list[Event]:
        """End the stream. Raise `BackendError` if the turn was not over."""
        ...

    def raise_pending_error(self) -> None:
        """Raise the error that followed the events of the last call, if there is one."""
        ...


class ClientCodec(Protocol):
    """The client half of a wire."""

    name: str

    def get_path(self, request: Request) -> str:
        """Return the path to post to, after the backend's base URL."""
        ...

    def build_headers(self, key: str) -> dict[str, str]:
        """Return the headers besides the content type; `key` may be empty."""
        ...

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode a streaming request. `extra` are fields of this wire that the client sent."""
        ...

    def create_reader(self) -> WireReader:
        """Create the reader for one answer."""
        ...

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Return the error for an answer with that status, with the model's output in `salvage` if the body quotes
        it."""
        ...
