"""The strict check of Responses: every item is added, streamed and done, and there is one terminal event.

Each rule comes from a measurement. Codex 0.166 needs `output_item.done` and `response.completed`. Qwen Code and the
AI SDK also need the `added` and `delta` events. opencode retries endlessly if `response.completed` is missing or has
no usage.
"""

from __future__ import annotations

from typing import Any

from callwright.cli.wire_checks.base import (
    CheckedAnswer,
    SmokeRequest,
    WireCheck,
    build_checked_answer,
    decode_json,
    parse_sse,
    read_openai_error,
    require,
    require_field,
    require_object_text,
    require_token_counts,
    require_value,
)
from callwright.errors import WireError
from callwright.model import ToolCall

__all__ = ["RESPONSES"]

_TERMINAL_EVENTS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def _build_body(trial: SmokeRequest) -> dict[str, Any]:
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


def _read_response(body: bytes) -> CheckedAnswer:
    answer = decode_json(body, "the answer")
    _check_response(answer, "the answer")
    return _read_completed(answer)


def _check_response(value: Any, where: str) -> None:
    require_value(value, "object", "response", where)
    for key, kind in (("id", str), ("created_at", int), ("model", str), ("status", str), ("output", list)):
        require_field(value, key, kind, where)


def _read_completed(response: Any) -> CheckedAnswer:
    require_value(response, "status", "completed", "the response")
    usage = require_field(response, "usage", dict, "the response")
    require_token_counts(usage, "input_tokens", "output_tokens", total="total_tokens")
    items = response["output"]
    calls = [_read_call(item) for item in items if item.get("type") == "function_call"]
    text = "".join(_read_message_text(item) for item in items if item.get("type") == "message")
    return build_checked_answer(text, calls, "tool_calls" if calls else "stop")


def _read_call(item: Any) -> ToolCall:
    require_value(item, "status", "completed", "a function_call")
    for key in ("id", "call_id", "name"):
        require(require_field(item, key, str, "a function_call"), f"a function_call has an empty {key}")
    arguments = require_field(item, "arguments", str, "a function_call")
    return ToolCall(item["call_id"], item["name"], require_object_text(arguments, "the arguments of a function_call"))


def _read_message_text(item: Any) -> str:
    for key, value in (("role", "assistant"), ("status", "completed")):
        require_value(item, key, value, "a message")
    parts = require_field(item, "content", list, "a message")
    for part in parts:
        require_value(part, "type", "output_text", "a message's part")
        require_field(part, "annotations", list, "a message's part")
    return "".join(require_field(part, "text", str, "a message's part") for part in parts)


def _read_stream(body: bytes) -> CheckedAnswer:
    events = [frame for frame in parse_sse(body) if frame.data != "[DONE]"]  # optional: clients ignore it
    require(events, "the stream is empty")
    stream = _StreamChecker()
    for number, frame in enumerate(events):
        event = decode_json(frame.data, "an event")
        kind = require_field(event, "type", str, "an event")
        require(frame.event == kind, f"the line event: {frame.event!r} is followed by data of type {kind}")
        require(
            require_field(event, "sequence_number", int, kind) == number, f"{kind}: its sequence_number is not {number}"
        )
        require(kind != "error", f"the stream reports an error: {event.get('message')}")
        stream.feed(kind, event)
    return stream.close()


class _StreamChecker:
    """Checks one stream, event by event."""

    def __init__(self) -> None:
        self.id = ""
        self.items: list[Any] = []
        self.open_item: dict[str, Any] | None = None
        self.pieces = ""
        self.has_open_part = False
        self.is_content_done = False
        self.final_response: Any = None

    def feed(self, kind: str, event: Any) -> None:
        require(self.final_response is None, f"{kind} follows the terminal event")
        require(self.id or kind == "response.created", f"the stream begins with {kind}, not with response.created")
        if "response" in event:
            self._check_response_event(kind, event)
        elif kind == "response.output_item.added":
            self._start_item(event)
        elif kind == "response.output_item.done":
            self._finish_item(event)
        else:
            self._update_item(kind, event)

    def _check_response_event(self, kind: str, event: Any) -> None:
        _check_response(event["response"], kind)
        require(self.id in ("", event["response"]["id"]), f"{kind}: the response's id has changed")
        require((kind == "response.created") != bool(self.id), "response.created comes twice")
        self.id = event["response"]["id"]
        require_value(event["response"], "status", _TERMINAL_EVENTS.get(kind, "in_progress"), kind)
        if kind in _TERMINAL_EVENTS:
            require(self.open_item is None, f"{kind} comes while an item is open")
            self.final_response = event["response"]

    def _start_item(self, event: Any) -> None:
        require(self.open_item is None, "an item is added while another is open")
        require_value(event, "output_index", len(self.items), "response.output_item.added")
        self.open_item = require_field(event, "item", dict, "response.output_item.added")
        require_field(self.open_item, "id", str, "the added item")
        self.pieces, self.has_open_part, self.is_content_done = "", False, False

    def _update_item(self, kind: str, event: Any) -> None:
        if self.open_item is None:
            raise WireError(f"{kind} comes while no item is open")
        require_value(event, "item_id", self.open_item["id"], kind)
        require_value(event, "output_index", len(self.items), kind)
        _, name, step = kind.split(".", 2)
        if name == "content_part":
            require(self.has_open_part == (step == "done"), f"{kind}: the part is already open or not open")
            self.has_open_part = step == "added"
        elif name in ("output_text", "function_call_arguments"):
            require(self.has_open_part or name != "output_text", f"{kind} comes while no part is open")
            require(not self.is_content_done, f"{kind} comes after the done event of its content")
            if step == "delta":
                self.pieces += require_field(event, "delta", str, kind)
            elif step == "done":
                require_value(event, "text" if name == "output_text" else "arguments", self.pieces, kind)
                self.is_content_done = True

    def _finish_item(self, event: Any) -> None:
        where = "response.output_item.done"
        require_value(event, "output_index", len(self.items), where)
        item = require_field(event, "item", dict, where)
        require(
            self.open_item is not None and item.get("id") == self.open_item["id"], f"{where}: that item is not open"
        )
        require(not self.has_open_part, f"{where} comes while a part is open")
        if item.get("type") in ("function_call", "message"):
            require(self.is_content_done, f"a {item['type']} was streamed without its closing events")
            whole = item.get("arguments") if item["type"] == "function_call" else _read_message_text(item)
            require(whole == self.pieces, f"{where}: the item differs from its deltas")
        self.items.append(item)
        self.open_item = None

    def close(self) -> CheckedAnswer:
        require(self.final_response is not None, "the stream ends without response.completed")
        require(
            self.final_response["output"] == self.items,
            "the items of response.completed differ from the streamed items",
        )
        return _read_completed(self.final_response)


RESPONSES = WireCheck(
    name="responses",
    path="/v1/responses",
    stream_type="text/event-stream",
    build_body=_build_body,
    read_response=_read_response,
    read_stream=_read_stream,
    read_error=read_openai_error,
)
