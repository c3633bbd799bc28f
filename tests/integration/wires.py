"""The four wires as a client sees them: how a turn is asked for, and what an answer says, in the same words for all.

Reading is strict: a stream that has no end, says anything after it, or goes on with a choice that is over fails here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.support.chat_shape import check_stream as check_chat
from tests.support.responses import check_response
from tests.support.responses import check_stream as check_responses

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = {"get_weather": WEATHER, "ping": {"type": "object", "properties": {}}}
QUESTION = "How is the weather in Paris?"


class Call(NamedTuple):
    """A call that a client may run."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """What an answer says."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    ids: tuple[str, ...] = ()
    """Those of the calls."""
    finish: str = ""
    """In the words of chat completions; empty for a turn that failed."""
    usage: tuple[int, int] | None = None
    """Tokens of the prompt and of the answer."""
    error: str = ""
    """The message of a failure inside a stream …"""
    ending: str = ""
    """… and how the stream then ends, in the words of docs/errors.md."""

    @property
    def said(self) -> tuple[str, str, tuple[Call, ...], str]:
        """What must be the same on every wire."""
        return self.text, self.reasoning, self.calls, self.finish


class Round(NamedTuple):
    """A call that was made, and what came of it."""

    id: str
    call: Call
    result: str


@dataclass(frozen=True)
class Wire:
    """One of them."""

    name: str
    path: str
    content_type: str
    body: Callable[..., dict[str, Any]]
    """(model, stream, rounds, tools) -> the request."""
    streamed: Callable[[bytes], Heard]
    whole: Callable[[bytes], Heard]
    problem: Callable[[Any], tuple[str, str]]
    """The body of an error -> its message, and what a program can tell it by."""


def _body(model: str, *, stream: bool, **rest: Any) -> dict[str, Any]:
    return {"model": model, "stream": stream, **{name: value for name, value in rest.items() if value}}


