"""Retold: messages as one text, for a service that is sent one message at a time and keeps the others by itself.

What is new goes as it is. What was said before, where the service does not have it, stands in front under headings,
which nothing that was said can imitate.
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
    """What is sent in one message."""

    prompt: str
    system: str
    """What the system messages say, for services that have a place for it."""


def flatten_messages(messages: Sequence[Message]) -> FlatPrompt:
    """The messages as one; all up to the last answer are earlier ones."""
    system = [get_message_text(message) for message in messages if message.role in ("system", "developer")]
    others = [message for message in messages if message.role not in ("system", "developer")]
    answered = max((at for at, message in enumerate(others, 1) if message.role == "assistant"), default=0)
    newest = render_transcript(others[answered:], _PLAIN_TEMPLATE).removesuffix(_PLAIN_TEMPLATE.after)
    earlier = (
        _EARLIER_HEADING + render_transcript(others[:answered], _HEADED_TEMPLATE) + _NEWEST_HEADING if answered else ""
    )
    return FlatPrompt(earlier + newest, "\n\n".join(system))
