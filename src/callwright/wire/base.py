"""What all wires share: the values that cross them, and the two halves that each wire implements.

Serving: `Served.decode` turns a body into an `Ask`; an `Encoder` turns events into that client's stream. An encoder
keeps one promise above all: whatever happens between, `begin`, any `encode`s, then `end` or `fail` make a stream
that the client can tell is over.

Calling: `Called.body` writes a request for a server; a `Reader` turns the server's bytes into events. The events of a
reader are as the server sent them: calls may interleave and arguments are unchecked. The guard mends that.
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


class ToolOrigin(msgspec.Struct, frozen=True):
    """What a tool was in the client's request, where that is not a plain function."""

    name: str
    kind: Literal["function", "custom"] = "function"
    """`custom` tools take free text; the model sees a function with one string parameter, `input`."""
    namespace: str = ""


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request as it was read from a wire.

    `request.options` has OpenAI's chat names for what all wires share (`temperature`, `top_p`, `max_tokens`, `stop`,
    `seed`, `presence_penalty`, `frequency_penalty`, `response_format`, `reasoning_effort`, …); `extra` has the
    body's fields that only this wire knows, for a backend that speaks it too.
    """

    request: Request
    stream: bool = False
    choices: int = 1
    include_usage: bool = False
    functions: bool = False
    """The client used the legacy `functions` and wants `function_call` back."""
    origins: dict[str, ToolOrigin] = msgspec.field(default_factory=dict)
    """By the name that the model sees; only tools that are not plain functions."""
    previous: str = ""
    """The id of the answer that this request continues (Responses)."""
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class ResponseHead(msgspec.Struct, frozen=True):
    """What every chunk of one answer says of itself. `id` is bare; each wire puts its own prefix before it."""

    id: str
    created: int
    model: str


class StreamStyle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one client wants its stream written; the defaults are what every client takes."""

    arguments: Literal["generated", "whole"] | int = "generated"
    """How arguments are cut (W-12): as generated, whole at the end of a call, or in pieces of that many characters."""
    begin_tool_calls: bool = False
    """Send a `beginToolCalls` delta before the first call (W-13)."""
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    """Chat fields that carry reasoning; the first names are repeated with the same text. Empty: do not send it."""
    heartbeat: Literal["comment", "event", "none"] = "comment"
    """What keeps an idle stream alive (W-20)."""
    null_content: bool = True
    """`content: null`, not an empty string, on whole answers that hold only calls (C-1)."""


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An error as a client gets to see it. `fault` says who failed; the message says what to do about it."""

    status: int
    message: str
    fault: ErrorSource
    kind: str = "invalid_request_error"
    """OpenAI's `error.type`; other wires map it."""
    code: str = ""
    param: str = ""
    retry_after: float | None = None


class StreamEncoder(Protocol):
    """One client's stream. Each method returns the bytes to send now, perhaps none."""

    @property
    def has_pending(self) -> bool:
        """Whether text waits to be joined with what follows: call `flush` when nothing follows for a moment."""
        ...

    def begin_stream(self) -> bytes:
        """The stream's first bytes. Called once, first."""
        ...

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """A choice's next events."""
        ...

    def flush(self) -> bytes:
        """The text that was held back."""
        ...

    def encode_heartbeat(self) -> bytes:
        """Something that shows an idle client that we live."""
        ...

    def fail_stream(self, error: ErrorResponse) -> bytes:
        """The turn failed after its first byte: say so in this client's form, and end the stream."""
        ...

    def end_stream(self, comment: str = "") -> bytes:
        """The stream's last bytes. A choice that never finished makes this a failure. Nothing is sent after it."""
        ...


class ServerCodec(Protocol):
    """A wire's serving half."""

    name: str
    content_type: str
    """Of the stream."""

    def decode_request(self, body: bytes) -> ClientRequest:
        """Read a request; `RequestError` names the field that is wrong."""
        ...

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        """A writer of one stream."""
        ...

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        """The answer in one piece: the same turns as the stream's, collected, one for each choice."""
        ...

    def encode_error(self, error: ErrorResponse) -> bytes:
        """The body of an error that came before the first byte."""
        ...


class WireReader(Protocol):
    """One server's stream, from bytes that may be cut anywhere.

    Nothing is lost to a failure: an error that comes after events in the same bytes is raised by the next call, once.
    Whoever reads calls `check` when the events are dealt with, since a server may say nothing more after its error.
    After an error the reader is of no more use. `reading.EventReader` keeps all of this for a wire.
    """

    def feed(self, data: bytes) -> list[Event]:
        """Events of these bytes. `BackendError` when the server reports one; `WireError` when it sends garbage."""
        ...

    def close(self) -> list[Event]:
        """The server closed the stream. `BackendError` if that was before its turn's end."""
        ...

    def raise_pending_error(self) -> None:
        """Raise the error that came after the events of the last call, if one did."""
        ...


class ClientCodec(Protocol):
    """A wire's calling half."""

    name: str

    def get_path(self, request: Request) -> str:
        """Where to post, after the backend's address."""
        ...

    def build_headers(self, key: str) -> dict[str, str]:
        """What the server wants to see besides the content type; `key` may be empty."""
        ...

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """The request, streaming. `extra` are fields of this wire that the client sent."""
        ...

    def create_reader(self) -> WireReader:
        """A reader of one answer."""
        ...

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """What an answer with that status means; with the model's output in `salvage` where the body quotes it."""
        ...
