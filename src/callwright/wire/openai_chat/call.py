"""Encode a chat completions request for any server with this API: OpenAI, llama.cpp, vLLM, LM Studio, Groq …

Only fields that the client set are sent: servers refuse unknown fields more often than they miss a default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callwright.errors import BackendError
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import WireReader
from callwright.wire.framing import encode_json
from callwright.wire.openai_chat.read import OpenAIChatReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["OpenAIChatClientCodec"]

# Servers pass roles to the model's chat template, and few templates know `developer`; OpenAI treats both the same.
_ROLE_NAMES = {"developer": "system"}


class OpenAIChatClientCodec:
    """The calling half; the backend's address ends in `/v1`."""

    name = "openai_chat"

    def get_path(self, request: Request) -> str:
        return "/chat/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        return _encode_request(request, extra)

    def create_reader(self) -> WireReader:
        return OpenAIChatReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        return parse_backend_error(status, body)


def _encode_request(request: Request, extra: dict[str, Any]) -> bytes:
    """Encode a streaming request. Fields of the request take precedence over those in `extra`."""
    options = dict(request.options)
    if "max_completion_tokens" in extra and "max_tokens" in options:
        # The client used the newer name, and OpenAI's reasoning models accept no other.
        options["max_completion_tokens"] = options.pop("max_tokens")
    body: dict[str, Any] = {
        **extra,
        **options,
        "model": request.model,
        "messages": [encoded for message in request.messages for encoded in _iter_messages(message)],
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
    """Yield one message, and before it one for each tool result in it."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        encoded = {"role": "tool", "tool_call_id": result.call_id, "content": _encode_result_content(result)}
        yield encoded | ({"name": result.name} if result.name else {})
    if len(results) < len(message.parts) or not results:
        yield _encode_message(message)


def _encode_message(message: Message) -> dict[str, Any]:
    encoded: dict[str, Any] = {"role": _ROLE_NAMES.get(message.role, message.role), "content": _encode_content(message)}
    calls = list(_iter_calls(message))
    if calls:
        encoded["tool_calls"] = calls
    thoughts = [part for part in message.parts if isinstance(part, Reasoning)]
    # DeepSeek answers 400 if a turn with calls is sent back without its reasoning (oai-compatible-copilot #215).
    if (text := "".join(part.text for part in thoughts)) and (calls or any(part.opaque for part in thoughts)):
        encoded["reasoning_content"] = text
    return encoded


def _encode_content(message: Message) -> Any:
    """Encode content: a string if there is only text, because some servers and many chat templates accept nothing
    else."""
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
    """Yield the calls of a message, each with the signature that came before it: see `read`."""
    signed: dict[str, Any] = {}
    for part in message.parts:
        if isinstance(part, Reasoning) and part.opaque and "extra_content" in part.opaque:
            signed = part.opaque
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            yield {"id": part.id, "type": "function", "function": function, **signed}
            signed = {}
