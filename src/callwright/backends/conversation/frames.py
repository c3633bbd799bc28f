"""Frames: what goes over the bridge between the gateway and a page, each a JSON object. docs/bridge.md explains them.

Every frame about a request carries the request's `id`, and those of the page the number `n` of the frame in its
request, from 0: after a connection broke both sides know what arrived.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import msgspec

from callwright.errors import WireError
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = [
    "BridgeCloseCode",
    "CreateFrame",
    "DoneFrame",
    "ErrorFrame",
    "GatewayFrame",
    "HelloFrame",
    "OpenedFrame",
    "PageFrame",
    "PingFrame",
    "PongFrame",
    "SendFrame",
    "StopFrame",
    "TextFrame",
    "WelcomeFrame",
    "decode_frame",
    "encode_frame",
]


class BridgeCloseCode(IntEnum):
    """Why a connection is closed: RFC 6455's codes, and ours from 4400 on, after which a page does not come back."""

    NORMAL = 1000
    GOING_AWAY = 1001
    SILENT = 1011
    SERVICE_RESTART = 1012
    INVALID_FRAME = 4400
    WRONG_TOKEN = 4401
    REPLACED = 4409


_Number = Annotated[int, msgspec.Meta(ge=0)]


class HelloFrame(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """A page introduces itself, first thing on every connection."""

    token: str
    page: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    """Its own name for itself, the same when it comes back."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Requests that it serves at once."""
    models: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Without the token."""
        return f"Hello(page={self.page!r})"


class OpenedFrame(msgspec.Struct, frozen=True, tag_field="type", tag="opened"):
    """The conversation that was created."""

    id: str
    n: _Number
    conversation: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class TextFrame(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """More of the answer."""

    id: str
    n: _Number
    text: str


class DoneFrame(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The answer is over."""

    id: str
    n: _Number


class ErrorFrame(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """There will be no answer, or no more of it."""

    id: str
    n: _Number
    message: str
    code: str = ""
    """`unknown_conversation` when the page does not have the one that was named."""


class PongFrame(msgspec.Struct, frozen=True, tag_field="type", tag="pong"):
    """The page lives."""


PageFrame = HelloFrame | OpenedFrame | TextFrame | DoneFrame | ErrorFrame | PongFrame


class WelcomeFrame(msgspec.Struct, frozen=True, tag_field="type", tag="welcome"):
    """The page is taken on, and may be asked."""

    requests: dict[str, int]
    """Those that it is still to answer, each with how many frames of it came. All others are over."""


class CreateFrame(msgspec.Struct, frozen=True, tag_field="type", tag="create"):
    """Begin a conversation with this message."""

    id: str
    prompt: str
    model: str
    system: str


class SendFrame(msgspec.Struct, frozen=True, tag_field="type", tag="send"):
    """Say this in a conversation."""

    id: str
    conversation: str
    prompt: str
    model: str
    system: str


class StopFrame(msgspec.Struct, frozen=True, tag_field="type", tag="stop"):
    """Nobody waits for this answer any more."""

    id: str


class PingFrame(msgspec.Struct, frozen=True, tag_field="type", tag="ping"):
    """Does the page live?"""


GatewayFrame = WelcomeFrame | CreateFrame | SendFrame | StopFrame | PingFrame

_decoder: msgspec.json.Decoder[PageFrame] = msgspec.json.Decoder(PageFrame)


def encode_frame(frame: GatewayFrame) -> str:
    """A frame as text."""
    return msgspec.json.encode(frame).decode()


def decode_frame(text: str) -> PageFrame:
    """A page's frame. `WireError` for anything else; it quotes nothing, since a frame may hold the token."""
    try:
        return _decoder.decode(text)
    except JSON_DECODE_ERRORS:
        raise WireError("the frame is none of the bridge's, or lacks a field") from None
