"""Tokens counted offline, for backends that do not report them.

The count is that of OpenAI's `o200k_base`; other vocabularies differ by some per cent. The tokenizer is loaded when it
is first needed. That, and counting long texts, is done in a thread, so that streams go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache

import msgspec
import splintr

from callwright.model import Image, Reasoning, Request, Text, ToolCall, ToolResult

__all__ = ["at_most", "count", "prompt_size", "prompt_tokens"]

_INLINE = 20_000
"""Characters counted on the spot: about a millisecond."""
_IMAGE = 765
"""Tokens of a picture of ordinary size, as OpenAI's price list counts a 1024 pixel square."""
_FRAME = 4
"""Tokens around each message: role and separators."""


@cache
def _tokenizer() -> splintr.AnyTokenizer:
    return splintr.Tokenizer.from_pretrained("o200k_base")


def _count(text: str) -> int:
    return len(_tokenizer().encode_ordinary(text))


async def count(text: str) -> int:
    """The tokens of a text."""
    if len(text) <= _INLINE and _tokenizer.cache_info().currsize:
        return _count(text)
    return await asyncio.to_thread(_count, text)


async def prompt_tokens(request: Request) -> int:
    """The tokens of a whole request: messages, tools and what stands around them."""
    return await count("\n".join(_texts(request))) + _around(request)


def prompt_size(request: Request) -> int:
    """The same, on the spot: for a thread."""
    return _count("\n".join(_texts(request))) + _around(request)


def at_most(request: Request) -> int:
    """More than the tokens of a request can be, at once: every token has a byte of its own."""
    return sum(len(text.encode("utf-8", "replace")) + 1 for text in _texts(request)) + _around(request)


def _around(request: Request) -> int:
    pictures = sum(isinstance(part, Image) for message in request.messages for part in message.parts)
    return _FRAME * (len(request.messages) + 1) + _IMAGE * pictures


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        for part in message.parts:
            match part:
                case Text() | Reasoning():
                    yield part.text
                case ToolCall():
                    yield f"{part.name} {part.arguments}"
                case ToolResult():
                    yield part.content
                case _:
                    pass
    for tool in request.tools:
        yield f"{tool.name} {tool.description} {msgspec.json.encode(tool.parameters).decode()}"
