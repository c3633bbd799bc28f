"""Responses, strictly: every item announced, streamed and closed, and one terminal event.

The measurements behind each rule: Codex 0.166 needs `output_item.done` and `response.completed`, Qwen Code and the
AI SDK need the `added` and `delta` events too, and opencode asks again without end when `response.completed` is
missing or has no usage.
"""

from __future__ import annotations

from typing import Any

from callwright.cli.shapes.base import (
    Seen,
    Shape,
    Trial,
    counts,
    decoded,
    field,
    frames,
    need,
    object_text,
    openai_refusal,
    same,
    seen,
)
from callwright.errors import WireError
from callwright.model import ToolCall

__all__ = ["RESPONSES"]

_TERMINAL = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def _body(trial: Trial) -> dict[str, Any]:
    body: dict[str, Any] = {"model": trial.model, "stream": trial.stream, "store": False}
    body["input"] = [{"type": "message", "role": "user", "content": trial.prompt}]
    if trial.tool:
        spec = {"name": trial.tool.name, "description": trial.tool.description, "parameters": trial.tool.parameters}
        body["tools"] = [{"type": "function", **spec}]
        body["tool_choice"] = "auto" if trial.call else "required"
    if trial.call:
        call = {"call_id": trial.call.id, "name": trial.call.name, "arguments": trial.call.arguments}
        result = {"type": "function_call_output", "call_id": trial.call.id, "output": trial.result}
        body["input"] += [{"type": "function_call", **call}, result]
    return body


def _whole(body: bytes) -> Seen:
    answer = decoded(body, "the answer")
    _response(answer, "the answer")
    return _finished(answer)


def _response(value: Any, where: str) -> None:
    same(value, "object", "response", where)
    for key, kind in (("id", str), ("created_at", int), ("model", str), ("status", str), ("output", list)):
        field(value, key, kind, where)


def _finished(response: Any) -> Seen:
    same(response, "status", "completed", "the response")
    usage = field(response, "usage", dict, "the response")
    counts(usage, "input_tokens", "output_tokens", total="total_tokens")
    items = response["output"]
    calls = [_call(item) for item in items if item.get("type") == "function_call"]
    text = "".join(_text(item) for item in items if item.get("type") == "message")
    return seen(text, calls, "tool_calls" if calls else "stop")


def _call(item: Any) -> ToolCall:
    same(item, "status", "completed", "a function_call")
    for key in ("id", "call_id", "name"):
        need(field(item, key, str, "a function_call"), f"a function_call has an empty {key}")
    arguments = field(item, "arguments", str, "a function_call")
    return ToolCall(item["call_id"], item["name"], object_text(arguments, "the arguments of a function_call"))


def _text(item: Any) -> str:
    for key, value in (("role", "assistant"), ("status", "completed")):
        same(item, key, value, "a message")
    parts = field(item, "content", list, "a message")
    for part in parts:
        same(part, "type", "output_text", "a message's part")
        field(part, "annotations", list, "a message's part")
    return "".join(field(part, "text", str, "a message's part") for part in parts)


def _streamed(body: bytes) -> Seen:
    events = [frame for frame in frames(body) if frame.data != "[DONE]"]  # no client minds it, and none needs it
    need(events, "the stream is empty")
    stream = _Stream()
    for number, frame in enumerate(events):
        event = decoded(frame.data, "an event")
        kind = field(event, "type", str, "an event")
        need(frame.event == kind, f"the line event: {frame.event!r} stands before data of type {kind}")
        need(field(event, "sequence_number", int, kind) == number, f"{kind}: its sequence_number is not {number}")
        need(kind != "error", f"the stream reports an error: {event.get('message')}")
        stream.take(kind, event)
    return stream.close()


class _Stream:
    """What was seen so far of one stream."""

    def __init__(self) -> None:
        self.id = ""
        self.items: list[Any] = []
        self.open: dict[str, Any] | None = None
        self.pieces = ""
        self.part = False
        self.told = False
        self.final: Any = None

    def take(self, kind: str, event: Any) -> None:
        need(self.final is None, f"{kind} follows the terminal event")
        need(self.id or kind == "response.created", f"the stream begins with {kind}, not with response.created")
        if "response" in event:
            self._response(kind, event)
        elif kind == "response.output_item.added":
            self._added(event)
        elif kind == "response.output_item.done":
            self._done(event)
        else:
            self._inside(kind, event)

    def _response(self, kind: str, event: Any) -> None:
        _response(event["response"], kind)
        need(self.id in ("", event["response"]["id"]), f"{kind}: the response's id has changed")
        need((kind == "response.created") != bool(self.id), "response.created comes twice")
        self.id = event["response"]["id"]
        same(event["response"], "status", _TERMINAL.get(kind, "in_progress"), kind)
        if kind in _TERMINAL:
            need(self.open is None, f"{kind} comes while an item is open")
            self.final = event["response"]

    def _added(self, event: Any) -> None:
        need(self.open is None, "an item is added while another is open")
        same(event, "output_index", len(self.items), "response.output_item.added")
        self.open = field(event, "item", dict, "response.output_item.added")
        field(self.open, "id", str, "the added item")
        self.pieces, self.part, self.told = "", False, False

    def _inside(self, kind: str, event: Any) -> None:
        if self.open is None:
            raise WireError(f"{kind} comes while no item is open")
        same(event, "item_id", self.open["id"], kind)
        same(event, "output_index", len(self.items), kind)
        _, name, step = kind.split(".", 2)
        if name == "content_part":
            need(self.part == (step == "done"), f"{kind}: the part is not open, or still is")
            self.part = step == "added"
        elif name in ("output_text", "function_call_arguments"):
            need(self.part or name != "output_text", f"{kind} comes while no part is open")
            need(not self.told, f"{kind} comes after the end of what it adds to")
            if step == "delta":
                self.pieces += field(event, "delta", str, kind)
            elif step == "done":
                same(event, "text" if name == "output_text" else "arguments", self.pieces, kind)
                self.told = True

    def _done(self, event: Any) -> None:
        where = "response.output_item.done"
        same(event, "output_index", len(self.items), where)
        item = field(event, "item", dict, where)
        need(self.open is not None and item.get("id") == self.open["id"], f"{where}: that item is not open")
        need(not self.part, f"{where} comes while a part is open")
        if item.get("type") in ("function_call", "message"):
            need(self.told, f"a {item['type']} was streamed without its closing events")
            whole = item.get("arguments") if item["type"] == "function_call" else _text(item)
            need(whole == self.pieces, f"{where}: the item is not what its deltas join to")
        self.items.append(item)
        self.open = None

    def close(self) -> Seen:
        need(self.final is not None, "the stream ends without response.completed")
        need(self.final["output"] == self.items, "response.completed does not hold the items that were streamed")
        return _finished(self.final)


RESPONSES = Shape(
    name="responses",
    path="/v1/responses",
    stream_type="text/event-stream",
    body=_body,
    whole=_whole,
    streamed=_streamed,
    refusal=openai_refusal,
)
