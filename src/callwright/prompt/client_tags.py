"""Client tags: markup that a client puts into the text for a model.

Copilot Chat (0.66, from its source) puts `<attachments>`, `<context>` and `<userRequest>` into user messages and custom
instructions into the system text as `<instructions>`. This module only reads them; the text stays unchanged. Each text
is searched once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from callwright.model import Message
from callwright.prompt.message_text import get_message_text

__all__ = ["ClientTags", "iter_blocks", "read_client_tags"]


class ClientTags(NamedTuple):
    """The tags of a conversation; fields without a match are empty."""

    context: str = ""
    """Every `<context>`, the user's newest first, those of system messages last, without duplicates."""
    attachments: str = ""
    """The same for `<attachments>`."""
    request: str = ""
    """The user's request: the newest `<userRequest>`, or the newest user message unchanged."""
    instructions: str = ""
    """The last `<instructions>` of the system messages."""


def iter_blocks(text: str, tag: str) -> Iterator[str]:
    """Yield the text between each pair of tags, in order; a tag that is not closed is ignored."""
    opener, closer = f"<{tag}>", f"</{tag}>"
    start = text.find(opener)
    while start >= 0 and (end := text.find(closer, start)) >= 0:
        yield text[start + len(opener) : end].strip()
        start = text.find(opener, end)


def read_client_tags(messages: Sequence[Message], known_text: str = "") -> ClientTags:
    """Read the tags of a conversation, without the blocks that `known_text` already contains."""
    users = [get_message_text(message) for message in reversed(messages) if message.role == "user"]
    systems = [get_message_text(message) for message in reversed(messages) if message.role in ("system", "developer")]
    newest = users[0] if users else ""
    return ClientTags(
        _join_blocks((*users, *systems), "context", known_text),
        _join_blocks((*users, *systems), "attachments", known_text),
        next((block for text in users for block in _list_blocks_reversed(text, "userRequest")), newest),
        next((block for text in systems for block in _list_blocks_reversed(text, "instructions")), ""),
    )


def _join_blocks(texts: Iterable[str], tag: str, known_text: str) -> str:
    blocks = dict.fromkeys(block for text in texts for block in _list_blocks_reversed(text, tag))
    known = set(iter_blocks(known_text, tag))
    return "\n\n".join(block for block in blocks if block and block not in known)


def _list_blocks_reversed(text: str, tag: str) -> list[str]:
    return list(iter_blocks(text, tag))[::-1]
