"""A limit on tool rounds: an agent that loops is stopped with a message that says how to continue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callwright.errors import RequestError
from callwright.model import Message, Text, ToolCall

__all__ = ["ROUNDS_EXCEEDED", "check_tool_rounds", "count_tool_rounds"]

ROUNDS_EXCEEDED = "tool_rounds_exceeded"

# Claude Code 2.1 puts such blocks next to tool results: they are not a new request of the user.
_REMINDER_BLOCK = re.compile(r"<system-reminder>(?:(?!<system-reminder>).)*?</system-reminder>", re.DOTALL)


def count_tool_rounds(messages: Sequence[Message]) -> int:
    """Count the answers with calls since the user's last request."""
    count = 0
    for message in reversed(messages):
        if message.role == "user" and _has_user_content(message):
            break
        count += message.role == "assistant" and any(isinstance(part, ToolCall) for part in message.parts)
    return count


def check_tool_rounds(messages: Sequence[Message], max_rounds: int) -> None:
    """Raise `RequestError` if a conversation has used up its rounds; 0 means no limit."""
    if max_rounds and (rounds := count_tool_rounds(messages)) >= max_rounds:
        raise RequestError(
            f"this request has taken {rounds} rounds of tool calls, and the model is allowed {max_rounds}; "
            "send another message to continue, or raise max_rounds in the model's prompt settings",
            code=ROUNDS_EXCEEDED,
        )


def _has_user_content(message: Message) -> bool:
    return any(not isinstance(part, Text) or _REMINDER_BLOCK.sub("", part.text).strip() for part in message.parts)
