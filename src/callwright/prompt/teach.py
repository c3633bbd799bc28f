"""Tools taught as text, for models whose server has no tools of its own.

The tools and the way to call them stand in the system message; earlier calls and results are written in the same
dialect, so that the model sees what it is expected to write. The taught text depends on the tools alone, so the
prompt's beginning stays the same from turn to turn.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from callwright.dialects import Dialect
from callwright.model import Image, Message, Part, Request, Text, ToolCall, ToolResult

__all__ = ["taught"]


def taught(request: Request, dialect: Dialect) -> Request:
    """The same request without tools, which are told in words."""
    lesson = dialect.render_tools(request.tools)
    if request.tool_choice not in ("auto", "none"):
        which = "one of these tools" if request.tool_choice == "required" else f"the tool {request.tool_choice}"
        lesson += f"\n\nYour next answer must be a call of {which}."
    messages = [_in_words(message, dialect) for message in request.messages]
    first = messages[0] if messages else None
    if first is not None and first.role in ("system", "developer"):
        messages[0] = Message(first.role, (*first.parts, Text(f"\n\n{lesson}")))
    else:
        messages.insert(0, Message("system", (Text(lesson),)))
    return msgspec.structs.replace(request, messages=tuple(messages), tools=(), tool_choice="auto")


def _in_words(message: Message, dialect: Dialect) -> Message:
    """A message with its calls and results as the dialect writes them. Results are the user's to say."""
    if message.role == "tool":
        return Message("user", tuple(_results(message.parts, dialect)))
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if not calls:
        return message
    words = tuple(part for part in message.parts if not isinstance(part, ToolCall))
    return Message(message.role, (*words, Text(dialect.render_call(*calls))))


def _results(parts: Iterable[Part], dialect: Dialect) -> Iterable[Text | Image]:
    for part in parts:
        if isinstance(part, ToolResult):
            yield Text(dialect.render_result(part))
            yield from part.images
        elif isinstance(part, Text | Image):
            yield part
