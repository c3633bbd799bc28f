"""Names: tools under names that every service takes, and their own back.

OpenAI takes letters, digits, `_` and `-`, at most 64 of them, and one tool with another name kills all tools: opencode
#38808, vscode #243602, cline PR #7516. An alias depends on the name alone, so that it is the same in every turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import msgspec

from callwright.model import Message, Part, Request, ToolCall, ToolResult

__all__ = ["alias", "aliases", "renamed"]

_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_KEPT = 55
"""Characters of the name that an alias keeps; nine are for the sum that tells it from others."""


def aliases(request: Request) -> dict[str, str]:
    """An alias for each name in a request that services refuse, in its tools and in its history."""
    return {name: alias(name) for name in _names(request) if not _LEGAL(name)}


def _names(request: Request) -> Iterator[str]:
    yield from (tool.name for tool in request.tools)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall | ToolResult) and part.name:
                yield part.name


def alias(name: str) -> str:
    """A name that every service takes, and that no other name has."""
    total = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_ILLEGAL.sub('_', name)[:_KEPT]}_{total}"


def renamed(request: Request, names: Mapping[str, str]) -> Request:
    """The request with every tool, call, result and choice under its other name."""
    if not names:
        return request
    return msgspec.structs.replace(
        request,
        tools=tuple(msgspec.structs.replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools),
        messages=tuple(
            Message(message.role, tuple(_renamed(part, names) for part in message.parts))
            for message in request.messages
        ),
        tool_choice=names.get(request.tool_choice, request.tool_choice),
    )


def _renamed(part: Part, names: Mapping[str, str]) -> Part:
    if isinstance(part, ToolCall | ToolResult) and part.name in names:
        return msgspec.structs.replace(part, name=names[part.name])
    return part
