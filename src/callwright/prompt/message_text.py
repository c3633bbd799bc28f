"""The words of messages: read as one text, and put around what is there already without a seam."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.model import Message, Part, Text

__all__ = ["append_text", "get_message_text", "wrap_parts"]


def get_message_text(message: Message) -> str:
    """The words of a message."""
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text))


def wrap_parts(parts: Sequence[Part], before: str = "", after: str = "") -> tuple[Part, ...]:
    """Parts with words before and after them. They join the text that they touch, because wires and templates put
    different gaps between two parts; beside a picture they stand by themselves."""
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
    """A conversation with words at its end: in the user's message if that is the last, else in a new one."""
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", wrap_parts(messages[-1].parts, after=f"\n\n{text}")))
    return (*messages, Message("user", (Text(text),)))
