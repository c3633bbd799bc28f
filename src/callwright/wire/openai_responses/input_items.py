"""Convert input items to messages: a conversation in the Responses API is a flat list of items.

Neighbouring items of the assistant (reasoning, text, calls) become one message, in order. Arguments in the history are
never parsed: Codex (0.166) sends broken ones back unchanged. Unsupported items (searches of hosted tools, compactions)
are kept separately, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from callwright.wire.argument_json import read_arguments
from callwright.wire.openai_responses.toolset import RequestToolset
from callwright.wire.request_fields import RequestFields

__all__ = ["REFERENCE_KEY", "InputItemDecoder"]

REFERENCE_KEY = "item_reference"
"""The key in `Reasoning.opaque` that marks the position of an item of an earlier answer."""
_ROLES = frozenset(get_args(Role)) - {"tool"}
_TEXT_FIELDS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"} | {
    # Codex's sub-agents get their task in such a part; it is plain text if the model is not OpenAI's (captured from
    # 0.15x in github.com/MetaFARS/codex-relay/issues/60).
    "encrypted_content": "encrypted_content"
}


class InputItemDecoder:
    """Reads items into messages, one after the other."""

    def __init__(self, tools: RequestToolset) -> None:
        self.skipped_items: list[Any] = []
        self.orphan_path = ""
        """The path of the first result whose call is not in this request."""
        self.has_references = False
        self._tools = tools
        self._messages: list[Message] = []
        self._answer: list[Part] = []
        self._call_names: dict[str, str] = {}
        self._skipped_call_ids: set[str] = set()
        self._readers: dict[str, Callable[[RequestFields], None]] = {
            "message": self._add_message,
            "agent_message": self._add_agent_message,
            "reasoning": self._add_reasoning,
            "function_call": self._add_call,
            "custom_tool_call": self._add_call,
            "function_call_output": self._add_result,
            "custom_tool_call_output": self._add_result,
            "item_reference": self._add_reference,
            "additional_tools": lambda _: None,
        }

    def add_item(self, item: RequestFields) -> None:
        """Add one item. Items without a type are messages: SDKs omit it."""
        reader = self._readers.get(item.get_text("type") or "message")
        if reader:
            reader(item)
        else:
            self._skip_item(item)

    def build_messages(self) -> tuple[Message, ...]:
        """Return the conversation so far."""
        self._close_answer()
        return tuple(self._messages)

    def _add_message(self, item: RequestFields) -> None:
        role = item.get_text("role") or "user"
        if role not in _ROLES:
            raise RequestError(f"{item.format_path('role')}: unknown role {role!r}", param=item.format_path("role"))
        parts = _decode_content(item, "content")
        if role == "assistant":
            self._answer += parts
        else:
            self._append_message(role, parts)  # type: ignore[arg-type]

    def _add_agent_message(self, item: RequestFields) -> None:
        self._append_message("user", _decode_content(item, "content"))

    def _add_reasoning(self, item: RequestFields) -> None:
        texts = [
            part.get_text("text") for part in item.iter_objects("content" if item.values.get("content") else "summary")
        ]
        # Without its id, which is ours: a server that encrypted it for another id refuses it (litellm PR #15782).
        encrypted = item.get_text("encrypted_content")
        self._answer.append(Reasoning("\n\n".join(texts), {"encrypted_content": encrypted} if encrypted else None))

    def _add_call(self, item: RequestFields) -> None:
        name = self._tools.get_model_name(item.require_text("name"), item.get_text("namespace"))
        if item.get_text("type") == "custom_tool_call":
            arguments = json.dumps({"input": item.get_text("input")}, ensure_ascii=False)
        else:
            arguments = read_arguments(item, "arguments")
        call_id = item.require_text("call_id")
        self._call_names[call_id] = name
        self._answer.append(ToolCall(call_id, name, arguments))

    def _add_result(self, item: RequestFields) -> None:
        call_id = item.require_text("call_id")
        if call_id in self._skipped_call_ids:
            self._skip_item(item)
            return
        if call_id not in self._call_names:
            self.orphan_path = self.orphan_path or item.format_path("call_id")
        output = item.values.get("output")
        if isinstance(output, str | list | None):
            parts = _decode_content(item, "output")
        else:
            parts = [Text(json.dumps(output, ensure_ascii=False))]
        text = "\n".join(part.text for part in parts if isinstance(part, Text))
        images = tuple(part for part in parts if isinstance(part, Image))
        self._append_message("tool", [ToolResult(call_id, text, self._call_names.get(call_id, ""), images=images)])

    def _add_reference(self, item: RequestFields) -> None:
        self.has_references = True
        self._answer.append(Reasoning("", {REFERENCE_KEY: item.require_text("id")}))

    def _skip_item(self, item: RequestFields) -> None:
        """Leave an item out of the conversation, and with it the result of a call that is left out."""
        self.skipped_items.append(item.values)
        self._skipped_call_ids.add(item.get_text("call_id"))

    def _append_message(self, role: Role, parts: list[Any]) -> None:
        self._close_answer()
        self._messages.append(Message(role, tuple(parts)))

    def _close_answer(self) -> None:
        if self._answer:
            self._messages.append(Message("assistant", tuple(self._answer)))
            self._answer = []


def _decode_content(item: RequestFields, key: str) -> list[Text | Image]:
    """Decode content: a string, or a list of parts."""
    value = item.values.get(key)
    if isinstance(value, str):
        return [Text(value)] if value else []
    return [_decode_part(part) for part in item.iter_objects(key)]


def _decode_part(part: RequestFields) -> Text | Image:
    kind = part.get_text("type") or "input_text"
    if kind in _TEXT_FIELDS:
        return Text(part.get_text(_TEXT_FIELDS[kind]))
    if kind != "input_image":
        raise RequestError(f"{part.path}: content of type {kind!r} is not supported", param=part.format_path("type"))
    nested = part.get_object("image_url") if isinstance(part.values.get("image_url"), dict) else None
    url = nested.require_text("url") if nested else part.require_text("image_url")
    return Image(url, url[5:].partition(";")[0] if url.startswith("data:") else "")
