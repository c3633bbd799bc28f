"""How many tokens a prompt has, roughly, for clients that ask before they send.

Four bytes of UTF-8 a token: within 6 % of o200k_base on prose, code and many languages, 16 % high on JSON. High is
the safe side here: a client that thinks its prompt is long condenses early.
"""

from __future__ import annotations

import msgspec

from callwright.model import Request

__all__ = ["estimate"]

_BYTES_A_TOKEN = 4
_PICTURE_TOKENS = 1500
"""About what Anthropic counts for one of a million pixels."""


def estimate(request: Request) -> int:
    """The tokens of its messages and tools."""
    size, pictures = 0, 0
    for message in request.messages:
        for part in msgspec.to_builtins(message.parts):
            pictures += (part["type"] == "image") + len(part.get("images", ()))
            size += sum(len(str(part.get(name, "")).encode("utf-8", "replace")) for name in _TEXTS)
    size += sum(len(msgspec.json.encode(tool)) for tool in request.tools)
    return -(-size // _BYTES_A_TOKEN) + pictures * _PICTURE_TOKENS


_TEXTS = ("text", "name", "arguments", "content")
