"""Values: what a conversation is made of. Frozen, without behaviour.

Tool arguments are JSON text, exactly as they go over the wire, never a parsed object: parsing and
printing again would change numbers, key order and escapes. `opaque` carries what a backend wants
echoed (signatures, reasoning ids); nobody here looks into it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "Constraint",
    "Image",
    "Message",
    "Part",
    "Reasoning",
    "Repair",
    "Request",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Usage",
]

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Words for the reader."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """What the model thought before it spoke."""

    text: str
    opaque: dict[str, Any] | None = None


class Image(msgspec.Struct, frozen=True, tag="image"):
    """A picture, by address or as a data URL."""

    url: str
    media_type: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """One call of a tool; `arguments` is JSON text. `complete` is false when the output was cut inside it."""

    id: str
    name: str
    arguments: str
    complete: bool = True
    opaque: dict[str, Any] | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """What came back from one call, matched to it by `call_id`."""

    call_id: str
    content: str
    name: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()


Part = Text | Reasoning | Image | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation, its parts in order."""

    role: Role
    parts: tuple[Part, ...]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that a request offers; `parameters` is a JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one turn."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


class Constraint(msgspec.Struct, frozen=True):
    """What an answer is held to while it is written, in the forms that servers take; empty where one cannot say it."""

    schema: dict[str, Any] | None = None
    """A JSON schema for the whole answer."""
    grammar: str = ""
    """The same and more as llama.cpp's GBNF."""


class Request(msgspec.Struct, frozen=True):
    """One turn asked of a model, whatever wire it came in on."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | str = "auto"
    parallel_tool_calls: bool = True
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    constraint: Constraint | None = None


class Repair(msgspec.Struct, frozen=True):
    """Something that was mended on the way: `kind` from a closed list of words, `detail` for a person."""

    kind: str
    detail: str = ""
