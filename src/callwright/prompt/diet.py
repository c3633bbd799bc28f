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
from callwright.prompt.names import aliases, renamed
from callwright.prompt.settings import DietSettings
from callwright.prompt.slim import slimmed

__all__ = ["Dieted", "dieted"]

_WORD = re.compile(r"[^\W_]{3,}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Dieted(NamedTuple):
    """A request on its diet."""

    request: Request
    names: Mapping[str, str]
    """The client's name of each tool that has an alias."""
    repairs: tuple[Repair, ...]


def dieted(request: Request, settings: DietSettings) -> Dieted:
    """The request with its tools as the settings want them. `RequestError` when a call is required of none."""
    notes: list[Repair] = []
    kept: Sequence[ToolSpec] = request.tools
    if settings.allow or settings.deny or settings.max_tools:
        offered = [tool for tool in request.tools if _is_offered(tool.name, settings)]
        _check_choice(request, offered)
        kept = _capped(request, offered, settings.max_tools)
    if len(kept) < len(request.tools):
        left_out = ", ".join(tool.name for tool in request.tools if tool not in kept)
        notes.append(Repair("left_out_tools", left_out))
    choice = request.tool_choice if kept else "auto"
    told = msgspec.structs.replace(request, tools=tuple(slimmed(tool, settings) for tool in kept), tool_choice=choice)
    names = aliases(told) if settings.alias_names else {}
    notes += [Repair("aliased_name", f"{name} is told as {alias}") for name, alias in names.items()]
    return Dieted(renamed(told, names), {alias: name for name, alias in names.items()}, tuple(notes))


def _is_offered(name: str, settings: DietSettings) -> bool:
    denied = any(fnmatchcase(name, pattern) for pattern in settings.deny)
    return not denied and (not settings.allow or any(fnmatchcase(name, pattern) for pattern in settings.allow))


def _check_choice(request: Request, offered: Sequence[ToolSpec]) -> None:
    """A call that the client requires must be possible."""
    choice = request.tool_choice
    if choice in ("auto", "none") or not request.tools:
        return
    if not any(choice in ("required", tool.name) for tool in offered):
        which = "a call" if choice == "required" else f"a call of {choice!r}"
        raise RequestError(
            f"tool_choice requires {which}, and the settings of this model (allow and deny in its diet) offer no such "
            "tool; ask for another, or change the settings",
            param="tool_choice",
            code="tool_not_offered",
        )


def _capped(request: Request, tools: Sequence[ToolSpec], most: int) -> Sequence[ToolSpec]:
    """The most relevant tools, in the client's order."""
    if not most or len(tools) <= most:
        return tools
    parts = [part for message in request.messages for part in message.parts]
    needed = {request.tool_choice, *(part.name for part in parts if isinstance(part, ToolCall))}
    asked = _last_words(request)
    words = _words(asked)

    def relevance(tool: ToolSpec) -> tuple[bool, int]:
        return tool.name in asked, len(words & _words(f"{tool.name} {tool.description}"))

    kept = {tool.name for tool in tools if tool.name in needed}
    others = sorted((tool for tool in tools if tool.name not in kept), key=relevance, reverse=True)
    kept |= {tool.name for tool in others[: max(most - len(kept), 0)]}
    return [tool for tool in tools if tool.name in kept]


def _last_words(request: Request) -> str:
    """What the user said last; a message of pictures says nothing."""
    for message in reversed(request.messages):
        if message.role == "user" and (said := " ".join(part.text for part in message.parts if isinstance(part, Text))):
            return said
    return ""


def _words(text: str) -> frozenset[str]:
    """Words of three letters or more, those inside `read_file` and `readFile` too."""
    return frozenset(word.lower() for word in _WORD.findall(_HUMP.sub(" ", text)))
