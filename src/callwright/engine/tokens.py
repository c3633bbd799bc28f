"""Counts tokens offline, for backends that do not report them.

The vocabulary is OpenAI's `o200k_base`; others differ by some per cent. The tokenizer is loaded on first use. Loading
it and counting long texts run in a thread, so that streams continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache

import msgspec
import splintr

from callwright.model import Image, Reasoning, Request, Text, ToolCall, ToolResult

__all__ = ["count_prompt_tokens", "count_prompt_tokens_sync", "count_tokens", "estimate_max_tokens"]

_INLINE_CHARACTERS = 20_000
"""Characters that are counted without a thread: about a millisecond."""
_IMAGE_TOKENS = 765
"""Tokens of an image of ordinary size: a square of 1024 pixels in OpenAI's price list."""
_MESSAGE_TOKENS = 4
"""Tokens around each message, for role and separators."""


@cache
def _load_tokenizer() -> splintr.AnyTokenizer:
    return splintr.Tokenizer.from_pretrained("o200k_base")


def _count_text(text: str) -> int:
    return len(_load_tokenizer().encode_ordinary(text))


async def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    if len(text) <= _INLINE_CHARACTERS and _load_tokenizer.cache_info().currsize:
        return _count_text(text)
    return await asyncio.to_thread(_count_text, text)


async def count_prompt_tokens(request: Request) -> int:
    """Count the tokens of a whole request: messages, tools and the overhead of both."""
    return await count_tokens("\n".join(_iter_texts(request))) + _count_overhead(request)


def count_prompt_tokens_sync(request: Request) -> int:
    """Count the tokens of a whole request, blocking. Call it in a thread."""
    return _count_text("\n".join(_iter_texts(request))) + _count_overhead(request)


def estimate_max_tokens(request: Request) -> int:
    """Compute an upper bound of a request's tokens quickly: every token has at least one byte."""
    return sum(len(text.encode("utf-8", "replace")) + 1 for text in _iter_texts(request)) + _count_overhead(request)


def _count_overhead(request: Request) -> int:
    images = sum(isinstance(part, Image) for message in request.messages for part in message.parts)
    return _MESSAGE_TOKENS * (len(request.messages) + 1) + _IMAGE_TOKENS * images


def _iter_texts(request: Request) -> Iterator[str]:
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
