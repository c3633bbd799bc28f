"""System messages folded into the first user message, for backends that ignore them.

    <system_context>
    === Agent Instructions ===
    …
    === System Context 2 ===
    …
    </system_context>

    what the user said

The client's own parts, pictures too, stay whole and in order behind it; nothing is lost. How it is written is the
template's business; here is decided what goes into it.
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
    """A conversation and its system messages, apart."""

    system: tuple[Message, ...]
    sections: tuple[SystemSection, ...]
    """Their words."""
    other_parts: tuple[Part, ...]
    """What else was in them, such as pictures."""
    conversation: tuple[Message, ...]


def split_system(messages: Sequence[Message]) -> SystemSplit:
    """Take all system and developer messages out of a conversation; those that say nothing are dropped."""
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
    """Where the first user message is; where there is none, an empty one is put at the beginning."""
    position = next((at for at, message in enumerate(messages) if message.role == "user"), None)
    return (0, (Message("user", ()), *messages)) if position is None else (position, tuple(messages))


def find_free_tag(*texts: str) -> str:
    """A name for the tag that stands in none of the texts: none of them can open or close it."""
    names = (f"agent_{_TAG_NAME}_{number}" if number > 1 else f"agent_{_TAG_NAME}" for number in count(1))
    held = "\n".join(texts)
    return _TAG_NAME if _is_unused(_TAG_NAME, held) else next(name for name in names if _is_unused(name, held))


def _is_unused(name: str, text: str) -> bool:
    return f"<{name}>" not in text and f"</{name}>" not in text
