"""Roles: a history as strict servers and templates want it, after everything else was said into it.

`strict` is for templates that raise "System message must be at the beginning" or "roles must alternate": llama.cpp
#20733, lmstudio #2298, opencode #5034. `images_moved` is for servers that answer 400 to a picture in a tool result:
vLLM #43203, llama.cpp #23542, qwen-code #3616. Both lose nothing, and change nothing the second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from callwright.model import Image, Message, Part, Reasoning, Repair, Text, ToolResult

__all__ = ["images_moved", "strict", "without_reasoning", "without_result_images"]

_INSTRUCTS = ("system", "developer")
_SEE_BELOW = "The result is a picture; it is in the next message of the user."
_UNSEEN = "[a picture that this model cannot see]"


def strict(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """Instructions in one message at the front, then no two messages of one role in a row, results aside."""
    instructions = [message for message in messages if message.role in _INSTRUCTS]
    others = [message for message in messages if message.role not in _INSTRUCTS]
    if list(messages[: len(instructions)]) != instructions:
        notes.append(Repair("moved_system", "instructions stood between other messages"))
    front = [_one(instructions)] if instructions else []
    joined = [message for role, group in groupby(others, _role) for message in _run(role, list(group))]
    if len(front) + len(joined) < len(messages):
        notes.append(Repair("merged_roles", "messages of one role stood in a row"))
    return (*front, *joined)


def _role(message: Message) -> str:
    return message.role


def _run(role: str, messages: list[Message]) -> list[Message]:
    return messages if role == "tool" else [_one(messages)]


def _one(messages: Sequence[Message]) -> Message:
    return Message(messages[0].role, tuple(part for message in messages for part in message.parts))


def images_moved(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """The pictures of each run of results in a user's message behind it."""
    return tuple(message for role, group in groupby(messages, _role) for message in _shown(role, list(group), notes))


def _shown(role: str, messages: list[Message], notes: list[Repair]) -> Iterator[Message]:
    seen: list[Text | Image] = []
    for message in messages:
        if role == "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult) and part.images]
            for result in results:
                seen += [Text(f"From the result of {result.name or result.call_id}:"), *result.images]
                notes.append(Repair("moved_images", f"the result of {result.call_id} held pictures"))
            yield Message("tool", tuple(map(_imageless, message.parts))) if results else message
        else:
            yield message
    if seen:
        yield Message("user", tuple(seen))


def _imageless(part: Part) -> Part:
    if isinstance(part, ToolResult) and part.images:
        return msgspec.structs.replace(part, content=part.content or _SEE_BELOW, images=())
    return part


def without_result_images(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """For a model that sees no pictures: one in a result would have every later request of the session refused."""
    return tuple(Message(message.role, tuple(_told(part, notes) for part in message.parts)) for message in messages)


def _told(part: Part, notes: list[Repair]) -> Part:
    if not isinstance(part, ToolResult) or not part.images:
        return part
    notes.append(Repair("dropped_images", f"the result of {part.call_id} held pictures, and the model sees none"))
    return msgspec.structs.replace(part, content="\n".join(filter(None, (part.content, _UNSEEN))), images=())


def without_reasoning(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without what was thought; one that held nothing else goes."""
    return tuple(
        Message(message.role, kept)
        for message in messages
        if (kept := tuple(part for part in message.parts if not isinstance(part, Reasoning))) or not message.parts
    )
