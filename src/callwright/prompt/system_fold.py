"""System messages folded into the first user message, for backends that ignore them.

    <system_context>
    === Agent Instructions ===
    …
    === System Context 2 ===
    …
    </system_context>

    the user's message

The client's own parts, including images, follow unchanged and in order; nothing is lost. The template decides the form;
this module decides the content.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from callwright.model import Message, Part, Text
from callwright.prompt.message_text import get_message_text

__all__ = ["REDUNDANT_SYSTEM_TEXT", "SystemSection", "ensure_first_user", "find_free_tag", "split_system"]

REDUNDANT_SYSTEM_TEXT = "Follow the instructions inside <{tag}> at the beginning of the user's first message."
_TAG_NAME = "system_context"


class SystemSection(NamedTuple):
    """One system message under its heading."""

    heading: str
    text: str


class SystemSplit(NamedTuple):
    """A conversation and its system messages, separated."""

    system: tuple[Message, ...]
    sections: tuple[SystemSection, ...]
    """The text of the system messages."""
    other_parts: tuple[Part, ...]
    """Their other parts, such as images."""
    conversation: tuple[Message, ...]


def split_system(messages: Sequence[Message]) -> SystemSplit:
    """Take all system and developer messages out of a conversation; empty ones are dropped."""
    system = [message for message in messages if message.role in ("system", "developer")]
    texts = [text for text in map(get_message_text, system) if text.strip()]
    sections = (
        SystemSection("Agent Instructions" if number == 1 else f"System Context {number}", text)
        for number, text in enumerate(texts, 1)
    )
    others = (part for message in system for part in message.parts if not isinstance(part, Text))
    rest = (message for message in messages if message.role not in ("system", "developer"))
    return SystemSplit(tuple(system), tuple(sections), tuple(others), tuple(rest))


def ensure_first_user(messages: Sequence[Message]) -> tuple[int, tuple[Message, ...]]:
    """Return the index of the first user message, and the messages; if there is none, add an empty one at the start."""
    position = next((at for at, message in enumerate(messages) if message.role == "user"), None)
    return (0, (Message("user", ()), *messages)) if position is None else (position, tuple(messages))


def find_free_tag(*texts: str) -> str:
    """Return a tag name that occurs in none of the texts, so that none of them can open or close it."""
    names = (f"agent_{_TAG_NAME}_{number}" if number > 1 else f"agent_{_TAG_NAME}" for number in count(1))
    text = "\n".join(texts)
    return _TAG_NAME if _is_unused(_TAG_NAME, text) else next(name for name in names if _is_unused(name, text))


def _is_unused(name: str, text: str) -> bool:
    return f"<{name}>" not in text and f"</{name}>" not in text
