"""Anthropic Messages, client side: the request for a server.

What differs from other APIs: instructions are separate from the messages, user and assistant alternate, all results of
a turn come first in the message after it, and reasoning is sent back only with its signature. The API refuses unknown
fields, so only supported fields are sent; sampling options of other APIs are omitted.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from callwright.errors import BackendError, RequestError
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire.anthropic.read import AnthropicReader
from callwright.wire.argument_json import to_raw_object
from callwright.wire.base import WireReader
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["AnthropicClientCodec"]

DEFAULT_MAX_TOKENS = 8192
"""This API has no default, and every model that it serves can write as much."""

_SAMPLING_OPTIONS = ("temperature", "top_p", "top_k")
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_REASONING_EFFORTS = {"minimal": "low"}
_BETA_FIELDS = frozenset({"context_management"})
"""Fields that are refused without an `anthropic-beta` header, which a client's request does not include."""

ContentBlock = dict[str, Any]


class AnthropicClientCodec:
    """The client half of this wire."""

    name = "anthropic"

    def get_path(self, request: Request) -> str:
        """Return the path after a base URL without `/v1`, such as `https://api.anthropic.com`."""
        return "/v1/messages"

    def build_headers(self, key: str) -> dict[str, str]:
        version = {"anthropic-version": "2023-06-01"}
        return {**version, "x-api-key": key} if key else version

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the request. Raise `RequestError` if it needs something that this API does not have."""
        system, messages = _encode_messages(request.messages)
        own_fields = {key: value for key, value in extra.items() if key not in _BETA_FIELDS}
        body: dict[str, Any] = {
            **own_fields,
            "model": request.model,
            "max_tokens": request.options.get("max_tokens", DEFAULT_MAX_TOKENS),
            "messages": messages,
            "stream": True,
        }
        if system:
            body["system"] = system
        body |= {name: request.options[name] for name in _SAMPLING_OPTIONS if name in request.options}
        if stops := [stop for stop in request.options.get("stop", ()) if not stop.isspace()]:
            body["stop_sequences"] = stops
        if "output_config" not in own_fields and (config := _build_output_config(request.options)):
            body["output_config"] = config
        body |= _encode_tools(request, own_fields.get("tools", []))
        if "thinking" in body and not _can_think(body["thinking"], request, messages):
            del body["thinking"]
        return msgspec.json.encode(body)

    def create_reader(self) -> WireReader:
        return AnthropicReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        return parse_backend_error(status, body)


def _encode_tools(request: Request, hosted: list[dict[str, Any]]) -> dict[str, Any]:
    """Encode the client's tools, and the hosted tools that the client requested."""
    if not request.tools:
        return {"tools": hosted} if hosted else {}
    own = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": {"type": "object", **tool.parameters},
        }
        for tool in request.tools
    ]
    kind = _TOOL_CHOICES.get(request.tool_choice, "tool")
    choice: dict[str, Any] = {"type": kind}
    if kind == "tool":
        choice["name"] = request.tool_choice
    if kind != "none" and not request.parallel_tool_calls:
        choice["disable_parallel_tool_use"] = True
    return {"tools": own + hosted, "tool_choice": choice}


def _build_output_config(options: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    effort = options.get("reasoning_effort")
    if effort and effort != "none":
        config["effort"] = _REASONING_EFFORTS.get(effort, effort)
    response_format = options.get("response_format") or {}
    if response_format.get("type") == "json_schema":
        config["format"] = {"type": "json_schema", "schema": response_format.get("json_schema", {}).get("schema", {})}
    elif response_format.get("type") == "json_object":
        raise RequestError(
            "response_format json_object is not available on this backend: use json_schema", param="response_format"
        )
    return config


def _can_think(thinking: Any, request: Request, messages: list[ContentBlock]) -> bool:
    """Whether thinking can be enabled. It is refused where a call is forced, and, unless it is adaptive, in a round of
    calls that began without signed thinking, which is possible because reasoning of other models has no signature.
    """
    if request.tools and request.tool_choice not in ("auto", "none"):
        return False
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled" or len(messages) < 2:
        return True
    answered = messages[-1]["content"][0]["type"] == "tool_result"
    return not answered or messages[-2]["content"][0]["type"] in ("thinking", "redacted_thinking")


def _encode_messages(messages: tuple[Message, ...]) -> tuple[str, list[ContentBlock]]:
    """Return the instructions that come first, and the rest with one message for each change of role."""
    system: list[str] = []
    turns: list[ContentBlock] = []
    for message in messages:
        if message.role in ("system", "developer") and not turns:
            system += [part.text for part in message.parts if isinstance(part, Text) and part.text]
            continue
        # Later instructions become user text: only some models accept them as system messages.
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts for block in _encode_part(part)]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return "\n\n".join(system), turns


def _encode_part(part: Part) -> list[ContentBlock]:
    """Encode a part as one block, or none if this API would refuse it: blank text, reasoning without its signature."""
    match part:
        case Text(text):
            return [{"type": "text", "text": text}] if text.strip() else []
        case Reasoning(text, opaque):
            signed = opaque or {}
            if "signature" in signed:
                return [{"type": "thinking", "thinking": text, "signature": signed["signature"]}]
            return [{"type": "redacted_thinking", "data": signed["redacted"]}] if "redacted" in signed else []
        case Image():
            return [_encode_image(part)]
        case ToolCall():
            return [
                {
                    "type": "tool_use",
                    "id": _sanitize_id(part.id),
                    "name": part.name,
                    "input": to_raw_object(part.arguments),
                }
            ]
        case ToolResult():
            return [_encode_result(part)]


def _sanitize_id(call_id: str) -> str:
    """Replace characters that are refused; Kimi's ids (`functions.name:0`) have some."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _encode_image(image: Image) -> ContentBlock:
    head, _, data = image.url.partition(";base64,")
    if not data:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    media_type = head.removeprefix("data:")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _encode_result(result: ToolResult) -> ContentBlock:
    content: str | list[ContentBlock] = result.content
    if result.images:
        content = [*_encode_part(Text(result.content)), *(_encode_image(image) for image in result.images)]
    block = {"type": "tool_result", "tool_use_id": _sanitize_id(result.call_id), "content": content}
    return {**block, "is_error": True} if result.is_error else block
