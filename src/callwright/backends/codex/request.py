"""Told: a request as Codex takes it. Pure.

Codex puts `baseInstructions` and `developerInstructions` before the history, both as developer messages, and drops
system messages inside it without a word (measured with 0.166.0). So the first system messages become the one, the
developer messages after them the other, and all further ones developer messages in their place: the order is kept.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, NamedTuple

from callwright.errors import BackendError
from callwright.model import Message, Request, Role, Text, ToolSpec
from callwright.prompt.tool_aliases import make_alias
from callwright.wire.openai_responses import encode_message_items

__all__ = ["CodexRequest", "alias_reserved_tools", "build_codex_request", "describe_unsent_options"]

_IGNORED_TOOLS = ("exec_command", "shell_command")
"""Tools that Codex leaves out without a word, since it has such tools itself …"""
_REFUSED_PREFIX = "mcp__"
"""… and those that it refuses by their first letters (46 other names were tried with 0.166.0)."""
_MAX_NAME_LENGTH = 64
_SUPPORTED_OPTIONS = frozenset({"reasoning_effort", "response_format"})


class CodexRequest(NamedTuple):
    """The parameters of three requests: of the thread, what is injected into it, and of the turn."""

    thread: dict[str, Any]
    items: list[dict[str, Any]]
    turn: dict[str, Any]


def build_codex_request(request: Request, folder: str) -> CodexRequest:
    """The request, for a thread that works in that folder. Raises `BackendError` for what Codex cannot be asked."""
    system = _take_leading(request.messages, "system")
    developer = _take_leading(request.messages[len(system) :], "developer")
    thread = {
        "model": request.model,
        "cwd": folder,
        "ephemeral": True,
        "environments": [],
        "approvalPolicy": "never",
        "sandbox": "read-only",
        # Empty counts: without any Codex would put its own 17,000 characters there.
        "baseInstructions": _join_text(system),
        "developerInstructions": _join_text(developer) or None,
        "dynamicTools": [_build_tool(tool) for tool in _select_tools(request)],
        # The only way to see when a response is over while its calls wait, and arguments as the model wrote them.
        "experimentalRawEvents": True,
        "config": {"thread_unload_delay_secs": 0},
    }
    items = [
        _as_visible_item(item)
        for message in request.messages[len(system) + len(developer) :]
        for item in encode_message_items(message)
    ]
    return CodexRequest(thread, items, _build_turn(request.options))


def alias_reserved_tools(request: Request) -> dict[str, str]:
    """Another name for each tool whose own name Codex drops or refuses."""
    taken = {tool.name for tool in request.tools}
    wishes = {name: f"client_{name}" for name in taken if name in _IGNORED_TOOLS or name.startswith(_REFUSED_PREFIX)}
    return {
        name: make_alias(wish) if wish in taken or len(wish) > _MAX_NAME_LENGTH else wish
        for name, wish in wishes.items()
    }


def describe_unsent_options(request: Request) -> str:
    """The options that Codex has no place for, in words."""
    return ", ".join(sorted(request.options.keys() - _SUPPORTED_OPTIONS))


def _select_tools(request: Request) -> tuple[ToolSpec, ...]:
    """Codex always leaves the choice to the model; so a choice is kept by what there is to choose from."""
    if request.tool_choice in ("auto", "required"):
        return request.tools
    return tuple(tool for tool in request.tools if tool.name == request.tool_choice)


def _build_tool(tool: ToolSpec) -> dict[str, Any]:
    schema = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "name": tool.name, "description": tool.description, "inputSchema": schema}


def _build_turn(options: dict[str, Any]) -> dict[str, Any]:
    turn: dict[str, Any] = {}
    if effort := options.get("reasoning_effort"):
        turn["effort"] = effort
    form = options.get("response_format") or {"type": "text"}
    schema = (form.get("json_schema") or {}).get("schema")
    if schema:
        turn["outputSchema"] = schema
    elif form.get("type") != "text":
        message = "the backend holds answers to a JSON schema only: send a response_format of the type json_schema"
        raise BackendError(message, kind="refused", status=400)
    return turn


def _take_leading(messages: tuple[Message, ...], role: Role) -> tuple[Message, ...]:
    return tuple(takewhile(lambda message: message.role == role, messages))


def _join_text(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(part.text for message in messages for part in message.parts if isinstance(part, Text))


def _as_visible_item(item: dict[str, Any]) -> dict[str, Any]:
    return item | {"role": "developer"} if item.get("role") == "system" else item
