"""Diet: the tools of a request as one model takes them: fewer, briefer, under names that its service allows.

    offered ─ allow, deny ─▶ cap ─▶ slim ─▶ alias ─▶ told

Which tools stay under a cap depends on the conversation alone: always the one that must be called and those that were
called, be they more than the cap; then those that the user's last message names, then those that share most words with
it. In a loop of calls that message stays the same and the called ones stay in, so that the taught tools, and a prompt
cache with them, stay too.
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
    """A request on its diet."""

    request: Request
    client_names: Mapping[str, str]
    """The client's name of each tool that has an alias."""
    repairs: tuple[Repair, ...]


def limit_tools(request: Request, settings: ToolLimitSettings) -> LimitedRequest:
    """The request with its tools as the settings want them. `RequestError` when a call is required of none."""
    notes: list[Repair] = []
    kept: Sequence[ToolSpec] = request.tools
    if settings.allow or settings.deny or settings.max_tools:
        offered = [tool for tool in request.tools if _is_offered(tool.name, settings)]
        _check_tool_choice(request, offered)
        kept = _cap_tools(request, offered, settings.max_tools)
    if len(kept) < len(request.tools):
        left_out = ", ".join(tool.name for tool in request.tools if tool not in kept)
        notes.append(Repair("left_out_tools", left_out))
    choice = request.tool_choice if kept else "auto"
    told = msgspec.structs.replace(request, tools=tuple(trim_tool(tool, settings) for tool in kept), tool_choice=choice)
    names = build_aliases(told) if settings.alias_names else {}
    notes += [Repair("aliased_name", f"{name} is told as {alias}") for name, alias in names.items()]
    return LimitedRequest(rename_tools(told, names), {alias: name for name, alias in names.items()}, tuple(notes))


def _is_offered(name: str, settings: ToolLimitSettings) -> bool:
    denied = any(fnmatchcase(name, pattern) for pattern in settings.deny)
    return not denied and (not settings.allow or any(fnmatchcase(name, pattern) for pattern in settings.allow))


def _check_tool_choice(request: Request, offered: Sequence[ToolSpec]) -> None:
    """A call that the client requires must be possible."""
    choice = request.tool_choice
    if choice in ("auto", "none") or not request.tools:
        return
    if not any(choice in ("required", tool.name) for tool in offered):
        which = "a call" if choice == "required" else f"a call of {choice!r}"
        raise RequestError(
            f"tool_choice requires {which}, and the settings of this model (allow and deny in its tool_limits) offer "
            "no such tool; ask for another, or change the settings",
            param="tool_choice",
            code="tool_not_offered",
        )


def _cap_tools(request: Request, tools: Sequence[ToolSpec], most: int) -> Sequence[ToolSpec]:
    """The most relevant tools, in the client's order."""
    if not most or len(tools) <= most:
        return tools
    parts = [part for message in request.messages for part in message.parts]
    needed = {request.tool_choice, *(part.name for part in parts if isinstance(part, ToolCall))}
    asked = _get_last_user_text(request)
    words = _split_words(asked)

    def relevance(tool: ToolSpec) -> tuple[bool, int]:
        return tool.name in asked, len(words & _split_words(f"{tool.name} {tool.description}"))

    kept = {tool.name for tool in tools if tool.name in needed}
    others = sorted((tool for tool in tools if tool.name not in kept), key=relevance, reverse=True)
    kept |= {tool.name for tool in others[: max(most - len(kept), 0)]}
    return [tool for tool in tools if tool.name in kept]


def _get_last_user_text(request: Request) -> str:
    """What the user said last; a message of pictures says nothing."""
    for message in reversed(request.messages):
        if message.role == "user" and (said := " ".join(part.text for part in message.parts if isinstance(part, Text))):
            return said
    return ""


def _split_words(text: str) -> frozenset[str]:
    """Words of three letters or more, those inside `read_file` and `readFile` too."""
    return frozenset(word.lower() for word in _WORD_PATTERN.findall(_CAMEL_CASE_BOUNDARY.sub(" ", text)))
