"""Transcript: a conversation as one text, for servers that only continue text.

    <|im_start|>user
    Hello<|im_end|>
    <|im_start|>assistant

What a message says can never end it or begin another: markers of the template inside a message are broken up. How
calls and results look is a dialect's business and was written into the messages before; what is left of them here is
shown as plain JSON and plain text. Thinking of earlier turns is left out, as chat templates do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from callwright.model import Image, Message, Part, Role, Text, ToolCall, ToolResult

__all__ = ["TEMPLATES", "Template", "TemplateName", "part_text", "transcript"]

TemplateName = Literal["chatml", "plain"]


class Template(msgspec.Struct, frozen=True):
    """How messages are set apart: what stands before each (with its `{role}`) and after it."""

    before: str
    after: str
    answer: str
    """The opening of the message that the model is to write."""
    roles: dict[Role, str]
    stops: tuple[str, ...]
    """Where the model's message ends: it would go on to write the next one."""
    marker: str
    """A regular expression of what a message may not say …"""
    broken: str
    """… and what it says instead."""


TEMPLATES: Mapping[TemplateName, Template] = MappingProxyType(
    {
        # What Qwen and many others are trained on: github.com/openai/openai-python, chatml.md at v0.28.
        "chatml": Template(
            before="<|im_start|>{role}\n",
            after="<|im_end|>\n",
            answer="<|im_start|>assistant\n",
            roles={"developer": "system"},
            stops=("<|im_end|>", "<|im_start|>"),
            marker=r"<\|(im_(?:start|end))\|>",
            broken=r"<| \1 |>",
        ),
        # For models that know no template: a play with the roles' names.
        "plain": Template(
            before="{role}: ",
            after="\n\n",
            answer="Assistant:",
            roles={
                "system": "System",
                "developer": "System",
                "user": "User",
                "assistant": "Assistant",
                "tool": "Result",
            },
            stops=("\nUser:", "\nSystem:", "\nResult:"),
            marker=r"(?m)^(System|User|Assistant|Result):",
            broken=r" \1:",
        ),
    }
)


def transcript(messages: Sequence[Message], template: Template) -> str:
    """The conversation up to the place where the model's answer begins."""
    written = [_message(message, template) for message in messages]
    return "".join(written) + template.answer


def _message(message: Message, template: Template) -> str:
    content = "\n\n".join(filter(None, map(part_text, message.parts)))
    role = template.roles.get(message.role, message.role)
    return template.before.format(role=role) + re.sub(template.marker, template.broken, content) + template.after


def part_text(part: Part) -> str:
    """What a part says, in words."""
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
