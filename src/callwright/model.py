"""Values: the parts of a conversation. They are frozen and have no behaviour.

Tool arguments are JSON text, exactly as they go over the wire, never a parsed object: parsing and printing again
would change numbers, key order and escapes. `opaque` carries data that a backend expects to get back (signatures,
reasoning ids); only the wires read it.
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
    """Text of a message."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """The model's reasoning before its answer."""

    text: str
    opaque: dict[str, Any] | None = None


class Image(msgspec.Struct, frozen=True, tag="image"):
    """An image, by URL or as a data URL."""

    url: str
    media_type: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """One call of a tool. `arguments` is JSON text; `complete` is false if the output ended inside the call."""

    id: str
    name: str
    arguments: str
    complete: bool = True
    opaque: dict[str, Any] | None = None


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    """The result of one call, matched to it by `call_id`."""

    call_id: str
    content: str
    name: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()


Part = Text | Reasoning | Image | ToolCall | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation, with its parts in order."""

    role: Role
    parts: tuple[Part, ...]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that a request offers; `parameters` is a JSON schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one turn."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


class Constraint(msgspec.Struct, frozen=True):
    """The form that an answer must have, for constrained decoding. A form that cannot be expressed is left empty."""

    schema: dict[str, Any] | None = None
    """A JSON schema for the complete answer."""
    grammar: str = ""
    """The same form as a GBNF grammar of llama.cpp; it may allow text as well."""


class Request(msgspec.Struct, frozen=True):
    """A request for one turn of a model, independent of the wire that it came from."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | str = "auto"
    parallel_tool_calls: bool = True
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    constraint: Constraint | None = None


class Repair(msgspec.Struct, frozen=True):
    """A repair that was made. `kind` is from a closed list; `detail` is for people."""

    kind: str
    detail: str = ""
