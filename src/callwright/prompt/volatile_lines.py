"""Move lines that change from request to request to the end, so that the beginning stays the same for prompt caches."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.model import Message, Text

__all__ = ["move_volatile_lines_last"]


def move_volatile_lines_last(messages: Sequence[Message], volatile: tuple[str, ...]) -> tuple[tuple[Message, ...], str]:
    """Remove the lines with these prefixes from the system messages. Return the conversation and the removed lines."""
    if not volatile:
        return tuple(messages), ""
    moved: list[str] = []
    out: list[Message] = []
    for message in messages:
        if message.role not in ("system", "developer"):
            out.append(message)
            continue
        parts = [_remove_lines(part, volatile, moved) if isinstance(part, Text) else part for part in message.parts]
        remaining = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
        if remaining or not message.parts:
            out.append(Message(message.role, remaining))
    return tuple(out), "\n".join(moved)


def _remove_lines(part: Text, volatile: tuple[str, ...], moved: list[str]) -> Text:
    lines = part.text.split("\n")
    moving = [line for line in lines if line.lstrip().startswith(volatile)]
    moved += moving
    return Text("\n".join(line for line in lines if not line.lstrip().startswith(volatile))) if moving else part
