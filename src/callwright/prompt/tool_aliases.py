"""Tool aliases: names that every service accepts, and the way back to the client's names.

OpenAI accepts letters, digits, `_` and `-`, at most 64 of them, and one tool with another name disables all tools:
opencode #38808, vscode #243602, cline PR #7516. An alias depends on the name alone, so that it is the same in every
turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import msgspec

from callwright.model import Message, Part, Request, ToolCall, ToolResult

__all__ = ["build_aliases", "make_alias", "rename_tools"]

_match_legal_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
_ILLEGAL_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]+")
_ALIAS_PREFIX_LENGTH = 55
"""How many characters of the name an alias keeps; nine are for the checksum that makes it unique."""


def build_aliases(request: Request) -> dict[str, str]:
    """Return an alias for each name in a request that services refuse, in its tools and in its history."""
    return {name: make_alias(name) for name in _iter_names(request) if not _match_legal_name(name)}


def _iter_names(request: Request) -> Iterator[str]:
    yield from (tool.name for tool in request.tools)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall | ToolResult) and part.name:
                yield part.name


def make_alias(name: str) -> str:
    """Return a unique name that every service accepts."""
    total = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_ILLEGAL_CHARACTERS.sub('_', name)[:_ALIAS_PREFIX_LENGTH]}_{total}"


def rename_tools(request: Request, names: Mapping[str, str]) -> Request:
    """Return the request with every tool, call, result and choice under its other name."""
    if not names:
        return request
    return msgspec.structs.replace(
        request,
        tools=tuple(msgspec.structs.replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools),
        messages=tuple(
            Message(message.role, tuple(_rename_part(part, names) for part in message.parts))
            for message in request.messages
        ),
        tool_choice=names.get(request.tool_choice, request.tool_choice),
    )


def _rename_part(part: Part, names: Mapping[str, str]) -> Part:
    if isinstance(part, ToolCall | ToolResult) and part.name in names:
        return msgspec.structs.replace(part, name=names[part.name])
    return part
