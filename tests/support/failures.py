"""Answers that fail after they began, on every API that a model's server may speak: what it says first, then how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callwright.backends.completions import CompletionsClientCodec
from callwright.events import Event, Finish, TextDelta
from callwright.model import Message, Request, Text
from callwright.wire import CLIENT_CODECS, SERVER_CODECS
from callwright.wire.base import ClientCodec, ClientRequest, ResponseHead, StreamStyle

READ: dict[str, ClientCodec] = {
    **CLIENT_CODECS,
    "completions": CompletionsClientCodec("chatml", CLIENT_CODECS["openai_chat"]),
}
"""Whatever has a reader."""

_ASK = ClientRequest(request=Request("m", (Message("user", (Text("hi"),)),)), stream=True)
_OOPS = {"message": "out of memory"}


def sse(data: object, name: str = "") -> bytes:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


_GARBAGE = {
    "garbage": b"data: {no json\n\n",
    "text that is not UTF-8": b'data: {"type": "\xff", "choices": [{"delta": {"content": "\xff"}}]}\n\n',
}
_CHAT: dict[str, bytes] = {
    "error": sse({"error": _OOPS}),
    "error by the event's name": sse(_OOPS, "error"),
    "error as a field (llama.cpp, 2025)": b"error: " + json.dumps(_OOPS).encode() + b"\n\n",
    **_GARBAGE,
}
_FAILED: dict[str, Any] = {"type": "response.failed", "response": {"status": "failed", "error": _OOPS}}
FAILURES: dict[str, dict[str, bytes]] = {
    "openai_chat": _CHAT,
    "openai_responses": {
        "error": sse({"type": "error", **_OOPS}, "error"),
        "failed": sse(_FAILED, "response.failed"),
        **_GARBAGE,
    },
    "anthropic": {"error": sse({"type": "error", "error": {"type": "api_error", **_OOPS}}, "error"), **_GARBAGE},
    "ollama": {
        "error": b'{"error": "out of memory"}\n',
        "garbage": b"{no json\n",
        "text that is not UTF-8": b'{"message": {"content": "\xff"}}\n',
    },
    "completions": {
        **_GARBAGE,
        "error": sse({"error": _OOPS}),
        "text that is not UTF-8": b'data: {"choices": [{"text": "\xff"}]}\n\n',
    },
}
"""By the name of what reads it: the bytes of each failure."""


def begun(name: str, events: Sequence[Event]) -> bytes:
    """An answer as far as these events, by our own hand: whole frames, ended only by a `Finish`."""
    if name == "completions":
        return b"".join(_completion(event) for event in events)
    encoder = SERVER_CODECS[name].create_encoder(_ASK, ResponseHead("abc", 1_700_000_000, "m"), StreamStyle())
    finished = bool(events) and isinstance(events[-1], Finish)
    return (
        encoder.begin_stream() + encoder.encode_events(events) + (encoder.end_stream() if finished else encoder.flush())
    )


def _completion(event: Event) -> bytes:
    match event:
        case TextDelta():
            return sse({"choices": [{"text": event.text}]})
        case Finish():
            return b"data: [DONE]\n\n"
        case _:
            return b""
