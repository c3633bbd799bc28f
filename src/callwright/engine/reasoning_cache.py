"""Reasoning: what a model thought before its calls, kept for clients that do not send it back.

Some servers refuse a round of calls without it: Anthropic and Google want their signatures, DeepSeek and Kimi the
words; and OpenAI's models think on from what they encrypted. Few clients keep any of it. Here it is kept by call, the
newest within bounds, and put back where a call returns without it. What the client sends itself stays as it is, unless
its seal is missing.

A call is known by its id, the words of the user that it answers, the model and the caller: ids such as Kimi's
`functions.read:0` come again in every conversation, and nobody may get to see what was thought in another's.
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
"""What stood before one call."""
_CacheKey = tuple[str, str, int, str]


class ReasoningCache:
    """What was thought before calls, of all callers."""

    def __init__(self, *, max_entries: int = 16_384, max_characters: int = 64_000_000) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._size = 0
        self._entries: OrderedDict[_CacheKey, CallReasoning] = OrderedDict()

    def store_reasoning(
        self, caller: str, route: ModelRoute, request: Request, reasoning: Mapping[str, CallReasoning]
    ) -> None:
        """Remember what stood before the calls of an answer, by their ids; what nobody will ask for is not kept."""
        if not any(reasoning.values()) or not _should_store(route, reasoning):
            return
        *_, question = _iter_question_hashes(request.messages)
        for call_id, thought in reasoning.items():
            if thought:
                self._put_entry((caller, route.upstream, question, call_id), thought)

    def restore_reasoning(self, caller: str, route: ModelRoute, request: Request) -> tuple[Request, tuple[Repair, ...]]:
        """The request with the thoughts that its client left out."""
        if not self._entries or route.history.reasoning == "drop":
            return request, ()
        messages: list[Message] = []
        notes: list[Repair] = []
        for message, question in zip(request.messages, _iter_question_hashes(request.messages), strict=False):
            thoughts = self._find_reasoning(message, (caller, route.upstream, question))
            whole = _insert_reasoning(message, thoughts) if thoughts else message
            if whole is not message:
                notes.append(Repair("restored_reasoning", f"of {', '.join(thoughts)}"))
            messages.append(whole)
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
            _, gone = self._entries.popitem(last=False)
            self._size -= _count_characters(gone)


def _should_store(route: ModelRoute, reasoning: Mapping[str, CallReasoning]) -> bool:
    """Seals always; words only where the model is known to want them, for there are servers that refuse the field."""
    policy = route.history.reasoning
    sealed = any(part.opaque for thought in reasoning.values() for part in thought)
    return policy == "restore" or (policy == "keep" and (sealed or route.family.requires_reasoning_echo))


def _iter_question_hashes(messages: Sequence[Message]) -> Iterator[int]:
    """For every message, and for the answer to come, what the user said last before it."""
    question = 0
    for message in messages:
        yield question
        if message.role == "user":
            question = hash(get_message_text(message))
    yield question


def _insert_reasoning(message: Message, reasoning: Mapping[str, CallReasoning]) -> Message:
    """An answer with these thoughts before its calls; those before the first call come before its words too, where
    Anthropic's API looks for them."""
    own = [part for part in message.parts if isinstance(part, Reasoning) and (part.text or part.opaque)]
    sealed = any(part.opaque for thought in reasoning.values() for part in thought)
    if any(part.opaque for part in own) or (own and not sealed):
        return message
    parts: list[Part] = []
    called = False
    for part in message.parts:
        if isinstance(part, Reasoning):
            continue
        if isinstance(part, ToolCall):
            at = len(parts) if called else 0
            parts[at:at] = reasoning.get(part.id, ())
            called = True
        parts.append(part)
    return Message(message.role, tuple(parts))


def _count_characters(reasoning: CallReasoning) -> int:
    return sum(len(part.text) + len(msgspec.json.encode(part.opaque)) for part in reasoning)
