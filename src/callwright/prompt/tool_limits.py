"""Limit the tools of a request to what one model can handle: fewer, shorter, under names that its service accepts.

    client tools ─▶ allow, deny ─▶ max_tools ─▶ trim ─▶ alias ─▶ model

Which tools remain under `max_tools` depends on the conversation alone: always the required tool and those that were
called, even if they are more than the limit; then those that the user's last message names, then those that share most
words with it. In a loop of calls that message stays the same and the called tools remain, so that the tools in the
prompt, and with them a prompt cache, stay the same too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from callwright.errors import RequestError
from callwright.model import Repair, Request, Text, ToolCall, ToolSpec
from callwright.prompt.schema_trim import trim_tool
from callwright.prompt.settings import ToolLimitSettings
from callwright.prompt.tool_aliases import build_aliases, rename_tools

__all__ = ["LimitedRequest", "limit_tools"]

_WORD_PATTERN = re.compile(r"[^\W_]{3,}")
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class LimitedRequest(NamedTuple):
    """A request with limited tools."""

    request: Request
    client_names: Mapping[str, str]
    """The client's name of each tool that has an alias."""
    repairs: tuple[Repair, ...]


def limit_tools(request: Request, settings: ToolLimitSettings) -> LimitedRequest:
    """Apply the settings to the tools of a request. Raise `RequestError` if no tool is left for a required call."""
    notes: list[Repair] = []
    tools: Sequence[ToolSpec] = request.tools
    if settings.allow or settings.deny or settings.max_tools:
        offered = [tool for tool in request.tools if _is_offered(tool.name, settings)]
        _check_tool_choice(request, offered)
        tools = _cap_tools(request, offered, settings.max_tools)
    if len(tools) < len(request.tools):
        kept = {tool.name for tool in tools}  # all settings decide by name
        left_out = ", ".join(tool.name for tool in request.tools if tool.name not in kept)
        notes.append(Repair("left_out_tools", left_out))
    choice = request.tool_choice if tools else "auto"
    limited = msgspec.structs.replace(
        request, tools=tuple(trim_tool(tool, settings) for tool in tools), tool_choice=choice
    )
    names = build_aliases(limited) if settings.alias_names else {}
    notes += [Repair("aliased_name", f"{name} is offered as {alias}") for name, alias in names.items()]
    return LimitedRequest(rename_tools(limited, names), {alias: name for name, alias in names.items()}, tuple(notes))


def _is_offered(name: str, settings: ToolLimitSettings) -> bool:
    denied = any(fnmatchcase(name, pattern) for pattern in settings.deny)
    return not denied and (not settings.allow or any(fnmatchcase(name, pattern) for pattern in settings.allow))


def _check_tool_choice(request: Request, offered: Sequence[ToolSpec]) -> None:
    """Check that a call that the client requires is possible."""
    choice = request.tool_choice
    if choice in ("auto", "none") or not request.tools:
        return
    if not any(choice in ("required", tool.name) for tool in offered):
        call = "a call" if choice == "required" else f"a call of {choice!r}"
        raise RequestError(
            f"tool_choice requires {call}, and the settings of this model (allow and deny in its tool_limits) offer "
            "no such tool; ask for another, or change the settings",
            param="tool_choice",
            code="tool_not_offered",
        )


def _cap_tools(request: Request, tools: Sequence[ToolSpec], max_tools: int) -> Sequence[ToolSpec]:
    """Return the most relevant tools, in the client's order."""
    if not max_tools or len(tools) <= max_tools:
        return tools
    parts = [part for message in request.messages for part in message.parts]
    needed = {request.tool_choice, *(part.name for part in parts if isinstance(part, ToolCall))}
    user_text = _get_last_user_text(request)
    words = _split_words(user_text)

    def relevance(tool: ToolSpec) -> tuple[bool, int]:
        return tool.name in user_text, len(words & _split_words(f"{tool.name} {tool.description}"))

    names = {tool.name for tool in tools if tool.name in needed}
    others = sorted((tool for tool in tools if tool.name not in names), key=relevance, reverse=True)
    names |= {tool.name for tool in others[: max(max_tools - len(names), 0)]}
    return [tool for tool in tools if tool.name in names]


def _get_last_user_text(request: Request) -> str:
    """Return the text of the user's last message with text."""
    for message in reversed(request.messages):
        if message.role == "user" and (text := " ".join(part.text for part in message.parts if isinstance(part, Text))):
            return text
    return ""


def _split_words(text: str) -> frozenset[str]:
    """Return the words of three letters or more, including those inside `read_file` and `readFile`."""
    return frozenset(word.lower() for word in _WORD_PATTERN.findall(_CAMEL_CASE_BOUNDARY.sub(" ", text)))
