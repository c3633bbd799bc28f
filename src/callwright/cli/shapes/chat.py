"""Chat completions, strictly: the one shape that every client and library of the OpenAI kind takes.

The measurements behind each rule: role first (openai-js 7.53 and langchainjs 1.5 lose calls without it), index, id,
type and name once per call (openai-js, AI SDK, and langchain, which joins repeated names), string arguments (all), a
finish reason (opencode 1.18 asks again without end when there is none), no text beside calls in a chunk (Copilot
Chat 0.66 drops it).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from callwright.model import ToolCall

__all__ = ["CHAT"]

_REASONS = ("stop", "tool_calls", "length", "content_filter")


def _body(trial: Trial) -> dict[str, Any]:
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


def _whole(body: bytes) -> Seen:
    answer = decoded(body, "the answer")
    same(answer, "object", "chat.completion", "the answer")
    for key, kind in (("id", str), ("created", int), ("model", str)):
        field(answer, key, kind, "the answer")
    choices = field(answer, "choices", list, "the answer")
    need(len(choices) == 1, f"{len(choices)} choices where one was asked for")
    message = field(choices[0], "message", dict, "the choice")
    same(message, "role", "assistant", "the message")
    calls = tuple(_call(call, f"call {index}") for index, call in enumerate(message.get("tool_calls", [])))
    need(calls or "tool_calls" not in message, "the message has an empty tool_calls")
    need("content" in message, "the message has no content")
    content = message["content"]
    need(isinstance(content, str) or (content is None and calls), "content is not a string in a message without calls")
    finish = field(choices[0], "finish_reason", str, "the choice")
    _usage(answer)
    return _checked(content or "", calls, finish)


def _call(call: Any, where: str) -> ToolCall:
    same(call, "type", "function", where)
    function = field(call, "function", dict, where)
    arguments = object_text(field(function, "arguments", str, where), f"{where}: its arguments")
    need(field(call, "id", str, where) and field(function, "name", str, where), f"{where} has an empty id or name")
    return ToolCall(call["id"], function["name"], arguments)


def _usage(value: Any) -> None:
    usage = field(value, "usage", dict, "the answer")
    counts(usage, "prompt_tokens", "completion_tokens", total="total_tokens")


def _checked(text: str, calls: Sequence[ToolCall], finish: str) -> Seen:
    need(finish in _REASONS, f"finish_reason is {finish!r}")
    return seen(text, calls, finish)


def _streamed(body: bytes) -> Seen:
    stream = _Stream()
    events = frames(body)
    need(not any(frame.event for frame in events), "the stream has event: lines, which this wire does not know")
    need(events and events[-1].data == "[DONE]", "the stream does not end with data: [DONE]")
    need(body.endswith(b"data: [DONE]\n\n"), "something follows data: [DONE]")
    for frame in events[:-1]:
        stream.take(decoded(frame.data, "a chunk"))
    return stream.close()


class _Stream:
    """What was seen so far of one stream."""

    def __init__(self) -> None:
        self.head: tuple[Any, ...] | None = None
        self.role = False
        self.text = ""
        self.calls: list[dict[str, str]] = []
        self.finish: str | None = None
        self.usage = False

    def take(self, chunk: Any) -> None:
        need("error" not in chunk, f"the stream reports an error: {chunk.get('error')}")
        same(chunk, "object", "chat.completion.chunk", "a chunk")
        head = tuple(
            field(chunk, key, kind, "a chunk") for key, kind in (("id", str), ("created", int), ("model", str))
        )
        need(self.head in (None, head), "id, created or model changes between chunks")
        self.head = head
        need(not self.usage, "a chunk follows the usage")
        for choice in field(chunk, "choices", list, "a chunk"):
            self._choice(choice)
        if not chunk["choices"]:
            need(self.finish, "a chunk without choices comes before the finish")
            _usage(chunk)
            self.usage = True

    def _choice(self, choice: Any) -> None:
        need(field(choice, "index", int, "a choice") == 0, "there is more than one choice")
        need(self.finish is None, "a choice goes on after its finish_reason")
        delta = field(choice, "delta", dict, "a choice")
        need(("role" in delta) != self.role, "role comes twice" if self.role else "the first delta has no role")
        if not self.role:
            same(delta, "role", "assistant", "the first delta")
            self.role = True
        text = delta.get("content")
        need(text is None or isinstance(text, str), f"content is {text!r}")
        self.text += text or ""
        if "tool_calls" in delta:
            need(not text, "text and tool_calls share a chunk")
            need(delta["tool_calls"], "a delta has an empty tool_calls")
            for call in field(delta, "tool_calls", list, "a delta"):
                self._call(call)
        need("finish_reason" in choice, "a choice has no finish_reason, not even null")
        self.finish = choice["finish_reason"]
        need(self.finish is None or not set(delta) - {"role"}, "the finish comes with a delta that is not empty")

    def _call(self, call: Any) -> None:
        index = field(call, "index", int, "a call")
        function = field(call, "function", dict, f"call {index}")
        arguments = field(function, "arguments", str, f"call {index}")
        if index == len(self.calls):
            for value, key in ((call, "id"), (function, "name")):
                need(field(value, key, str, f"the first delta of call {index}"), f"call {index}: {key} is empty")
            same(call, "type", "function", f"the first delta of call {index}")
            self.calls.append({"id": call["id"], "name": function["name"], "arguments": ""})
        else:
            need(index == len(self.calls) - 1, f"a delta has index {index} where {len(self.calls) - 1} is open")
            repeated = sorted({"id", "type"} & set(call)) + sorted({"name"} & set(function))
            need(not repeated, f"call {index} repeats its {', '.join(repeated)}")
        self.calls[index]["arguments"] += arguments

    def close(self) -> Seen:
        need(self.role, "the stream has no delta")
        finish = self.finish or ""
        need(finish, "the stream has no finish_reason")
        need(self.usage, "the stream has no usage, which was asked for")
        calls = [
            ToolCall(call["id"], call["name"], object_text(call["arguments"], f"call {index}: its arguments"))
            for index, call in enumerate(self.calls)
        ]
        return _checked(self.text, calls, finish)


CHAT = Shape(
    name="chat",
    path="/v1/chat/completions",
    stream_type="text/event-stream",
    body=_body,
    whole=_whole,
    streamed=_streamed,
    refusal=openai_refusal,
)
