"""Ollama's API, client side: the request for a server, and the meaning of its refusals.

Arguments are objects here, images bare base64, and results have their tool's name. There is no tool choice: for `none`,
the request offers no tools.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import BackendError, RequestError
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire.argument_json import to_raw_object
from callwright.wire.base import WireReader
from callwright.wire.ollama.decode import OPTION_NAMES
from callwright.wire.ollama.read import OllamaReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["THINKING_UNSUPPORTED", "TOOLS_UNSUPPORTED", "OllamaClientCodec"]

THINKING_UNSUPPORTED = "does not support thinking"
"""In the message of a `refused` error: the same request without `think` may succeed."""
TOOLS_UNSUPPORTED = "does not support tools"
"""In the message of a `refused` error: the model has no native tools, and they must be described in the prompt."""

_OLLAMA_OPTION_NAMES = {name: own for own, name in OPTION_NAMES.items()}
_TOP_LEVEL_OPTIONS = frozenset({"response_format", "reasoning_effort"})
"""Options that are fields of their own here."""
_THINK_VALUES = {"none": False, "minimal": "low", "xhigh": "high", "max": "high"}


class OllamaClientCodec:
    """The client half of this wire."""

    name = "ollama"

    def get_path(self, request: Request) -> str:
        return "/api/chat"

    def build_headers(self, key: str) -> dict[str, str]:
        """Return the headers. Ollama itself needs no key; a proxy before it, such as Open WebUI, does."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the request. Raise `RequestError` if it needs something that this API does not have."""
        own_fields = dict(extra)
        options = own_fields.pop("options", {}) | {
            _OLLAMA_OPTION_NAMES.get(name, name): value
            for name, value in request.options.items()
            if name not in _TOP_LEVEL_OPTIONS
        }
        body = {
            **own_fields,
            "model": request.model,
            "messages": [entry for message in request.messages for entry in _encode_message(message)],
            "stream": True,
            "options": options,
        }
        if tools := _encode_tools(request, own_fields.get("tools", [])):
            body["tools"] = tools
        effort = request.options.get("reasoning_effort")
        if effort and "think" not in own_fields:
            body["think"] = _THINK_VALUES.get(effort, effort)
        if output_format := _encode_format(request.options.get("response_format") or {}):
            body["format"] = output_format
        return msgspec.json.encode(body)

    def create_reader(self) -> WireReader:
        return OllamaReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Return the error; its message contains `THINKING_UNSUPPORTED` or `TOOLS_UNSUPPORTED` if that is the
        reason."""
        return parse_backend_error(status, body)


def _encode_tools(request: Request, others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if request.tool_choice == "none":
        return []
    own = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **tool.parameters},
            },
        }
        for tool in request.tools
    ]
    return own + others


def _encode_format(response_format: dict[str, Any]) -> Any:
    if response_format.get("type") == "json_schema":
        return response_format.get("json_schema", {}).get("schema", {})
    return "json" if response_format.get("type") == "json_object" else None


def _encode_message(message: Message) -> list[dict[str, Any]]:
    """Encode an entry of `messages`; a message of results has one for each."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if results:
        return [_encode_result(result) for result in results]
    entry: dict[str, Any] = {
        "role": "system" if message.role == "developer" else message.role,
        "content": "\n".join(part.text for part in message.parts if isinstance(part, Text)),
    }
    if thinking := "".join(part.text for part in message.parts if isinstance(part, Reasoning)):
        entry["thinking"] = thinking
    if images := [_get_base64(part) for part in message.parts if isinstance(part, Image)]:
        entry["images"] = images
    if calls := [_encode_call(part) for part in message.parts if isinstance(part, ToolCall)]:
        entry["tool_calls"] = calls
    return [entry]


def _encode_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": to_raw_object(call.arguments)}}


def _encode_result(result: ToolResult) -> dict[str, Any]:
    entry = {"role": "tool", "content": result.content, "tool_name": result.name, "tool_call_id": result.call_id}
    return {**entry, "images": [_get_base64(image) for image in result.images]} if result.images else entry


def _get_base64(image: Image) -> str:
    _, _, data = image.url.partition(";base64,")
    if not data:
        raise RequestError("this backend accepts images only as data, not by URL", param="messages")
    return data
