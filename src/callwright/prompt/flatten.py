"""Flatten messages into one text, for a service that accepts one message at a time and keeps the conversation itself.

New messages are sent unchanged. Earlier messages that the service does not have come first, under headings that no
message can imitate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from callwright.model import Message
from callwright.prompt.chat_template import ChatTemplate, render_transcript
from callwright.prompt.message_text import get_message_text

__all__ = ["FlatPrompt", "flatten_messages"]

_EARLIER_HEADING = "What was said so far:\n\n"
_NEWEST_HEADING = "=== Now ===\n"

_HEADED_TEMPLATE = ChatTemplate(
    before="=== {role} ===\n",
    after="\n\n",
    answer_opening="",
    roles={"user": "User", "assistant": "Assistant", "tool": "Results"},
    stops=(),
    marker_pattern=r"(?m)^=== (User|Assistant|Results|Now) ===",
    marker_replacement=r"== \1 ==",
)
_PLAIN_TEMPLATE = ChatTemplate(
    before="", after="\n\n", answer_opening="", roles={}, stops=(), marker_pattern=r"(?!)", marker_replacement=""
)


class FlatPrompt(NamedTuple):
    """The content of one message."""

    prompt: str
    system: str
    """The text of the system messages, for services that have a field for it."""


def flatten_messages(messages: Sequence[Message]) -> FlatPrompt:
    """Flatten the messages into one; all up to the last answer are earlier ones."""
    system = [get_message_text(message) for message in messages if message.role in ("system", "developer")]
    others = [message for message in messages if message.role not in ("system", "developer")]
    answered = max((at for at, message in enumerate(others, 1) if message.role == "assistant"), default=0)
    newest = render_transcript(others[answered:], _PLAIN_TEMPLATE).removesuffix(_PLAIN_TEMPLATE.after)
    earlier = (
        _EARLIER_HEADING + render_transcript(others[:answered], _HEADED_TEMPLATE) + _NEWEST_HEADING if answered else ""
    )
    return FlatPrompt(earlier + newest, "\n\n".join(system))
