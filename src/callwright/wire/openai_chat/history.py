"""The messages of a chat completions request, in the shapes that clients really send.

Every tool result ends up with the id and the name of its call. Results that say neither are matched in order. One whose
call is not there is kept, for the history to be mended: clients send stale ones (seed S0, 6.8.3).
"""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from callwright.wire.fields import Fields
from callwright.wire.orphans import check_results
from callwright.wire.shapes import arguments_of

__all__ = ["REASONING_FIELDS", "read_messages"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary")
"""Where clients put what a model thought: the names that Copilot Chat 0.66 reads, commonest first."""
_TEXT_TYPES = ("text", "input_text", "output_text")
_IMAGE_TYPES = ("image_url", "input_image")


def read_messages(body: Fields) -> tuple[Message, ...]:
    """All of them, in order."""
    if not body.get("messages", list):
        raise RequestError("messages must hold at least one message", param="messages")
    calls = _Calls()
    messages = tuple(_message(each, calls) for each in body.objects("messages"))
    if calls.orphan:
        check_results(messages, calls.orphan)
    return messages


class _Calls:
    """The calls so far: what they are named, and which have no result yet."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.orphan = ""
        """Where the first result is that answers none of them."""
        self._open: list[tuple[str, str]] = []

    def add(self, call_id: str, name: str) -> str:
        """A call; one without an id gets one of its own."""
        number = len(self.names)
        while not call_id:
            call_id = "" if f"call_{number}" in self.names else f"call_{number}"
            number += 1
        self.names[call_id] = name
        self._open.append((call_id, name))
        return call_id

    def match(self, call_id: str, name: str) -> str:
        """The call that a result answers: by its id, else the first without a result that has its name, if given."""
        for entry in self._open:
            if entry[0] == call_id or (not call_id and name in ("", entry[1])):
                self._open.remove(entry)
                return entry[0]
        return call_id if call_id in self.names else ""


def _message(fields: Fields, calls: _Calls) -> Message:
    role = fields.need("role")
    match role:
        case "system" | "developer" | "user":
            return Message(role, _content(fields))
        case "assistant":
            return Message(role, _answer(fields, calls))
        case "tool" | "function":
            return Message("tool", (_result(fields, calls),))
        case _:
            path = fields.at("role")
            raise RequestError(f"{path} must be system, developer, user, assistant or tool, not {role!r}", param=path)


def _content(fields: Fields) -> tuple[Part, ...]:
    content = fields.get("content", str, list)
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_part(value, path) for value, path in fields.entries("content"))


def _part(value: object, path: str) -> Text | Image:
    if isinstance(value, str):
        return Text(value)
    fields = Fields(value, path)
    kind = fields.text("type") or "text"
    if kind in _TEXT_TYPES:
        text = fields.get("text", str)
        if text is None:
            raise fields.wrong("text", "a string")
        return Text(text)
    if kind == "refusal":
        return Text(fields.text("refusal"))
    if kind in _IMAGE_TYPES:
        url = fields.get("image_url", str, dict)
        if isinstance(url, str):
            return Image(url)
        image = fields.nested("image_url") or fields
        # Copilot Chat says the type of the picture beside its address.
        return Image(image.need("url"), image.text("media_type"))
    raise RequestError(
        f"{path} is of type {kind!r}; text and image_url can be served", param=path, code="unsupported_content"
    )


def _answer(fields: Fields, calls: _Calls) -> tuple[Part, ...]:
    """What the model said in an earlier turn. Arguments stay as they are: clients send broken JSON back too."""
    values = (fields.values.get(key) for key in REASONING_FIELDS)
    thought = next((value for value in values if value and isinstance(value, str)), "")
    parts: list[Part] = [Reasoning(thought)] if thought else []
    parts += _content(fields)
    for entry in fields.objects("tool_calls"):
        parts.append(_call(entry.nested("function") or entry, entry.text("id", "toolCallId", "toolId"), calls))
    legacy = fields.nested("function_call")
    if legacy is not None:
        parts.append(_call(legacy, "", calls))
    return tuple(parts)


def _call(function: Fields, call_id: str, calls: _Calls) -> ToolCall:
    name = function.need("name")
    return ToolCall(calls.add(call_id, name), name, arguments_of(function, "arguments"))


def _result(fields: Fields, calls: _Calls) -> ToolResult:
    asked, name = fields.text("tool_call_id", "toolCallId", "toolId"), fields.text("name")
    call_id = calls.match(asked, name) or asked
    if call_id not in calls.names:
        calls.orphan = calls.orphan or fields.at("tool_call_id")
    text, images = _result_content(fields)
    return ToolResult(call_id, text, name or calls.names.get(call_id, ""), images=images)


def _result_content(fields: Fields) -> tuple[str, tuple[Image, ...]]:
    """A result's text and pictures; anything that is no content of a message is shown as JSON."""
    content = fields.values.get("content")
    if isinstance(content, str) or content is None:
        return content or "", ()
    try:
        parts = _content(fields)
    except RequestError:
        return _json(content), ()
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "\n".join(texts), tuple(part for part in parts if isinstance(part, Image))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
