"""Tool results in words: each with its call, the arguments and whether it succeeded."""

from __future__ import annotations

from callwright.model import ToolCall, ToolResult

__all__ = ["format_result", "is_failed_result"]

_MAX_ARGUMENT_CHARACTERS = 300
"""Characters of a call's arguments that are repeated with its result: the call itself is told in full before."""


def is_failed_result(result: ToolResult) -> bool:
    """Whether a call failed. Chat completions cannot say so, and clients begin the text with it (seed S0, 6.8.2)."""
    return result.is_error or result.content.lstrip()[:6].lower() == "error:"


def format_result(result: ToolResult, call: ToolCall | None) -> str:
    """A result with its call, the arguments and the status."""
    arguments = call.arguments if call else ""
    if len(arguments) > _MAX_ARGUMENT_CHARACTERS:
        arguments = f"{arguments[:_MAX_ARGUMENT_CHARACTERS]}…"
    name = result.name or (call.name if call else "")
    return f"Call: {name}({arguments})\nResult [{'error' if is_failed_result(result) else 'success'}]: {result.content}"
