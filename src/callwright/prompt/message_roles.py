"""Order a history as strict servers and templates require, after all other changes.

`merge_roles_strictly` is for templates that raise "System message must be at the beginning" or "roles must alternate":
llama.cpp #20733, lmstudio #2298, opencode #5034. `move_result_images` is for servers that answer 400 to an image in a
tool result: vLLM #43203, llama.cpp #23542, qwen-code #3616. Both lose nothing and are idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from callwright.model import Image, Message, Part, Reasoning, Repair, Text, ToolResult

__all__ = ["drop_reasoning", "drop_result_images", "merge_roles_strictly", "move_result_images"]

_INSTRUCTION_ROLES = ("system", "developer")
_IMAGE_MOVED_TEXT = "The result is a picture; it is in the next message of the user."
_IMAGE_DROPPED_TEXT = "[a picture that this model cannot see]"


def merge_roles_strictly(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """Merge instructions into one message at the front, and neighbouring messages of one role, except results."""
    instructions = [message for message in messages if message.role in _INSTRUCTION_ROLES]
    others = [message for message in messages if message.role not in _INSTRUCTION_ROLES]
    if list(messages[: len(instructions)]) != instructions:
        notes.append(Repair("moved_system", "instructions were between other messages"))
    front = [_merge_messages(instructions)] if instructions else []
    joined = [message for role, group in groupby(others, _get_role) for message in _merge_run(role, list(group))]
    if len(front) + len(joined) < len(messages):
        notes.append(Repair("merged_roles", "consecutive messages had the same role"))
    return (*front, *joined)


def _get_role(message: Message) -> str:
    return message.role


def _merge_run(role: str, messages: list[Message]) -> list[Message]:
    return messages if role == "tool" else [_merge_messages(messages)]


def _merge_messages(messages: Sequence[Message]) -> Message:
    return Message(messages[0].role, tuple(part for message in messages for part in message.parts))


def move_result_images(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """Move the images of each run of results to a user message after it."""
    return tuple(
        message
        for role, group in groupby(messages, _get_role)
        for message in _move_run_images(role, list(group), notes)
    )


def _move_run_images(role: str, messages: list[Message], notes: list[Repair]) -> Iterator[Message]:
    moved: list[Text | Image] = []
    for message in messages:
        if role == "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult) and part.images]
            for result in results:
                moved += [Text(f"From the result of {result.name or result.call_id}:"), *result.images]
                notes.append(Repair("moved_images", f"the result of {result.call_id} contained images"))
            yield Message("tool", tuple(map(_strip_images, message.parts))) if results else message
        else:
            yield message
    if moved:
        yield Message("user", tuple(moved))


def _strip_images(part: Part) -> Part:
    if isinstance(part, ToolResult) and part.images:
        return msgspec.structs.replace(part, content=part.content or _IMAGE_MOVED_TEXT, images=())
    return part


def drop_result_images(messages: Sequence[Message], notes: list[Repair]) -> tuple[Message, ...]:
    """Drop the images of results, for a model without vision: they would make every later request fail."""
    return tuple(
        Message(message.role, tuple(_drop_images(part, notes) for part in message.parts)) for message in messages
    )


def _drop_images(part: Part, notes: list[Repair]) -> Part:
    if not isinstance(part, ToolResult) or not part.images:
        return part
    notes.append(Repair("dropped_images", f"the result of {part.call_id} contained images, but the model accepts none"))
    return msgspec.structs.replace(
        part, content="\n".join(filter(None, (part.content, _IMAGE_DROPPED_TEXT))), images=()
    )


def drop_reasoning(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without reasoning; a message with nothing else is dropped."""
    return tuple(
        Message(message.role, kept)
        for message in messages
        if (kept := tuple(part for part in message.parts if not isinstance(part, Reasoning))) or not message.parts
    )
