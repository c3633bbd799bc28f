"""The strict check of Ollama's chat: one JSON object per line, arguments as objects, `done` only on the last line."""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.cli.wire_checks.base import (
    CheckedAnswer,
    SmokeRequest,
    WireCheck,
    build_checked_answer,
    decode_json,
    require,
    require_field,
    require_token_counts,
    require_value,
)
from callwright.model import ToolCall

__all__ = ["OLLAMA"]


def _build_body(trial: SmokeRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"model": trial.model, "stream": trial.stream}
    body["messages"] = [{"role": "user", "content": trial.prompt}]
    if trial.tool:
        spec = {"name": trial.tool.name, "description": trial.tool.description, "parameters": trial.tool.parameters}
        body["tools"] = [{"type": "function", "function": spec}]
    if trial.call:
        function = {"name": trial.call.name, "arguments": decode_json(trial.call.arguments, "arguments")}
        body["messages"] += [
            {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
            {"role": "tool", "tool_name": trial.call.name, "content": trial.result},
        ]
    return body


def _read_response(body: bytes) -> CheckedAnswer:
    return _read_lines([body])


def _read_stream(body: bytes) -> CheckedAnswer:
    require(body.endswith(b"\n"), "the last line has no line break")
    return _read_lines(body[:-1].split(b"\n"))


def _read_lines(lines: list[bytes]) -> CheckedAnswer:
    text, reason = "", ""
    calls: list[ToolCall] = []
    for number, line in enumerate(lines, 1):
        where = f"line {number} of {len(lines)}"
        value = decode_json(line, where)
        require_value(value, "done", number == len(lines), where)
        for key in ("model", "created_at"):
            require_field(value, key, str, where)
        message = require_field(value, "message", dict, where)
        require_value(message, "role", "assistant", where)
        text += require_field(message, "content", str, where)
        for call in message.get("tool_calls", []):
            calls.append(_read_call(call, len(calls), where))
        reason = _read_done_reason(value) if value["done"] else ""
    return build_checked_answer(text, calls, "tool_calls" if calls else reason)


def _read_done_reason(value: Any) -> str:
    require_token_counts(value, "prompt_eval_count", "eval_count", "total_duration", where="the last line")
    reason = require_field(value, "done_reason", str, "the last line")
    require(reason in ("stop", "length"), f"done_reason is {reason!r}")
    return str(reason)


def _read_call(call: Any, index: int, where: str) -> ToolCall:
    """Read a call. Calls of Ollama need no id; their index is used instead."""
    function = require_field(call, "function", dict, where)
    require(require_field(function, "name", str, where), f"{where}: a call has an empty name")
    arguments = require_field(function, "arguments", dict, f"{where}: a call")
    return ToolCall(str(call.get("id", index)), function["name"], msgspec.json.encode(arguments).decode())


def _read_error(body: bytes) -> str:
    return str(require_field(decode_json(body, "the error"), "error", str, "the error"))


OLLAMA = WireCheck(
    name="ollama",
    path="/api/chat",
    stream_type="application/x-ndjson",
    build_body=_build_body,
    read_response=_read_response,
    read_stream=_read_stream,
    read_error=_read_error,
)
