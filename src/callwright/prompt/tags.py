"""Client tags: what a client marks in the text that it sends for a model.

Copilot Chat (0.66, from its source) puts `<attachments>`, `<context>` and `<userRequest>` into user messages and
custom instructions into the system text as `<instructions>`. Here they are only read; the text they stand in stays as
it is. Cost: each text is searched once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from callwright.model import Message
from callwright.prompt.words import text_of

__all__ = ["Tags", "blocks", "read_tags"]


class Tags(NamedTuple):
    """What was found in a conversation; empty where nothing was."""

    context: str = ""
    """Every `<context>`, the user's newest first, those of system messages last; the same one once."""
    attachments: str = ""
    """The same for `<attachments>`."""
    request: str = ""
    """What the user asks for: the newest `<userRequest>`, or the newest user message as it is."""
    instructions: str = ""
    """The last `<instructions>` of the system messages."""


def blocks(text: str, tag: str) -> Iterator[str]:
    """What stands between each pair of tags, in order; a tag that is not closed counts for nothing."""
    opener, closer = f"<{tag}>", f"</{tag}>"
    start = text.find(opener)
    while start >= 0 and (end := text.find(closer, start)) >= 0:
        yield text[start + len(opener) : end].strip()
        start = text.find(opener, end)


def read_tags(messages: Sequence[Message], told: str = "") -> Tags:
    """The tags of a conversation, without the blocks that `told` holds already."""
    users = [text_of(message) for message in reversed(messages) if message.role == "user"]
    systems = [text_of(message) for message in reversed(messages) if message.role in ("system", "developer")]
    newest = users[0] if users else ""
    return Tags(
        _merged((*users, *systems), "context", told),
        _merged((*users, *systems), "attachments", told),
        next((block for text in users for block in _backwards(text, "userRequest")), newest),
        next((block for text in systems for block in _backwards(text, "instructions")), ""),
    )


def _merged(texts: Iterable[str], tag: str, told: str) -> str:
    found = dict.fromkeys(block for text in texts for block in _backwards(text, tag))
    known = set(blocks(told, tag))
    return "\n\n".join(block for block in found if block and block not in known)


def _backwards(text: str, tag: str) -> list[str]:
    return list(blocks(text, tag))[::-1]
