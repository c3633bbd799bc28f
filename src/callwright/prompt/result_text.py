"""Tool results as text: each with its call, the arguments and its status."""

from __future__ import annotations

from callwright.model import ToolCall, ToolResult

__all__ = ["format_result", "is_failed_result"]

_MAX_ARGUMENT_CHARACTERS = 300
"""How many characters of a call's arguments are repeated with its result: the complete call is in the prompt before."""


def is_failed_result(result: ToolResult) -> bool:
    """Whether a call failed. Chat completions has no field for it, so clients begin the text with it (seed S0,
    6.8.2)."""
    return result.is_error or result.content.lstrip()[:6].lower() == "error:"


def format_result(result: ToolResult, call: ToolCall | None) -> str:
    """Format a result with its call, the arguments and the status."""
    arguments = call.arguments if call else ""
    if len(arguments) > _MAX_ARGUMENT_CHARACTERS:
        arguments = f"{arguments[:_MAX_ARGUMENT_CHARACTERS]}…"
    name = result.name or (call.name if call else "")
    return f"Call: {name}({arguments})\nResult [{'error' if is_failed_result(result) else 'success'}]: {result.content}"
