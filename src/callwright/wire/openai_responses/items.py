"""Input items as messages: a conversation in the Responses API is a flat list, one item for each thing said or done.

Neighbouring items of the model's side (reasoning, words, calls) become one assistant message, in order. Arguments in
the history are never parsed: Codex (0.166) sends broken ones back as they were. What we cannot use (searches of hosted
tools, compactions) is set aside whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from callwright.wire.fields import Fields
from callwright.wire.openai_responses.tools import Toolset
from callwright.wire.shapes import arguments_of

__all__ = ["REFERENCE", "History"]

REFERENCE = "item_reference"
"""The key in `Reasoning.opaque` that marks a place where an item of an earlier answer belongs."""
_ROLES = frozenset(get_args(Role)) - {"tool"}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"} | {
    # Codex's sub-agents get their task in such a part; it is plain text where the model behind is not OpenAI's
    # (captured from 0.15x in github.com/MetaFARS/codex-relay/issues/60).
    "encrypted_content": "encrypted_content"
}


class History:
    """Reads items into messages, one after the other."""

    def __init__(self, tools: Toolset) -> None:
        self.set_aside: list[Any] = []
        self.orphan = ""
        """Where the first result is whose call is not in this request."""
        self.has_references = False
        self._tools = tools
        self._messages: list[Message] = []
        self._answer: list[Part] = []
        self._called: dict[str, str] = {}
        self._unused: set[str] = set()
        self._readers: dict[str, Callable[[Fields], None]] = {
            "message": self._message,
            "agent_message": self._agent_message,
            "reasoning": self._reasoning,
            "function_call": self._call,
            "custom_tool_call": self._call,
            "function_call_output": self._result,
            "custom_tool_call_output": self._result,
            "item_reference": self._reference,
            "additional_tools": lambda _: None,
        }

    def add(self, item: Fields) -> None:
        """Take in one item. Those without a type are messages: SDKs leave it out."""
        reader = self._readers.get(item.text("type") or "message")
        if reader:
            reader(item)
        else:
            self._set_aside(item)

    def messages(self) -> tuple[Message, ...]:
        """The conversation as far as it was read."""
        self._close_answer()
        return tuple(self._messages)

    def _message(self, item: Fields) -> None:
        role = item.text("role") or "user"
        if role not in _ROLES:
            raise RequestError(f"{item.at('role')}: there is no role {role!r}", param=item.at("role"))
        parts = _content(item, "content")
        if role == "assistant":
            self._answer += parts
        else:
            self._say(role, parts)  # type: ignore[arg-type]

    def _agent_message(self, item: Fields) -> None:
        self._say("user", _content(item, "content"))

    def _reasoning(self, item: Fields) -> None:
        texts = [part.text("text") for part in item.objects("content" if item.values.get("content") else "summary")]
        # Without its id, which is ours: a server that encrypted it for another refuses it (litellm PR #15782).
        encrypted = item.text("encrypted_content")
        self._answer.append(Reasoning("\n\n".join(texts), {"encrypted_content": encrypted} if encrypted else None))

    def _call(self, item: Fields) -> None:
        name = self._tools.seen_as(item.need("name"), item.text("namespace"))
        if item.text("type") == "custom_tool_call":
            arguments = json.dumps({"input": item.text("input")}, ensure_ascii=False)
        else:
            arguments = arguments_of(item, "arguments")
        call_id = item.need("call_id")
        self._called[call_id] = name
        self._answer.append(ToolCall(call_id, name, arguments))

    def _result(self, item: Fields) -> None:
        call_id = item.need("call_id")
        if call_id in self._unused:
            self._set_aside(item)
            return
        if call_id not in self._called:
            self.orphan = self.orphan or item.at("call_id")
        output = item.values.get("output")
        if isinstance(output, str | list | None):
            parts = _content(item, "output")
        else:
            parts = [Text(json.dumps(output, ensure_ascii=False))]
        text = "\n".join(part.text for part in parts if isinstance(part, Text))
        images = tuple(part for part in parts if isinstance(part, Image))
        self._say("tool", [ToolResult(call_id, text, self._called.get(call_id, ""), images=images)])

    def _reference(self, item: Fields) -> None:
        self.has_references = True
        self._answer.append(Reasoning("", {REFERENCE: item.need("id")}))

    def _set_aside(self, item: Fields) -> None:
        """Keep an item out of the conversation. The result of a call that is out of it has no place in it either."""
        self.set_aside.append(item.values)
        self._unused.add(item.text("call_id"))

    def _say(self, role: Role, parts: list[Any]) -> None:
        self._close_answer()
        self._messages.append(Message(role, tuple(parts)))

    def _close_answer(self) -> None:
        if self._answer:
            self._messages.append(Message("assistant", tuple(self._answer)))
            self._answer = []


def _content(item: Fields, key: str) -> list[Text | Image]:
    """A content: a string, or a list of parts."""
    value = item.values.get(key)
    if isinstance(value, str):
        return [Text(value)] if value else []
    return [_part(part) for part in item.objects(key)]


def _part(part: Fields) -> Text | Image:
    kind = part.text("type") or "input_text"
    if kind in _TEXTS:
        return Text(part.text(_TEXTS[kind]))
    if kind != "input_image":
        raise RequestError(f"{part.path}: content of the type {kind!r} cannot be passed on", param=part.at("type"))
    nested = part.nested("image_url") if isinstance(part.values.get("image_url"), dict) else None
    url = nested.need("url") if nested else part.need("image_url")
    return Image(url, url[5:].partition(";")[0] if url.startswith("data:") else "")
