"""Ollama's chat, strictly: a JSON object per line, arguments as objects, and `done` on the last line only."""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.cli.shapes.base import Seen, Shape, Trial, counts, decoded, field, need, same, seen
from callwright.model import ToolCall

__all__ = ["OLLAMA"]


def _body(trial: Trial) -> dict[str, Any]:
    body: dict[str, Any] = {"model": trial.model, "stream": trial.stream}
    body["messages"] = [{"role": "user", "content": trial.prompt}]
    if trial.tool:
        spec = {"name": trial.tool.name, "description": trial.tool.description, "parameters": trial.tool.parameters}
        body["tools"] = [{"type": "function", "function": spec}]
    if trial.call:
        function = {"name": trial.call.name, "arguments": decoded(trial.call.arguments, "arguments")}
        body["messages"] += [
            {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
            {"role": "tool", "tool_name": trial.call.name, "content": trial.result},
        ]
    return body


def _whole(body: bytes) -> Seen:
    return _read([body])


def _streamed(body: bytes) -> Seen:
    need(body.endswith(b"\n"), "the last line is not ended")
    return _read(body[:-1].split(b"\n"))


def _read(lines: list[bytes]) -> Seen:
    text, reason = "", ""
    calls: list[ToolCall] = []
    for number, line in enumerate(lines, 1):
        where = f"line {number} of {len(lines)}"
        value = decoded(line, where)
        same(value, "done", number == len(lines), where)
        for key in ("model", "created_at"):
            field(value, key, str, where)
        message = field(value, "message", dict, where)
        same(message, "role", "assistant", where)
        text += field(message, "content", str, where)
        for call in message.get("tool_calls", []):
            calls.append(_call(call, len(calls), where))
        reason = _reason(value) if value["done"] else ""
    return seen(text, calls, "tool_calls" if calls else reason)


def _reason(value: Any) -> str:
    counts(value, "prompt_eval_count", "eval_count", "total_duration", where="the last line")
    reason = field(value, "done_reason", str, "the last line")
    need(reason in ("stop", "length"), f"done_reason is {reason!r}")
    return str(reason)


def _call(call: Any, index: int, where: str) -> ToolCall:
    """Ollama's calls need no id; the place in the turn stands for one."""
    function = field(call, "function", dict, where)
    need(field(function, "name", str, where), f"{where}: a call has an empty name")
    arguments = field(function, "arguments", dict, f"{where}: a call")
    return ToolCall(str(call.get("id", index)), function["name"], msgspec.json.encode(arguments).decode())


def _refusal(body: bytes) -> str:
    return str(field(decoded(body, "the error"), "error", str, "the error"))


OLLAMA = Shape(
    name="ollama",
    path="/api/chat",
    stream_type="application/x-ndjson",
    body=_body,
    whole=_whole,
    streamed=_streamed,
    refusal=_refusal,
)
