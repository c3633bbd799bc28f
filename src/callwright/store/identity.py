"""What makes a conversation the same one: a rolling hash over its messages. Pure.

The hash after each message depends on the scope and on all that was said up to there, so a history that differs
anywhere, or belongs to somebody else, has another hash from there on. What clients change on the way does not count:
ids (a result is tied to its call by the call's place instead), white space at the ends, how arguments are spelt, how
text is cut into parts, and reasoning, which most do not send back.
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
    """A conversation to go on with."""

    backend_id: str
    known_messages: int
    """How many messages it has seen; there is at least one more to send."""


class ConversationScope(NamedTuple):
    """Who speaks with what: conversations of different scopes have nothing to do with each other."""

    caller: str
    """The name of the key, or whatever tells callers apart."""
    model: str
    backend: str

    @property
    def digest(self) -> str:
        """The hash before the first message."""
        return _hash_value(b"", list(self)).hex()


def hash_prefixes(messages: Iterable[Message], scope: ConversationScope) -> list[str]:
    """The hash of each prefix of a history; the last is that of all of it."""
    places: dict[str, int] = {}
    count = itertools.count()
    current = bytes.fromhex(scope.digest)
    found = []
    for message in messages:
        current = _hash_value(current, _canonicalize_message(message, places, count))
        found.append(current.hex())
    return found


def _hash_value(before: bytes, value: list[Any]) -> bytes:
    # ASCII, so that half a surrogate pair is no obstacle.
    return hashlib.sha256(before + json.dumps(value).encode()).digest()


def _canonicalize_message(message: Message, places: dict[str, int], count: Iterator[int]) -> list[Any]:
    """What counts of a message. `count` numbers the calls of the conversation; `places` has the last of each id.

    Text comes first, whatever stood between: the chat wire has one field for it, beside the calls.
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
                places[part.id] = next(count)
                parts.append(["call", part.name, _canonicalize_arguments(part.arguments)])
            case ToolResult():
                images = [image.url for image in part.images]
                parts.append(["result", places.get(part.call_id), part.content.strip(), part.is_error, images])
    return [message.role, text.strip(), parts]


def _canonicalize_arguments(text: str) -> list[str]:
    """Their value where they are JSON, written in one way; the text where they are not, or are nested too deeply."""
    try:
        return ["json", json.dumps(parse_json(text or "{}"), sort_keys=True)]
    except (ValueError, RecursionError):
        return ["text", text.strip()]
