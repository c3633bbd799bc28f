"""A limit on tool rounds: an agent that goes in circles is stopped with a sentence that says how to go on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callwright.errors import RequestError
from callwright.model import Message, Text, ToolCall

__all__ = ["ROUNDS_EXCEEDED", "check_tool_rounds", "count_tool_rounds"]

ROUNDS_EXCEEDED = "tool_rounds_exceeded"

# Claude Code 2.1 puts such blocks beside tool results: they are no new request of the user.
_REMINDER_BLOCK = re.compile(r"<system-reminder>(?:(?!<system-reminder>).)*?</system-reminder>", re.DOTALL)


def count_tool_rounds(messages: Sequence[Message]) -> int:
    """How many answers with calls there are since the user last asked for something."""
    count = 0
    for message in reversed(messages):
        if message.role == "user" and _has_user_content(message):
            break
        count += message.role == "assistant" and any(isinstance(part, ToolCall) for part in message.parts)
    return count


def check_tool_rounds(messages: Sequence[Message], most: int) -> None:
    """Raise `RequestError` when a conversation has made its rounds; 0 is no limit."""
    if most and (made := count_tool_rounds(messages)) >= most:
        raise RequestError(
            f"this request has taken {made} rounds of tool calls, and the model is allowed {most}; "
            "write another message to let it go on, or raise max_rounds in its prompt settings",
            code=ROUNDS_EXCEEDED,
        )


def _has_user_content(message: Message) -> bool:
    return any(not isinstance(part, Text) or _REMINDER_BLOCK.sub("", part.text).strip() for part in message.parts)
