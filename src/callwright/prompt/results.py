"""Tool results in words: each with its call, the arguments and whether it succeeded."""

from __future__ import annotations

from callwright.model import ToolCall, ToolResult

__all__ = ["failed", "shown"]

_ARGUMENTS_SHOWN = 300
"""Characters of a call's arguments that are repeated with its result: the call itself is told in full before."""


def failed(result: ToolResult) -> bool:
    """Whether a call failed. Chat completions cannot say so, and clients begin the text with it (seed S0, 6.8.2)."""
    return result.is_error or result.content.lstrip()[:6].lower() == "error:"


def shown(result: ToolResult, call: ToolCall | None) -> str:
    """A result with its call, the arguments and the status."""
    arguments = call.arguments if call else ""
    if len(arguments) > _ARGUMENTS_SHOWN:
        arguments = f"{arguments[:_ARGUMENTS_SHOWN]}…"
    name = result.name or (call.name if call else "")
    return f"Call: {name}({arguments})\nResult [{'error' if failed(result) else 'success'}]: {result.content}"
