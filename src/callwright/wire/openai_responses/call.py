"""The calling half: a request written for a server that speaks the Responses API.

Nothing is left on the server: every request holds the whole conversation, and asks not to be stored. Reasoning goes
back only where the server gave its encrypted form; its id alone would name something that was never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from callwright.errors import BackendError
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import Reader
from callwright.wire.openai_errors import refusal
from callwright.wire.openai_responses.reader import ResponsesReader

__all__ = ["CalledResponses", "items_of"]

_WORDS = ("auto", "none", "required")
_SAME = ("temperature", "top_p")
_OURS = ("input", "instructions", "tools", "reasoning", "text")
"""Fields of `Ask.extra` that are not passed on as they are: see `request`."""


class CalledResponses:
    """Writes requests and reads answers."""

    name = "openai_responses"

    def path(self, request: Request) -> str:
        """After an address that ends in `/v1`."""
        return "/responses"

    def headers(self, key: str) -> dict[str, str]:
        """The key, if there is one."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, extra: dict[str, Any]) -> bytes:
        """The request, streaming."""
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for message in request.messages for item in items_of(message)],
            "stream": True,
            "store": False,
        }
        tools = [_tool(tool) for tool in request.tools] + extra.get("tools", [])
        if tools:
            choice = request.tool_choice
            body["tools"] = tools
            body["tool_choice"] = choice if choice in _WORDS else {"type": "function", "name": choice}
            body["parallel_tool_calls"] = request.parallel_tool_calls
        body |= _options(request.options, extra)
        if "reasoning" in body:
            # Not of every model: those that do not reason refuse to encrypt it.
            body["include"] = ["reasoning.encrypted_content"]
        body |= {key: value for key, value in extra.items() if key not in _OURS}
        return msgspec.json.encode(body)

    def reader(self) -> Reader:
        """A reader of one answer."""
        return ResponsesReader()

    def refusal(self, status: int, body: bytes) -> BackendError:
        """What an answer with that status means."""
        return refusal(status, body)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    # Without `strict` the API makes the schema strict where it can, and demands every property.
    schema = tool.parameters or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema,
        "strict": False,
    }


def _options(options: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The options that this API has; it refuses all others (`stop`, `seed`, the penalties)."""
    found = {key: options[key] for key in _SAME if key in options}
    if "max_tokens" in options:
        found["max_output_tokens"] = options["max_tokens"]
    effort, form = options.get("reasoning_effort"), options.get("response_format")
    if reasoning := extra.get("reasoning", {}) | ({"effort": effort} if effort else {}):
        found["reasoning"] = reasoning
    if text := extra.get("text", {}) | ({"format": _flat(form)} if form else {}):
        found["text"] = text
    return found


def _flat(form: dict[str, Any]) -> dict[str, Any]:
    """The form of the answer; chat completions have the name and the schema one level further down."""
    kind = form.get("type", "text")
    inner = form.get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else {"type": kind}


def items_of(message: Message) -> Iterator[dict[str, Any]]:
    """A message as items: its words and images together, where calls and results do not come between."""
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text | Image):
            content.append(_content(part, message.role))
            continue
        if content:
            yield {"type": "message", "role": message.role, "content": content}
            content = []
        yield from _item(part)
    if content:
        yield {"type": "message", "role": message.role, "content": content}


def _content(part: Text | Image, role: str) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part.url, "detail": "auto"}
    return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}


def _item(part: Part) -> Iterator[dict[str, Any]]:
    match part:
        case ToolCall():
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
        case ToolResult():
            output: str | list[dict[str, Any]] = part.content
            if part.images:
                output = [_content(Text(part.content), "tool")] if part.content else []
                output += [_content(image, "tool") for image in part.images]
            yield {"type": "function_call_output", "call_id": part.call_id, "output": output}
        case Reasoning() if part.opaque and part.opaque.get("encrypted_content"):
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            yield {"type": "reasoning", "summary": summary, **part.opaque}
        case _:
            pass
