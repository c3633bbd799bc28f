"""The client half: encode a request for a server with the Responses API.

Nothing is stored on the server: every request contains the whole conversation, with `store: false`. Reasoning is sent
back only in the encrypted form that the server gave; its id alone would refer to something that was never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from callwright.errors import BackendError
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import WireReader
from callwright.wire.openai_errors import parse_backend_error
from callwright.wire.openai_responses.read import OpenAIResponsesReader

__all__ = ["OpenAIResponsesClientCodec", "encode_message_items"]

_TOOL_CHOICE_MODES = ("auto", "none", "required")
_SHARED_OPTIONS = ("temperature", "top_p")
_HANDLED_FIELDS = ("input", "instructions", "tools", "reasoning", "text")
"""Fields of `ClientRequest.extra` that are not passed on unchanged: see `decode`."""


class OpenAIResponsesClientCodec:
    """Writes requests and reads answers."""

    name = "openai_responses"

    def get_path(self, request: Request) -> str:
        """Return the path after a base URL that ends in `/v1`."""
        return "/responses"

    def build_headers(self, key: str) -> dict[str, str]:
        """Return the key, if there is one."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode a streaming request."""
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for message in request.messages for item in encode_message_items(message)],
            "stream": True,
            "store": False,
        }
        tools = [_encode_tool(tool) for tool in request.tools] + extra.get("tools", [])
        if tools:
            choice = request.tool_choice
            body["tools"] = tools
            body["tool_choice"] = choice if choice in _TOOL_CHOICE_MODES else {"type": "function", "name": choice}
            body["parallel_tool_calls"] = request.parallel_tool_calls
        body |= _encode_options(request.options, extra)
        if "reasoning" in body:
            # Not for every model: those without reasoning refuse to encrypt it.
            body["include"] = ["reasoning.encrypted_content"]
        body |= {key: value for key, value in extra.items() if key not in _HANDLED_FIELDS}
        return msgspec.json.encode(body)

    def create_reader(self) -> WireReader:
        """Create the reader for one answer."""
        return OpenAIResponsesReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Return the error for an answer with that status."""
        return parse_backend_error(status, body)


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    # Without `strict` the API makes the schema strict where it can, and requires every property.
    schema = tool.parameters or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema,
        "strict": False,
    }


def _encode_options(options: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Encode the options of this API; it refuses all others (`stop`, `seed`, the penalties)."""
    encoded = {key: options[key] for key in _SHARED_OPTIONS if key in options}
    if "max_tokens" in options:
        encoded["max_output_tokens"] = options["max_tokens"]
    effort, form = options.get("reasoning_effort"), options.get("response_format")
    if reasoning := extra.get("reasoning", {}) | ({"effort": effort} if effort else {}):
        encoded["reasoning"] = reasoning
    if text := extra.get("text", {}) | ({"format": _flatten_format(form)} if form else {}):
        encoded["text"] = text
    return encoded


def _flatten_format(form: dict[str, Any]) -> dict[str, Any]:
    """Convert the response format; in chat completions the name and the schema are one level deeper."""
    kind = form.get("type", "text")
    inner = form.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else {"type": kind}


def encode_message_items(message: Message) -> Iterator[dict[str, Any]]:
    """Yield a message as items: its text and images together, unless calls or results come between."""
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text | Image):
            content.append(_encode_content(part, message.role))
            continue
        if content:
            yield {"type": "message", "role": message.role, "content": content}
            content = []
        yield from _encode_item(part)
    if content:
        yield {"type": "message", "role": message.role, "content": content}


def _encode_content(part: Text | Image, role: str) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}


def _encode_item(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case ToolCall():
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            output: str | list[dict[str, Any]] = part.content
            if part.images:
                output = [_encode_content(Text(part.content), "tool")] if part.content else []
                output += [_encode_content(image, "tool") for image in part.images]
            yield {"type": "function_call_output", "call_id": part.call_id, "output": output}
        case Reasoning() if part.opaque and part.opaque.get("encrypted_content"):
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            yield {"type": "reasoning", "summary": summary, **part.opaque}
        case _:
            pass
