"""Repair the history that a client sends before a model sees it.

    client history ─▶ arguments ─▶ leaked calls ─▶ blank answers ─▶ result pairs ─▶ model

Clients keep broken turns and send them back with every request, so that one of them spoils a whole session. Each repair
is a `Repair` for the journal. Nothing is lost except results of calls that nobody made. A valid history is unchanged,
and a repaired history is valid: repairing it again changes nothing.
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
    """A valid history and its repairs."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...]


def repair_history(
    messages: Sequence[Message],
    read: TurnParser | None = None,
    tools: Collection[str] = (),
    frames: Collection[str] = (),
) -> RepairedHistory:
    """Repair the history. `read` looks for calls of these tools, and for text with these frame markers, in earlier
    answers; with None, answers are not searched."""
    if all(message.role in ("system", "developer", "user") for message in messages):
        return RepairedHistory(tuple(messages), ())
    notes: list[Repair] = []
    make_id = CallIdGenerator(messages)
    repaired = [_repair_arguments(message, notes) for message in messages]
    if read is not None and (tools or frames):
        search = LeakSearch(read, tools, frames)
        repaired = [extract_leaked_calls(message, search, make_id, notes) for message in repaired]
    repaired = [message for message in repaired if not _is_blank_answer(message, notes)]
    return RepairedHistory(tuple(pair_results(repaired, make_id, notes)), tuple(notes))


def _repair_arguments(message: Message, notes: list[Repair]) -> Message:
    """Return the message with arguments that are JSON objects: Codex 0.166 sends back raw what it could not parse."""
    if all(is_json_object(part.arguments) for part in message.parts if isinstance(part, ToolCall)):
        return message
    return Message(message.role, tuple(_repair_part(part, notes) for part in message.parts))


def _repair_part(part: Part, notes: list[Repair]) -> Part:
    if not isinstance(part, ToolCall) or is_json_object(part.arguments):
        return part
    notes.append(Repair("repaired_arguments", f"the arguments of {part.name} ({part.id}) were not a JSON object"))
    return msgspec.structs.replace(part, arguments=repair_arguments(part.arguments))


def _is_blank_answer(message: Message, notes: list[Repair]) -> bool:
    """Whether an answer is empty: Anthropic and others refuse it, and with it every later request of the session."""
    blank = message.role == "assistant" and all(isinstance(part, Text) and not part.text for part in message.parts)
    if blank:
        notes.append(Repair("dropped_blank", "an earlier answer was empty"))
    return blank
