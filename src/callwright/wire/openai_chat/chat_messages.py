"""Decode the messages of a chat completions request, in the shapes that clients send in practice.

Every tool result gets the id and the name of its call. Results without either are matched in order. A result whose call
is missing is kept, and the history is repaired later: clients send stale ones (seed S0, 6.8.3).
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from callwright.wire.argument_json import read_arguments
from callwright.wire.open_calls import OpenCalls
from callwright.wire.orphan_results import check_orphan_results
from callwright.wire.request_fields import RequestFields

__all__ = ["REASONING_FIELDS", "decode_messages"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary")
"""Fields in which clients send reasoning: the names that Copilot Chat 0.66 reads, most common first."""
_TEXT_TYPES = ("text", "input_text", "output_text")
_IMAGE_TYPES = ("image_url", "input_image")


def decode_messages(body: RequestFields) -> tuple[Message, ...]:
    """Decode all messages, in order."""
    if not body.get("messages", list):
        raise RequestError("messages must hold at least one message", param="messages")
    calls = _CallIndex()
    messages = tuple(_decode_message(each, calls) for each in body.iter_objects("messages"))
    if calls.orphan_path:
        check_orphan_results(messages, calls.orphan_path)
    return messages


class _CallIndex:
    """The calls so far: their names, and which have no result yet."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.orphan_path = ""
        """The path of the first result without a call."""
        self._open_calls = OpenCalls()
        self._next_number = 0

    def add_call(self, call_id: str, name: str) -> str:
        """Add a call; a call without an id gets one."""
        self._next_number = max(self._next_number, len(self.names))
        while not call_id:
            call_id = "" if f"call_{self._next_number}" in self.names else f"call_{self._next_number}"
            self._next_number += 1
        self.names[call_id] = name
        self._open_calls.add_call(call_id, name)
        return call_id

    def match_result(self, call_id: str, name: str) -> str:
        """Return the id of the call that a result answers: by its id, otherwise the first open call with its name, if
        any."""
        if not call_id:
            return self._open_calls.close_next(name)
        self._open_calls.close_call(call_id)
        return call_id if call_id in self.names else ""


def _decode_message(fields: RequestFields, calls: _CallIndex) -> Message:
    role = fields.require_text("role")
    match role:
        case "system" | "developer" | "user":
            return Message(role, _decode_content(fields))
        case "assistant":
            return Message(role, _decode_answer(fields, calls))
        case "tool" | "function":
            return Message("tool", (_decode_result(fields, calls),))
        case _:
            path = fields.format_path("role")
            raise RequestError(f"{path} must be system, developer, user, assistant or tool, not {role!r}", param=path)


def _decode_content(fields: RequestFields) -> tuple[Part, ...]:
    content = fields.get("content", str, list)
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_decode_part(value, path) for value, path in fields.iter_items("content"))


def _decode_part(value: object, path: str) -> Text | Image:
    if isinstance(value, str):
        return Text(value)
    fields = RequestFields(value, path)
    kind = fields.get_text("type") or "text"
    if kind in _TEXT_TYPES:
        text = fields.get("text", str)
        if text is None:
            raise fields.build_error("text", "a string")
        return Text(text)
    if kind == "refusal":
        return Text(fields.get_text("refusal"))
    if kind in _IMAGE_TYPES:
        url = fields.get("image_url", str, dict)
        if isinstance(url, str):
            return Image(url)
        image = fields.get_object("image_url") or fields
        # Copilot Chat sends the image type next to its URL.
        return Image(image.require_text("url"), image.get_text("media_type"))
    raise RequestError(
        f"{path} has the type {kind!r}; supported are text and image_url", param=path, code="unsupported_content"
    )


def _decode_answer(fields: RequestFields, calls: _CallIndex) -> tuple[Part, ...]:
    """Decode an assistant message. Arguments stay unchanged: clients send broken JSON back too."""
    values = (fields.values.get(key) for key in REASONING_FIELDS)
    thought = next((value for value in values if value and isinstance(value, str)), "")
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += _decode_content(fields)
    for entry in fields.iter_objects("tool_calls"):
        parts.append(
            _decode_call(entry.get_object("function") or entry, entry.get_text("id", "toolCallId", "toolId"), calls)
        )
    legacy = fields.get_object("function_call")
    if legacy is not None:
        parts.append(_decode_call(legacy, "", calls))
    return tuple(parts)


def _decode_call(function: RequestFields, call_id: str, calls: _CallIndex) -> ToolCall:
    name = function.require_text("name")
    return ToolCall(calls.add_call(call_id, name), name, read_arguments(function, "arguments"))


def _decode_result(fields: RequestFields, calls: _CallIndex) -> ToolResult:
    call_id, name = fields.get_text("tool_call_id", "toolCallId", "toolId"), fields.get_text("name")
    call_id = calls.match_result(call_id, name) or call_id
    if call_id not in calls.names:
        calls.orphan_path = calls.orphan_path or fields.format_path("tool_call_id")
    text, images = _decode_result_content(fields)
    return ToolResult(call_id, text, name or calls.names.get(call_id, ""), images=images)


def _decode_result_content(fields: RequestFields) -> tuple[str, tuple[Image, ...]]:
    """Return a result's text and images; a value that is not message content is shown as JSON."""
    content = fields.values.get("content")
    if isinstance(content, str) or content is None:
        return content or "", ()
    try:
        parts = _decode_content(fields)
    except RequestError:
        return _to_json(content), ()
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "\n".join(texts), tuple(part for part in parts if isinstance(part, Image))


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
