"""Builds the request to Codex. Pure.

Codex puts `baseInstructions` and `developerInstructions` before the history, both as developer messages, and silently
drops system messages inside it (measured with 0.166.0). So the leading system messages become the former, the developer
messages after them the latter, and all later ones developer messages in their position. The order is preserved.
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
"""Tools that Codex silently ignores, since it has such tools itself …"""
_REFUSED_PREFIX = "mcp__"
"""… and the prefix of those that it refuses (46 other names were tried with 0.166.0)."""
_MAX_NAME_LENGTH = 64
_SUPPORTED_OPTIONS = frozenset({"reasoning_effort", "response_format"})


class CodexRequest(NamedTuple):
    """The parameters of three requests: start the thread, inject items into it, start the turn."""

    thread: dict[str, Any]
    items: list[dict[str, Any]]
    turn: dict[str, Any]


def build_codex_request(request: Request, folder: str) -> CodexRequest:
    """Build the request for a thread in that folder. Raises `BackendError` for options that Codex does not support."""
    system = _take_leading(request.messages, "system")
    developer = _take_leading(request.messages[len(system) :], "developer")
    thread = {
        "model": request.model,
        "cwd": folder,
        "ephemeral": True,
        "environments": [],
        "approvalPolicy": "never",
        "sandbox": "read-only",
        # Must be set, even to an empty text: Codex uses 17,000 characters of its own otherwise.
        "baseInstructions": _join_text(system),
        "developerInstructions": _join_text(developer) or None,
        "dynamicTools": [_build_tool(tool) for tool in _select_tools(request)],
        # The only way to see the end of a response while its calls are open, and the arguments as the model wrote them.
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
    """Choose another name for each tool whose name Codex ignores or refuses."""
    names = {tool.name for tool in request.tools}
    aliases = {name: f"client_{name}" for name in names if name in _IGNORED_TOOLS or name.startswith(_REFUSED_PREFIX)}
    return {
        name: make_alias(alias) if alias in names or len(alias) > _MAX_NAME_LENGTH else alias
        for name, alias in aliases.items()
    }


def describe_unsent_options(request: Request) -> str:
    """List the options that Codex does not support, as text."""
    return ", ".join(sorted(request.options.keys() - _SUPPORTED_OPTIONS))


def _select_tools(request: Request) -> tuple[ToolSpec, ...]:
    """Select the tools to offer. Codex always leaves the choice to the model, so `tool_choice` limits the tools."""
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
        message = "the backend supports only JSON schemas: use a response_format of the type json_schema"
        raise BackendError(message, kind="refused", status=400)
    return turn


def _take_leading(messages: tuple[Message, ...], role: Role) -> tuple[Message, ...]:
    return tuple(takewhile(lambda message: message.role == role, messages))


def _join_text(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(part.text for message in messages for part in message.parts if isinstance(part, Text))


def _as_visible_item(item: dict[str, Any]) -> dict[str, Any]:
    return item | {"role": "developer"} if item.get("role") == "system" else item
