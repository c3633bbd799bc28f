"""Render a conversation as one text, for servers that only continue text.

    <|im_start|>user
    Hello<|im_end|>
    <|im_start|>assistant

The text of a message can never end it or begin another: markers of the template inside a message are broken up. Calls
and results were already rendered by a dialect; any that remain here become plain JSON and plain text. Reasoning of
earlier turns is omitted, as chat templates do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from callwright.model import Image, Message, Part, Role, Text, ToolCall, ToolResult

__all__ = ["CHAT_TEMPLATES", "ChatTemplate", "ChatTemplateName", "format_part", "render_transcript"]

ChatTemplateName = Literal["chatml", "plain"]


class ChatTemplate(msgspec.Struct, frozen=True):
    """How messages are separated: the text before each (with its `{role}`) and after it."""

    before: str
    after: str
    answer_opening: str
    """The opening of the message that the model writes."""
    roles: dict[Role, str]
    stops: tuple[str, ...]
    """Strings that end the model's message: without them it would write the next message too."""
    marker_pattern: str
    """A regular expression for markers that may not occur in a message."""
    marker_replacement: str
    """The replacement for such a marker."""


CHAT_TEMPLATES: Mapping[ChatTemplateName, ChatTemplate] = MappingProxyType(
    {
        # The format that Qwen and many others are trained on: github.com/openai/openai-python, chatml.md at v0.28.
        "chatml": ChatTemplate(
            before="<|im_start|>{role}\n",
            after="<|im_end|>\n",
            answer_opening="<|im_start|>assistant\n",
            roles={"developer": "system"},
            stops=("<|im_end|>", "<|im_start|>"),
            marker_pattern=r"<\|(im_(?:start|end))\|>",
            marker_replacement=r"<| \1 |>",
        ),
        # For models without a template: a dialogue with the names of the roles.
        "plain": ChatTemplate(
            before="{role}: ",
            after="\n\n",
            answer_opening="Assistant:",
            roles={
                "system": "System",
                "developer": "System",
                "user": "User",
                "assistant": "Assistant",
                "tool": "Result",
            },
            stops=("\nUser:", "\nSystem:", "\nResult:"),
            marker_pattern=r"(?m)^(System|User|Assistant|Result):",
            marker_replacement=r" \1:",
        ),
    }
)


def render_transcript(messages: Sequence[Message], template: ChatTemplate) -> str:
    """Render the conversation up to where the model's answer begins."""
    rendered = [_render_message(message, template) for message in messages]
    return "".join(rendered) + template.answer_opening


def _render_message(message: Message, template: ChatTemplate) -> str:
    content = "\n\n".join(filter(None, map(format_part, message.parts)))
    role = template.roles.get(message.role, message.role)
    return (
        template.before.format(role=role)
        + re.sub(template.marker_pattern, template.marker_replacement, content)
        + template.after
    )


def format_part(part: Part) -> str:
    """Format a part as text."""
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f'{{"name": {msgspec.json.encode(part.name).decode()}, "arguments": {part.arguments}}}'
        case ToolResult():
            return part.content
        case Image():
            return "[an image that this model cannot see]"
        case _:
            return ""
