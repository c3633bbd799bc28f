"""Frames of the bridge between the gateway and a page, each a JSON object. docs/bridge.md describes them.

Every frame of a request has the request's `id`, and frames of the page the number `n` of the frame in its request, from
0. After a lost connection, both sides know what arrived.
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
    """Close codes: those of RFC 6455, and our own from 4400 on, after which a page must not reconnect."""

    NORMAL = 1000
    GOING_AWAY = 1001
    SILENT = 1011
    SERVICE_RESTART = 1012
    INVALID_FRAME = 4400
    WRONG_TOKEN = 4401
    REPLACED = 4409


_Number = Annotated[int, msgspec.Meta(ge=0)]


class HelloFrame(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """The first frame of a page on every connection."""

    token: str
    page: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    """The page's id, which is the same after a reconnect."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Maximum number of requests that the page serves at a time."""
    models: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Leave out the token."""
        return f"HelloFrame(page={self.page!r})"


class OpenedFrame(msgspec.Struct, frozen=True, tag_field="type", tag="opened"):
    """The id of the created conversation."""

    id: str
    n: _Number
    conversation: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class TextFrame(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """The next part of the answer."""

    id: str
    n: _Number
    text: str


class DoneFrame(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The answer is complete."""

    id: str
    n: _Number


class ErrorFrame(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """The answer failed."""

    id: str
    n: _Number
    message: str
    code: str = ""
    """`unknown_conversation` when the page does not have the conversation."""


class PongFrame(msgspec.Struct, frozen=True, tag_field="type", tag="pong"):
    """The reply to a ping."""


PageFrame = HelloFrame | OpenedFrame | TextFrame | DoneFrame | ErrorFrame | PongFrame


class WelcomeFrame(msgspec.Struct, frozen=True, tag_field="type", tag="welcome"):
    """The page is accepted and may receive requests."""

    requests: dict[str, int]
    """The requests that the page still has to answer, each with the number of frames received. All others are over."""


class CreateFrame(msgspec.Struct, frozen=True, tag_field="type", tag="create"):
    """Create a conversation with this message."""

    id: str
    prompt: str
    model: str
    system: str


class SendFrame(msgspec.Struct, frozen=True, tag_field="type", tag="send"):
    """Send this message to a conversation."""

    id: str
    conversation: str
    prompt: str
    model: str
    system: str


class StopFrame(msgspec.Struct, frozen=True, tag_field="type", tag="stop"):
    """Stop answering: the request was cancelled."""

    id: str


class PingFrame(msgspec.Struct, frozen=True, tag_field="type", tag="ping"):
    """Check that the page is still connected."""


GatewayFrame = WelcomeFrame | CreateFrame | SendFrame | StopFrame | PingFrame

_decoder: msgspec.json.Decoder[PageFrame] = msgspec.json.Decoder(PageFrame)


def encode_frame(frame: GatewayFrame) -> str:
    """Encode a frame as text."""
    return msgspec.json.encode(frame).decode()


def decode_frame(text: str) -> PageFrame:
    """Decode a frame of a page. Raises `WireError`, which quotes nothing, since the frame may contain the token."""
    try:
        return _decoder.decode(text)
    except JSON_DECODE_ERRORS:
        raise WireError("the bridge frame is invalid: unknown type or missing field") from None
