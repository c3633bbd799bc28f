"""State for the next request, which may refer to an answer and its items instead of sending them again.

`previous_response_id` stands for the whole conversation before it, without its instructions. An `item_reference` stands
for one item: the AI SDK sends references for all items with a known id, unless storing is disabled. Our item ids
contain the id of their answer and a number, so that one stored value serves both: the conversation, by the answer's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from callwright.errors import RequestError
from callwright.model import Message, Part, Reasoning, Text, ToolCall
from callwright.turn import Collected
from callwright.wire.base import ClientRequest
from callwright.wire.openai_responses.decode import RESPONSE_ID_PREFIX
from callwright.wire.openai_responses.input_items import REFERENCE_KEY
from callwright.wire.orphan_results import check_orphan_results

__all__ = ["build_stored_messages", "find_referenced_ids", "resolve_references"]


def build_stored_messages(client_request: ClientRequest, turn: Collected) -> tuple[Message, ...]:
    """Return the conversation to store under the answer's id: all earlier messages, and the answer.

    A truncated call is not stored: nobody will answer it.
    """
    parts: list[Part] = list(turn.thoughts)
    if turn.text:
        parts.append(Text(turn.text))
    parts += [call for call in turn.tool_calls if call.complete]
    before = client_request.request.messages[_count_instructions(client_request) :]
    return (*before, Message("assistant", tuple(parts))) if parts else before


def find_referenced_ids(client_request: ClientRequest) -> frozenset[str]:
    """Return the ids of the earlier answers that a request refers to."""
    ids = {
        _parse_response_id(_get_reference(part))
        for message in client_request.request.messages
        for part in message.parts
    }
    return frozenset((ids | {client_request.previous}) - {""})


def resolve_references(client_request: ClientRequest, stored: Mapping[str, Sequence[Message]]) -> ClientRequest:
    """Replace the references of a request by the messages that are stored under the ids of `find_referenced_ids`.

    References to unknown items are dropped. An unknown previous answer is an error, in the form that makes VS Code
    Copilot Chat send the whole conversation again.
    """
    if client_request.previous and client_request.previous not in stored:
        raise RequestError(
            f"the previous response {RESPONSE_ID_PREFIX}{client_request.previous} is not known here; "
            "send the whole conversation",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    first = _count_instructions(client_request)
    instructions, new = client_request.request.messages[:first], client_request.request.messages[first:]
    filled = [_fill_references(message, stored) for message in (*stored.get(client_request.previous, ()), *new)]
    messages = (*instructions, *(message for message in filled if message))
    check_orphan_results(messages, "input")
    return msgspec.structs.replace(
        client_request, request=msgspec.structs.replace(client_request.request, messages=messages)
    )


def _count_instructions(client_request: ClientRequest) -> int:
    """Return how many of the first messages are the request's instructions."""
    return int("instructions" in client_request.extra)


def _get_reference(part: Part) -> str:
    opaque = part.opaque if isinstance(part, Reasoning) else None
    return str(opaque.get(REFERENCE_KEY, "")) if opaque else ""


def _parse_response_id(item_id: str) -> str:
    return item_id.partition("_")[2].rpartition("_")[0]


def _fill_references(message: Message, stored: Mapping[str, Sequence[Message]]) -> Message | None:
    """Return the message with the items that it refers to; None if it has nothing else and they are not stored."""
    if not any(map(_get_reference, message.parts)):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if item_id := _get_reference(part):
            answer = stored.get(_parse_response_id(item_id), ())
            parts += _find_item_parts(item_id, answer[-1].parts if answer else ())
        else:
            parts.append(part)
    return Message(message.role, tuple(parts)) if parts else None


def _find_item_parts(item_id: str, answer: Sequence[Part]) -> Iterable[Part]:
    """Return the part of an answer that one of its items stands for. Its text is stored as one part, whatever calls
    came in between: the first message item stands for all of it."""
    kind, number = item_id.partition("_")[0], item_id.rpartition("_")[2]
    part_type = {"msg": Text, "rs": Reasoning}.get(kind, ToolCall)
    parts = [part for part in answer if isinstance(part, part_type)]
    return parts[int(number) :][:1] if number.isdecimal() and len(number) < 5 else ()
