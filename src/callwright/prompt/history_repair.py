"""History: what a client sends of earlier turns, mended before a model sees it.

    sent ─ arguments ─▶ leaks ─▶ blanks ─▶ pairs ─▶ told

Clients keep what went wrong and send it back with every request, so that one broken turn spoils a whole session. Each
mend is a `Repair` for the journal. Nothing that was said is lost but results of calls that nobody made, a sound history
stays as it is, and a mended one is sound: mending it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from callwright.model import Message, Part, Repair, Text, ToolCall
from callwright.prompt.leaked_calls import LeakSearch, TurnParser, extract_leaked_calls
from callwright.prompt.result_pairing import CallIdGenerator, pair_results
from callwright.wire.argument_json import is_json_object, repair_arguments

__all__ = ["RepairedHistory", "repair_history"]


class RepairedHistory(NamedTuple):
    """A history that holds, and what was done for it."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...]


def repair_history(
    messages: Sequence[Message],
    read: TurnParser | None = None,
    tools: Collection[str] = (),
    frames: Collection[str] = (),
) -> RepairedHistory:
    """The history mended. `read` looks for calls of these tools, and for what these signs frame, in the texts of
    earlier answers; None: nobody does."""
    if all(message.role in ("system", "developer", "user") for message in messages):
        return RepairedHistory(tuple(messages), ())
    notes: list[Repair] = []
    fresh = CallIdGenerator(messages)
    mended = [_repair_arguments(message, notes) for message in messages]
    if read is not None and (tools or frames):
        reading = LeakSearch(read, tools, frames)
        mended = [extract_leaked_calls(message, reading, fresh, notes) for message in mended]
    mended = [message for message in mended if not _is_blank_answer(message, notes)]
    return RepairedHistory(tuple(pair_results(mended, fresh, notes)), tuple(notes))


def _repair_arguments(message: Message, notes: list[Repair]) -> Message:
    """The message with arguments that are JSON objects: Codex 0.166 sends back raw what it could not parse."""
    if all(is_json_object(part.arguments) for part in message.parts if isinstance(part, ToolCall)):
        return message
    return Message(message.role, tuple(_repair_part(part, notes) for part in message.parts))


def _repair_part(part: Part, notes: list[Repair]) -> Part:
    if not isinstance(part, ToolCall) or is_json_object(part.arguments):
        return part
    notes.append(Repair("repaired_arguments", f"those of {part.name} ({part.id}) were no JSON object"))
    return msgspec.structs.replace(part, arguments=repair_arguments(part.arguments))


def _is_blank_answer(message: Message, notes: list[Repair]) -> bool:
    """An answer that says nothing: Anthropic and others refuse it, and so every later request of the session."""
    blank = message.role == "assistant" and all(isinstance(part, Text) and not part.text for part in message.parts)
    if blank:
        notes.append(Repair("dropped_blank", "an earlier answer was empty"))
    return blank
