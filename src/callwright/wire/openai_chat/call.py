"""A chat completions request, written for any server that speaks the wire: OpenAI, llama.cpp, vLLM, LM Studio, Groq …

Only what was asked for is sent: servers refuse fields that they do not know more often than they miss a default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.framing import encode_json

__all__ = ["encode_request"]

# Servers hand roles to the model's chat template, and few templates know `developer`; OpenAI takes both for the same.
_ROLE_NAMES = {"developer": "system"}


def encode_request(request: Request, extra: dict[str, Any]) -> bytes:
    """The request, streaming. What the request says comes before what the client's `extra` says."""
    options = dict(request.options)
    if "max_completion_tokens" in extra and "max_tokens" in options:
        # The client used the newer name, and OpenAI's reasoning models take no other.
        options["max_completion_tokens"] = options.pop("max_tokens")
    body: dict[str, Any] = {
        **extra,
        **options,
        "model": request.model,
        "messages": [written for message in request.messages for written in _iter_messages(message)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_encode_tool(tool) for tool in request.tools] + extra.get("tools", [])
        if request.tool_choice != "auto":
            body["tool_choice"] = _encode_tool_choice(request.tool_choice)
        if not request.parallel_tool_calls:
            body["parallel_tool_calls"] = False
    return encode_json(body)


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    # The schema that Copilot Chat 0.66 sends for a tool without parameters.
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def _encode_tool_choice(choice: str) -> Any:
    return choice if choice in ("none", "required") else {"type": "function", "function": {"name": choice}}


def _iter_messages(message: Message) -> Iterator[dict[str, Any]]:
    """One message, and before it one for each tool result that it holds."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        written = {"role": "tool", "tool_call_id": result.call_id, "content": _encode_result_content(result)}
        yield written | ({"name": result.name} if result.name else {})
    if len(results) < len(message.parts) or not results:
        yield _encode_message(message)


def _encode_message(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": _ROLE_NAMES.get(message.role, message.role), "content": _encode_content(message)}
    calls = list(_iter_calls(message))
    if calls:
        written["tool_calls"] = calls
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    # DeepSeek answers 400 when a turn with calls comes back without its reasoning (oai-compatible-copilot #215).
    if (text := "".join(part.text for part in thoughts)) and (calls or any(part.opaque for part in thoughts)):
        written["reasoning_content"] = text
    return written


def _encode_content(message: Message) -> Any:
    """A string where there is only text: some servers and many chat templates know nothing else."""
    parts = [part for part in message.parts if isinstance(part, Text | Image)]
    if any(isinstance(part, Image) for part in parts):
        return [_encode_part(part) for part in parts]
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _encode_result_content(result: ToolResult) -> Any:
    if not result.images:
        return result.content
    return [_encode_part(Text(result.content)), *map(_encode_part, result.images)]


def _encode_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.url}}


def _iter_calls(message: Message) -> Iterator[dict[str, Any]]:
    """Its calls, each with the signature on it that stood before it: see `read`."""
    signed: dict[str, Any] = {}
    for part in message.parts:
        if isinstance(part, Reasoning) and part.opaque and "extra_content" in part.opaque:
            signed = part.opaque
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            yield {"id": part.id, "type": "function", "function": function, **signed}
            signed = {}
