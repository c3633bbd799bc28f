"""The strict check of Chat Completions: the one format that every OpenAI client and library accepts.

Each rule comes from a measurement. The role is first (openai-js 7.53 and langchainjs 1.5 lose calls without it).
Index, id, type and name occur once per call (openai-js, AI SDK, and langchain, which joins repeated names). Arguments
are strings (all). There is a finish reason (opencode 1.18 retries endlessly without one). No chunk has both text and
calls (Copilot Chat 0.66 drops the text).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from callwright.model import ToolCall

__all__ = ["CHAT"]

_FINISH_REASONS = ("stop", "tool_calls", "length", "content_filter")


def _build_body(trial: SmokeRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"model": trial.model, "messages": [{"role": "user", "content": trial.prompt}]}
    body["stream"] = trial.stream
    if trial.stream:
        body["stream_options"] = {"include_usage": True}
    if trial.tool:
        spec = {"name": trial.tool.name, "description": trial.tool.description, "parameters": trial.tool.parameters}
        body["tools"] = [{"type": "function", "function": spec}]
        body["tool_choice"] = "auto" if trial.call else "required"
    if trial.call:
        function = {"name": trial.call.name, "arguments": trial.call.arguments}
        call = {"id": trial.call.id, "type": "function", "function": function}
        body["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": trial.call.id, "content": trial.result},
        ]
    return body


def _read_response(body: bytes) -> CheckedAnswer:
    answer = decode_json(body, "the answer")
    require_value(answer, "object", "chat.completion", "the answer")
    for key, kind in (("id", str), ("created", int), ("model", str)):
        require_field(answer, key, kind, "the answer")
    choices = require_field(answer, "choices", list, "the answer")
    require(len(choices) == 1, f"{len(choices)} choices where one was requested")
    message = require_field(choices[0], "message", dict, "the choice")
    require_value(message, "role", "assistant", "the message")
    calls = tuple(_read_call(call, f"call {index}") for index, call in enumerate(message.get("tool_calls", [])))
    require(calls or "tool_calls" not in message, "the message has an empty tool_calls")
    require("content" in message, "the message has no content")
    content = message["content"]
    require(
        isinstance(content, str) or (content is None and calls), "content is not a string in a message without calls"
    )
    finish = require_field(choices[0], "finish_reason", str, "the choice")
    _check_usage(answer)
    return _check_answer(content or "", calls, finish)


def _read_call(call: Any, where: str) -> ToolCall:
    require_value(call, "type", "function", where)
    function = require_field(call, "function", dict, where)
    arguments = require_object_text(require_field(function, "arguments", str, where), f"{where}: its arguments")
    require(
        require_field(call, "id", str, where) and require_field(function, "name", str, where),
        f"{where} has an empty id or name",
    )
    return ToolCall(call["id"], function["name"], arguments)


def _check_usage(value: Any) -> None:
    usage = require_field(value, "usage", dict, "the answer")
    require_token_counts(usage, "prompt_tokens", "completion_tokens", total="total_tokens")


def _check_answer(text: str, calls: Sequence[ToolCall], finish: str) -> CheckedAnswer:
    require(finish in _FINISH_REASONS, f"finish_reason is {finish!r}")
    return build_checked_answer(text, calls, finish)


def _read_stream(body: bytes) -> CheckedAnswer:
    stream = _StreamChecker()
    events = parse_sse(body)
    require(not any(frame.event for frame in events), "the stream has event: lines, which this wire does not have")
    require(events and events[-1].data == "[DONE]", "the stream does not end with data: [DONE]")
    require(body.endswith(b"data: [DONE]\n\n"), "something follows data: [DONE]")
    for frame in events[:-1]:
        stream.feed(decode_json(frame.data, "a chunk"))
    return stream.close()


class _StreamChecker:
    """Checks one stream, chunk by chunk."""

    def __init__(self) -> None:
        self.head: tuple[Any, ...] | None = None
        self.has_role = False
        self.text = ""
        self.calls: list[dict[str, str]] = []
        self.finish: str | None = None
        self.has_usage = False

    def feed(self, chunk: Any) -> None:
        require("error" not in chunk, f"the stream reports an error: {chunk.get('error')}")
        require_value(chunk, "object", "chat.completion.chunk", "a chunk")
        head = tuple(
            require_field(chunk, key, kind, "a chunk") for key, kind in (("id", str), ("created", int), ("model", str))
        )
        require(self.head in (None, head), "id, created or model changes between chunks")
        self.head = head
        require(not self.has_usage, "a chunk follows the usage")
        for choice in require_field(chunk, "choices", list, "a chunk"):
            self._check_choice(choice)
        if not chunk["choices"]:
            require(self.finish, "a chunk without choices comes before the finish")
            _check_usage(chunk)
            self.has_usage = True

    def _check_choice(self, choice: Any) -> None:
        require(require_field(choice, "index", int, "a choice") == 0, "there is more than one choice")
        require(self.finish is None, "a choice goes on after its finish_reason")
        delta = require_field(choice, "delta", dict, "a choice")
        require(
            ("role" in delta) != self.has_role, "role comes twice" if self.has_role else "the first delta has no role"
        )
        if not self.has_role:
            require_value(delta, "role", "assistant", "the first delta")
            self.has_role = True
        text = delta.get("content")
        require(text is None or isinstance(text, str), f"content is {text!r}")
        self.text += text or ""
        if "tool_calls" in delta:
            require(not text, "text and tool_calls share a chunk")
            require(delta["tool_calls"], "a delta has an empty tool_calls")
            for call in require_field(delta, "tool_calls", list, "a delta"):
                self._check_call(call)
        require("finish_reason" in choice, "a choice has no finish_reason, not even null")
        self.finish = choice["finish_reason"]
        require(self.finish is None or not set(delta) - {"role"}, "the finish comes with a delta that is not empty")

    def _check_call(self, call: Any) -> None:
        index = require_field(call, "index", int, "a call")
        function = require_field(call, "function", dict, f"call {index}")
        arguments = require_field(function, "arguments", str, f"call {index}")
        if index == len(self.calls):
            for value, key in ((call, "id"), (function, "name")):
                require(
                    require_field(value, key, str, f"the first delta of call {index}"), f"call {index}: {key} is empty"
                )
            require_value(call, "type", "function", f"the first delta of call {index}")
            self.calls.append({"id": call["id"], "name": function["name"], "arguments": ""})
        else:
            require(index == len(self.calls) - 1, f"a delta has index {index} where {len(self.calls) - 1} is open")
            repeated = sorted({"id", "type"} & set(call)) + sorted({"name"} & set(function))
            require(not repeated, f"call {index} repeats its {', '.join(repeated)}")
        self.calls[index]["arguments"] += arguments

    def close(self) -> CheckedAnswer:
        require(self.has_role, "the stream has no delta")
        finish = self.finish or ""
        require(finish, "the stream has no finish_reason")
        require(self.has_usage, "the stream has no usage, although the request includes it")
        calls = [
            ToolCall(call["id"], call["name"], require_object_text(call["arguments"], f"call {index}: its arguments"))
            for index, call in enumerate(self.calls)
        ]
        return _check_answer(self.text, calls, finish)


CHAT = WireCheck(
    name="chat",
    path="/v1/chat/completions",
    stream_type="text/event-stream",
    build_body=_build_body,
    read_response=_read_response,
    read_stream=_read_stream,
    read_error=read_openai_error,
)
