"""What an answer leaves behind for the next request, which may name it and its items instead of sending them again.

`previous_response_id` stands for the whole conversation before it, without its instructions. An `item_reference` stands
for one item: the AI SDK sends those for all items that it knows an id of, unless it is told not to store. Our item ids
hold the id of their answer and a number, so that both need only one thing kept: the conversation, by the answer's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from callwright.errors import RequestError
from callwright.model import Message, Part, Reasoning, Text, ToolCall
from callwright.turn import Collected
from callwright.wire.base import Ask
from callwright.wire.openai_responses.items import REFERENCE
from callwright.wire.openai_responses.request import PREFIX
from callwright.wire.orphans import check_results

__all__ = ["recalls", "remembered", "resumed"]


def remembered(ask: Ask, turn: Collected) -> tuple[Message, ...]:
    """The conversation to be kept under the answer's id: all that was said before, and the answer.

    A call that was cut off is not kept: nobody will answer it.
    """
    parts: list[Part] = list(turn.thoughts)
    if turn.text:
        parts.append(Text(turn.text))
    parts += [call for call in turn.tool_calls if call.complete]
    before = ask.request.messages[_instructions(ask) :]
    return (*before, Message("assistant", tuple(parts))) if parts else before


def recalls(ask: Ask) -> frozenset[str]:
    """The ids of the earlier answers that a request builds on."""
    named = {_answer_id(_reference(part)) for message in ask.request.messages for part in message.parts}
    return frozenset((named | {ask.previous}) - {""})


def resumed(ask: Ask, kept: Mapping[str, Sequence[Message]]) -> Ask:
    """The request with what it only named put in its place, from what is kept under the ids of `recalls`.

    References to items that nobody kept are dropped. A previous answer that nobody kept is an error, in the form that
    makes VS Code Copilot Chat send the whole conversation again.
    """
    if ask.previous and ask.previous not in kept:
        raise RequestError(
            f"the previous response {PREFIX}{ask.previous} is not known here; send the whole conversation",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    first = _instructions(ask)
    instructions, new = ask.request.messages[:first], ask.request.messages[first:]
    filled = [_filled(message, kept) for message in (*kept.get(ask.previous, ()), *new)]
    messages = (*instructions, *(message for message in filled if message))
    check_results(messages, "input")
    return msgspec.structs.replace(ask, request=msgspec.structs.replace(ask.request, messages=messages))


def _instructions(ask: Ask) -> int:
    """How many of the first messages are the request's instructions."""
    return int("instructions" in ask.extra)


def _reference(part: Part) -> str:
    opaque = part.opaque if isinstance(part, Reasoning) else None
    return str(opaque.get(REFERENCE, "")) if opaque else ""


def _answer_id(item_id: str) -> str:
    return item_id.partition("_")[2].rpartition("_")[0]


def _filled(message: Message, kept: Mapping[str, Sequence[Message]]) -> Message | None:
    """The message with the items that it refers to; None if it has nothing else and they are not kept."""
    if not any(map(_reference, message.parts)):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if item_id := _reference(part):
            answer = kept.get(_answer_id(item_id), ())
            parts += _item(item_id, answer[-1].parts if answer else ())
        else:
            parts.append(part)
    return Message(message.role, tuple(parts)) if parts else None


def _item(item_id: str, answer: Sequence[Part]) -> Iterable[Part]:
    """The part of an answer that one of its items stands for. Its words were kept as one part, whatever calls stood
    between them: its first message stands for all of them."""
    kind, number = item_id.partition("_")[0], item_id.rpartition("_")[2]
    wanted = {"msg": Text, "rs": Reasoning}.get(kind, ToolCall)
    found = [part for part in answer if isinstance(part, wanted)]
    return found[int(number) :][:1] if number.isdecimal() and len(number) < 5 else ()
