"""Identifies a conversation by a rolling hash over its messages. Pure.

The hash after each message depends on the scope and on all messages so far. Histories that differ anywhere, or belong
to different scopes, have different hashes from there on. Details that clients change are ignored: ids (a result is tied
to its call by the call's number instead), white space at the ends, the spelling of arguments, the division of text into
parts, and reasoning, which most clients do not send back.
Cost: linear in the history.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult
from callwright.text.repair import parse_json

__all__ = ["ConversationScope", "MatchedConversation", "hash_prefixes"]


class MatchedConversation(NamedTuple):
    """A conversation to continue."""

    backend_id: str
    known_messages: int
    """Number of messages that it contains; there is at least one more to send."""


class ConversationScope(NamedTuple):
    """The caller, the model and the backend of a conversation. Conversations of different scopes never match."""

    caller: str
    """The name of the key, or another identification of the caller."""
    model: str
    backend: str

    @property
    def digest(self) -> str:
        """The hash before the first message."""
        return _hash_value(b"", list(self)).hex()


def hash_prefixes(messages: Iterable[Message], scope: ConversationScope) -> list[str]:
    """Compute the hash of each prefix of a history. The last one is that of the whole history."""
    call_numbers: dict[str, int] = {}
    count = itertools.count()
    current = bytes.fromhex(scope.digest)
    hashes = []
    for message in messages:
        current = _hash_value(current, _canonicalize_message(message, call_numbers, count))
        hashes.append(current.hex())
    return hashes


def _hash_value(before: bytes, value: list[Any]) -> bytes:
    # ASCII, so that half a surrogate pair can be encoded.
    return hashlib.sha256(before + json.dumps(value).encode()).digest()


def _canonicalize_message(message: Message, call_numbers: dict[str, int], count: Iterator[int]) -> list[Any]:
    """Reduce a message to what identifies it. `count` numbers the calls of the conversation; `call_numbers` maps each
    id to its latest call.

    Text comes first, wherever it stood: the chat wire has one field for it, beside the calls.
    """
    text, parts = "", list[Any]()
    for part in message.parts:
        match part:
            case Text():
                text += part.text
            case Reasoning():
                pass
            case Image():
                parts.append(["image", part.url])
            case ToolCall():
                call_numbers[part.id] = next(count)
                parts.append(["call", part.name, _canonicalize_arguments(part.arguments)])
            case ToolResult():
                images = [image.url for image in part.images]
                parts.append(["result", call_numbers.get(part.call_id), part.content.strip(), part.is_error, images])
    return [message.role, text.strip(), parts]


def _canonicalize_arguments(text: str) -> list[str]:
    """Write JSON arguments in one canonical form; keep the text when it is not JSON or nested too deeply."""
    try:
        return ["json", json.dumps(parse_json(text or "{}"), sort_keys=True)]
    except (ValueError, RecursionError):
        return ["text", text.strip()]
