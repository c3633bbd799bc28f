"""Encode a complete chat completions answer, and what it shares with the stream: finish reasons and usage.

A truncated call is omitted, and the choice ends with `length`: a partial call must not run. A stream has already sent
its beginning, and ends with `length` as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from callwright.events import FinishReason
from callwright.model import ToolCall, Usage
from callwright.turn import Collected
from callwright.wire.base import ClientRequest, ResponseHead, StreamStyle
from callwright.wire.framing import encode_json

__all__ = ["build_usage", "encode_response", "map_finish_reason", "sum_usage"]


def encode_response(
    client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
) -> bytes:
    """Encode the answer, with one choice for each turn."""
    return encode_json(
        {
            "id": f"chatcmpl-{head.id}",
            "object": "chat.completion",
            "created": head.created,
            "model": head.model,
            "choices": [_build_choice(index, client_request, style, turn) for index, turn in enumerate(turns)],
            "usage": build_usage(sum_usage(turn.usage for turn in turns)),
        }
    )


def _build_choice(index: int, client_request: ClientRequest, style: StreamStyle, turn: Collected) -> dict[str, Any]:
    calls = [call for call in turn.tool_calls if call.complete]
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if calls and not turn.text and style.null_content:
        message["content"] = None
    if turn.reasoning:
        message |= dict.fromkeys(style.reasoning_fields, turn.reasoning)
    if calls and client_request.functions:
        message["function_call"] = _build_function(calls[0])
    elif calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": _build_function(call)} for call in calls
        ]
    reason = map_finish_reason(
        turn.finish_reason or "error",
        has_calls=bool(calls),
        has_cut_calls=len(calls) < len(turn.tool_calls),
        legacy_functions=client_request.functions,
    )
    return {"index": index, "message": message, "finish_reason": reason}


def _build_function(call: ToolCall) -> dict[str, str]:
    return {"name": call.name, "arguments": call.arguments}


def map_finish_reason(reason: FinishReason, *, has_calls: bool, has_cut_calls: bool, legacy_functions: bool) -> str:
    """Return the finish reason that clients act on: they run calls only on `tool_calls` and `stop` (W-7)."""
    if reason not in ("stop", "tool_calls"):
        return reason
    if has_calls:
        return "function_call" if legacy_functions else "tool_calls"
    return "length" if has_cut_calls else "stop"


def sum_usage(usages: Iterable[Usage | None]) -> Usage:
    """Sum the tokens of all choices; the prompt counts once."""
    known = [usage for usage in usages if usage is not None] or [Usage()]
    return Usage(
        prompt_tokens=max(usage.prompt_tokens for usage in known),
        completion_tokens=sum(usage.completion_tokens for usage in known),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in known),
        cached_tokens=max(usage.cached_tokens for usage in known),
    )


def build_usage(usage: Usage) -> dict[str, Any]:
    """Build the usage with all three numbers: Copilot Chat 0.66 crashes if one is missing."""
    counted: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
    if usage.cached_tokens:
        counted["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.reasoning_tokens:
        counted["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return counted