def _frames(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of a stream, comments aside."""
    text = data.decode()
    assert text.endswith("\n\n"), text[-200:]
    for block in text[:-2].split("\n\n"):
        if block.startswith(":"):
            continue
        name, _, body = block.partition("\n")
        event = json.loads(body.removeprefix("data: "))
        assert name == f"event: {event['type']}", block
        yield event


# ── OpenAI's chat completions ────────────────────────────────────────────────────────────────────


def _functions() -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": each}} for name, each in TOOLS.items()]


def _chat_body(model: str, *, stream: bool, rounds: Sequence[Round] = (), tools: bool = True) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for one in rounds:
        function = {"name": one.call.name, "arguments": json.dumps(one.call.arguments)}
        call = {"id": one.id, "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": one.id, "content": one.result},
        ]
    usage = {"include_usage": True} if stream else None
    offered = _functions() if tools else None
    return _body(model, stream=stream, messages=messages, tools=offered, stream_options=usage)


def chat_choices(data: bytes, choices: int) -> list[Heard]:
    """The choices of a stream."""
    chunks = check_chat(data, choices=choices, usage=True)
    failure = chunks[-1].get("error", {})
    usage = chunks[-1].get("usage")
    states = [_ChatChoice() for _ in range(choices)]
    for chunk in chunks:
        for choice in chunk.get("choices", ()):
            states[choice["index"]].add(choice["delta"], choice["finish_reason"])
    return [state.heard(usage, failure) for state in states]


class _ChatChoice:
    def __init__(self) -> None:
        self.text = self.reasoning = self.finish = ""
        self.calls: list[list[str]] = []

    def add(self, delta: dict[str, Any], finish: str | None) -> None:
        self.text += delta.get("content", "")
        self.reasoning += delta.get("reasoning_content", "")
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                self.calls.append([call["id"], call["function"]["name"], ""])
            self.calls[call["index"]][2] += call["function"]["arguments"]
        self.finish = finish or self.finish

    def heard(self, usage: dict[str, Any] | None, failure: dict[str, Any]) -> Heard:
        # Clients run calls when a turn ends on them, and not otherwise.
        runs = self.finish == "tool_calls"
        return Heard(
            self.text,
            self.reasoning,
            tuple(Call(name, json.loads(arguments)) for _, name, arguments in self.calls) if runs else (),
            tuple(each[0] for each in self.calls) if runs else (),
            "" if failure else self.finish,
            _openai_usage(usage),
            failure.get("message", ""),
            f"finish `{self.finish}`, error `{failure['code']}`, `[DONE]`" if failure else "",
        )


def _openai_usage(usage: dict[str, Any] | None) -> tuple[int, int] | None:
    if usage is None:
        return None
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return usage["prompt_tokens"], usage["completion_tokens"]


def _chat_streamed(data: bytes) -> Heard:
    (heard,) = chat_choices(data, 1)
    return heard


def chat_whole(data: bytes) -> list[Heard]:
    """The choices of an answer in one piece."""
    body = json.loads(data)
    return [_chat_choice(choice, body["usage"]) for choice in body["choices"]]


def _chat_choice(choice: dict[str, Any], usage: dict[str, Any]) -> Heard:
    message = choice["message"]
    calls = message.get("tool_calls", [])
    return Heard(
        message["content"] or "",
        message.get("reasoning_content", ""),
        tuple(Call(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in calls),
        tuple(each["id"] for each in calls),
        choice["finish_reason"],
        _openai_usage(usage),
    )


def _openai_problem(body: Any) -> tuple[str, str]:
    assert body.keys() == {"error"}
    error = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error["message"], error["code"] or error["type"]


CHAT = Wire(
    "chat",
    "/v1/chat/completions",
    "text/event-stream",
    _chat_body,
    _chat_streamed,
    lambda data: chat_whole(data)[0],
    _openai_problem,
)

# ── OpenAI's Responses ───────────────────────────────────────────────────────────────────────────


def _responses_body(model: str, *, stream: bool, rounds: Sequence[Round] = (), tools: bool = True) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for one in rounds:
        call = {"call_id": one.id, "name": one.call.name, "arguments": json.dumps(one.call.arguments)}
        items += [
            {"type": "function_call", **call},
            {"type": "function_call_output", "call_id": one.id, "output": one.result},
        ]
    offered = [{"type": "function", "name": name, "parameters": each} for name, each in TOOLS.items()]
    return _body(model, stream=stream, input=items, tools=offered if tools else None)


def _response(response: dict[str, Any]) -> Heard:
    check_response(response)
    output = response["output"]
    calls = [item for item in output if item["type"] == "function_call"]
    reason = (response["incomplete_details"] or {}).get("reason")
    finish = {"max_output_tokens": "length"}.get(reason, reason or ("tool_calls" if calls else "stop"))
    usage = response["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    return Heard(
        "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"]),
        "".join(part["text"] for item in output if item["type"] == "reasoning" for part in item["summary"]),
        tuple(Call(item["name"], json.loads(item["arguments"])) for item in calls),
        tuple(item["call_id"] for item in calls),
        finish,
        (usage["input_tokens"], usage["output_tokens"]),
    )


def _responses_streamed(data: bytes) -> Heard:
    response = check_responses(data)[-1]["response"]
    heard = _response(response)
    if response["status"] != "failed":
        return heard
    error = response["error"]
    return replace(
        heard, calls=(), ids=(), finish="", error=error["message"], ending=f"`response.failed`, `{error['code']}`"
    )


RESPONSES = Wire(
    "responses",
    "/v1/responses",
    "text/event-stream",
    _responses_body,
    _responses_streamed,
    lambda data: _response(json.loads(data)),
    _openai_problem,
)

# ── Anthropic's Messages ─────────────────────────────────────────────────────────────────────────


def _messages_body(model: str, *, stream: bool, rounds: Sequence[Round] = (), tools: bool = True) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for one in rounds:
        use = {"type": "tool_use", "id": one.id, "name": one.call.name, "input": one.call.arguments}
        result = {"type": "tool_result", "tool_use_id": one.id, "content": one.result}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    offered = [{"name": name, "input_schema": each} for name, each in TOOLS.items()]
    return _body(model, stream=stream, messages=messages, tools=offered if tools else None, max_tokens=1000)


_STOPS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def _message(message: dict[str, Any]) -> Heard:
    blocks = message["content"]
    uses = [block for block in blocks if block["type"] == "tool_use"]
    usage = message["usage"]
    return Heard(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        tuple(Call(block["name"], block["input"]) for block in uses),
        tuple(block["id"] for block in uses),
        _STOPS[message["stop_reason"]],
        (usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]),
    )


_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _messages_streamed(data: bytes) -> Heard:
    events = [event for event in _frames(data) if event["type"] != "ping"]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert kinds.count("message_stop") == 1
    failed = kinds[-2] == "error"
    assert failed != (kinds[-2] == "message_delta")
    message: dict[str, Any] = events[0]["message"]
    blocks: list[dict[str, Any]] = []
    closed: list[dict[str, Any]] = []
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks) == len(closed)
                blocks.append({**event["content_block"], "partial_json": ""})
            case "content_block_delta":
                kind = event["delta"]["type"]
                assert event["index"] == len(blocks) - 1 == len(closed)
                if kind in _GROWS:
                    blocks[-1][_GROWS[kind]] += event["delta"][_GROWS[kind]]
            case other:
                assert other == "content_block_stop"
                closed.append(blocks[-1])
    last = events[-2]
    told = {"delta": {"stop_reason": "refusal"}, "usage": message["usage"]} if failed else last
    if told["delta"]["stop_reason"] == "tool_use":
        for block in closed:
            block["input"] = json.loads(block["partial_json"] or "{}")
    else:  # as the API itself does it, a call that was cut is closed: clients know by the reason that it is none
        closed = [block for block in closed if block["type"] != "tool_use"]
    heard = _message({**message, "content": closed, **told["delta"], "usage": told["usage"]})
    if not failed:
        return heard
    ending = f"error `{last['error']['type']}`, `message_stop`"
    return replace(heard, finish="", usage=None, error=last["error"]["message"], ending=ending)


def _anthropic_problem(body: Any) -> tuple[str, str]:
    assert body.keys() == {"type", "error"}
    assert body["type"] == "error"
    assert body["error"].keys() == {"type", "message"}
    return body["error"]["message"], body["error"]["type"]


MESSAGES = Wire(
    "messages",
    "/v1/messages",
    "text/event-stream",
    _messages_body,
    _messages_streamed,
    lambda data: _message(json.loads(data)),
    _anthropic_problem,
)

# ── Ollama ───────────────────────────────────────────────────────────────────────────────────────


def _ollama_body(model: str, *, stream: bool, rounds: Sequence[Round] = (), tools: bool = True) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for one in rounds:
        call = {"function": {"name": one.call.name, "arguments": one.call.arguments}}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": one.call.name, "content": one.result},
        ]
    return _body(model, stream=stream, messages=messages, tools=_functions() if tools else None)


def _ollama_lines(lines: list[dict[str, Any]]) -> Heard:
    *_, last = lines
    assert [line["done"] for line in lines] == [*([False] * (len(lines) - 1)), True]
    messages = [line["message"] for line in lines]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    assert [call["function"]["index"] for call in calls] == list(range(len(calls)))
    return Heard(
        "".join(message["content"] for message in messages),
        "".join(message.get("thinking", "") for message in messages),
        tuple(Call(call["function"]["name"], call["function"]["arguments"]) for call in calls),
        tuple(call["id"] for call in calls),
        "tool_calls" if calls and last["done_reason"] == "stop" else last["done_reason"],
        (last["prompt_eval_count"], last["eval_count"]),
    )


def _ollama_streamed(data: bytes) -> Heard:
    assert data.endswith(b"\n")
    lines = [json.loads(line) for line in data.splitlines()]
    errors = [line["error"] for line in lines if "error" in line]
    heard = _ollama_lines([line for line in lines if "error" not in line])
    if not errors:
        return heard
    assert "error" in lines[-2]
    ending = f"error line, `done_reason: {lines[-1]['done_reason']}`"
    return replace(heard, finish="", usage=None, error=errors[0], ending=ending)


def _ollama_problem(body: Any) -> tuple[str, str]:
    assert body.keys() == {"error"}
    assert isinstance(body["error"], str)
    return body["error"], ""


OLLAMA = Wire(
    "ollama",
    "/api/chat",
    "application/x-ndjson",
    _ollama_body,
    _ollama_streamed,
    lambda data: _ollama_lines([json.loads(data)]),
    _ollama_problem,
)

WIRES = {wire.name: wire for wire in (CHAT, RESPONSES, MESSAGES, OLLAMA)}
