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
from callwright.prompt.words import text_of

__all__ = ["REDUNDANT", "Section", "first_user", "free_tag", "take_system"]

REDUNDANT = "Follow the instructions inside <{tag}> at the beginning of the user's first message."
_TAG = "system_context"


class Section(NamedTuple):
    """One system message under its heading."""

    heading: str
    text: str


class Taken(NamedTuple):
    """A conversation and its system messages, apart."""

    system: tuple[Message, ...]
    sections: tuple[Section, ...]
    """Their words."""
    parts: tuple[Part, ...]
    """What else was in them, such as pictures."""
    rest: tuple[Message, ...]


def take_system(messages: Sequence[Message]) -> Taken:
    """Take all system and developer messages out of a conversation; those that say nothing are dropped."""
    system = [message for message in messages if message.role in ("system", "developer")]
    texts = [text for text in map(text_of, system) if text.strip()]
    sections = (
        Section("Agent Instructions" if number == 1 else f"System Context {number}", text)
        for number, text in enumerate(texts, 1)
    )
    others = (part for message in system for part in message.parts if not isinstance(part, Text))
    rest = (message for message in messages if message.role not in ("system", "developer"))
    return Taken(tuple(system), tuple(sections), tuple(others), tuple(rest))


def first_user(messages: Sequence[Message]) -> tuple[int, tuple[Message, ...]]:
    """Where the first user message is; where there is none, an empty one is put at the beginning."""
    position = next((at for at, message in enumerate(messages) if message.role == "user"), None)
    return (0, (Message("user", ()), *messages)) if position is None else (position, tuple(messages))


def free_tag(*texts: str) -> str:
    """A name for the tag that stands in none of the texts: none of them can open or close it."""
    names = (f"agent_{_TAG}_{number}" if number > 1 else f"agent_{_TAG}" for number in count(1))
    held = "\n".join(texts)
    return _TAG if _is_free(_TAG, held) else next(name for name in names if _is_free(name, held))


def _is_free(name: str, text: str) -> bool:
    return f"<{name}>" not in text and f"</{name}>" not in text
