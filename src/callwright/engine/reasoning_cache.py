"""Stores the reasoning before a model's calls, for clients that do not send it back.

Some servers refuse a history in which a call lacks its reasoning: Anthropic and Google require their signatures,
DeepSeek and Kimi the text, and OpenAI's models continue from their encrypted reasoning. Few clients send any of it. The
cache stores it by call, the newest within limits, and restores it where a call comes back without it. Reasoning that
the client sends is left alone, unless its signature is missing.

A call is identified by its id, the user's message that it answers, the model and the caller: ids such as Kimi's
`functions.read:0` recur in every conversation, and no caller may see the reasoning of another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from callwright.engine.routing import ModelRoute
from callwright.model import Message, Part, Reasoning, Repair, Request, ToolCall
from callwright.prompt.message_text import get_message_text

__all__ = ["CallReasoning", "ReasoningCache"]

CallReasoning = tuple[Reasoning, ...]
"""The reasoning before one call."""
_CacheKey = tuple[str, str, int, str]


class ReasoningCache:
    """The reasoning before calls, for all callers."""

    def __init__(self, *, max_entries: int = 16_384, max_characters: int = 64_000_000) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._size = 0
        self._entries: OrderedDict[_CacheKey, CallReasoning] = OrderedDict()

    def store_reasoning(
        self, caller: str, route: ModelRoute, request: Request, reasoning: Mapping[str, CallReasoning]
    ) -> None:
        """Store the reasoning before the calls of an answer, by call id, if the model or its settings need it."""
        if not any(reasoning.values()) or not _should_store(route, reasoning):
            return
        *_, question = _iter_question_hashes(request.messages)
        for call_id, parts in reasoning.items():
            if parts:
                self._put_entry((caller, route.upstream, question, call_id), parts)

    def restore_reasoning(self, caller: str, route: ModelRoute, request: Request) -> tuple[Request, tuple[Repair, ...]]:
        """Restore the reasoning that the client left out."""
        if not self._entries or route.history.reasoning == "drop":
            return request, ()
        messages: list[Message] = []
        notes: list[Repair] = []
        for message, question in zip(request.messages, _iter_question_hashes(request.messages), strict=False):
            reasoning = self._find_reasoning(message, (caller, route.upstream, question))
            restored = _insert_reasoning(message, reasoning) if reasoning else message
            if restored is not message:
                notes.append(Repair("restored_reasoning", f"of {', '.join(reasoning)}"))
            messages.append(restored)
        return (msgspec.structs.replace(request, messages=tuple(messages)), tuple(notes)) if notes else (request, ())

    def _find_reasoning(self, message: Message, scope: tuple[str, str, int]) -> dict[str, CallReasoning]:
        if message.role != "assistant":
            return {}
        keys = [(*scope, part.id) for part in message.parts if isinstance(part, ToolCall)]
        found = [key for key in keys if key in self._entries]
        for key in found:
            self._entries.move_to_end(key)
        return {key[-1]: self._entries[key] for key in found}

    def _put_entry(self, key: _CacheKey, reasoning: CallReasoning) -> None:
        self._size += _count_characters(reasoning) - _count_characters(self._entries.pop(key, ()))
        self._entries[key] = reasoning
        while len(self._entries) > self._max_entries or (self._size > self._max_characters and len(self._entries) > 1):
            _, dropped = self._entries.popitem(last=False)
            self._size -= _count_characters(dropped)


def _should_store(route: ModelRoute, reasoning: Mapping[str, CallReasoning]) -> bool:
    """Whether to store reasoning: signatures always, text only for models that require it; some servers refuse it."""
    policy = route.history.reasoning
    is_sealed = any(part.opaque for parts in reasoning.values() for part in parts)
    return policy == "restore" or (policy == "keep" and (is_sealed or route.family.requires_reasoning_echo))


def _iter_question_hashes(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the hash of the last user message before each message, and before the answer to come."""
    question = 0
    for message in messages:
        yield question
        if message.role == "user":
            question = hash(get_message_text(message))
    yield question


def _insert_reasoning(message: Message, reasoning: Mapping[str, CallReasoning]) -> Message:
    """Insert reasoning before the calls of an answer. That of the first call comes before the answer's text too, where
    Anthropic's API expects it."""
    own = [part for part in message.parts if isinstance(part, Reasoning) and (part.text or part.opaque)]
    is_sealed = any(part.opaque for parts_before in reasoning.values() for part in parts_before)
    if any(part.opaque for part in own) or (own and not is_sealed):
        return message
    parts: list[Part] = []
    has_call = False
    for part in message.parts:
        if isinstance(part, Reasoning):
            continue
        if isinstance(part, ToolCall):
            position = len(parts) if has_call else 0
            parts[position:position] = reasoning.get(part.id, ())
            has_call = True
        parts.append(part)
    return Message(message.role, tuple(parts))


def _count_characters(reasoning: CallReasoning) -> int:
    return sum(len(part.text) + len(msgspec.json.encode(part.opaque)) for part in reasoning)
