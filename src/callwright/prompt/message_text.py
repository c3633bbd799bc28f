"""The text of messages: read it, or add to it without changing the gaps between parts."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.model import Message, Part, Text

__all__ = ["append_text", "get_message_text", "wrap_parts"]


def get_message_text(message: Message) -> str:
    """Return the text of a message."""
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text))


def wrap_parts(parts: Sequence[Part], before: str = "", after: str = "") -> tuple[Part, ...]:
    """Add text before and after parts. It is joined to adjacent text, because wires and templates put different gaps
    between two parts; next to an image it is a part of its own."""
    out = list(parts)
    if out and isinstance(out[0], Text):
        out[0] = Text(before + out[0].text)
    elif before.strip():
        out.insert(0, Text(before.strip()))
    if out and isinstance(out[-1], Text):
        out[-1] = Text(out[-1].text + after)
    elif after.strip():
        out.append(Text(after.strip()))
    return tuple(out)


def append_text(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Append text to a conversation: to the last message if that is the user's, otherwise as a new message."""
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", wrap_parts(messages[-1].parts, after=f"\n\n{text}")))
    return (*messages, Message("user", (Text(text),)))
