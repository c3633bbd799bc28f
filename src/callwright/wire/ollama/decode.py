"""Ollama's own API, what clients send: bodies of `/api/chat` and `/api/generate` as an `Ask`.

    {"model": …, "messages": [{"role": "tool", "content": "…", "tool_name": "…"}], "tools": […], "options": {…}}

A client gets a stream unless it says `"stream": false`. Ids of calls are optional here: calls without one are numbered
through the conversation, so the same history gives the same ids, and a result without one answers the oldest open call
of its tool. What the server is told and the model never hears of (`num_ctx`, `keep_alive` …) goes to `extra`.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Request, Role, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import Ask
from callwright.wire.fields import Fields, parse
from callwright.wire.orphans import check_results
from callwright.wire.shapes import arguments_of, texts_of

__all__ = ["OPTIONS", "decode_chat", "decode_generate"]

OPTIONS = {
    "num_predict": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Numbers: Ollama's name, and everybody's."""

_CHAT = frozenset({"model", "messages", "tools", "stream", "format", "options"})
_GENERATE = frozenset({"model", "prompt", "system", "images", "suffix", "stream", "format", "options"})
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
_PICTURES = {"/9j/": "image/jpeg", "iVBOR": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the base64 of an image file begins."""


def decode_chat(body: bytes) -> Ask:
    """Read a request of `/api/chat`."""
    fields = parse(body)
    history = _History()
    for message in fields.objects("messages"):
        history.add(message)
    if history.orphan:
        check_results(history.messages, history.orphan)
    tools: list[ToolSpec] = []
    others: list[dict[str, Any]] = []
    for tool in fields.objects("tools"):
        if tool.text("type") in ("", "function"):
            tools.append(_tool(tool))
        else:
            others.append(dict(tool.values))
    return _ask(fields, _CHAT, tuple(history.messages), tuple(tools), {"tools": others})


def decode_generate(body: bytes) -> Ask:
    """Read a request of `/api/generate`: one prompt, no tools."""
    fields = parse(body)
    if fields.text("suffix"):
        raise RequestError("suffix is not supported: a chat model cannot fill in the middle", param="suffix")
    prompt: list[Part] = [Text(text) for text in (fields.text("prompt"),) if text]
    messages = [Message("system", (Text(text),)) for text in (fields.text("system"),) if text]
    if prompt := [*prompt, *_images(fields)]:
        messages.append(Message("user", tuple(prompt)))
    return _ask(fields, _GENERATE, tuple(messages), (), {})


def _ask(
    fields: Fields,
    known: frozenset[str],
    messages: tuple[Message, ...],
    tools: tuple[ToolSpec, ...],
    extra: dict[str, Any],
) -> Ask:
    options, extra["options"] = _options(fields.nested("options"))
    if isinstance(think := fields.values.get("think"), str):
        options["reasoning_effort"] = think
    if wanted := _format(fields):
        options["response_format"] = wanted
    extra |= {key: value for key, value in fields.values.items() if key not in known}
    stream = fields.get("stream", bool)
    return Ask(
        request=Request(model=fields.need("model"), messages=messages, tools=tools, options=options),
        stream=stream is not False,
        include_usage=True,
        extra={key: value for key, value in extra.items() if value not in (None, [], {})},
    )


def _options(given: Fields | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that every server knows, and the others, whatever they are: Ollama's VS Code extension 0.0.8 puts
    private marks of its own among them.
    """
    if given is None:
        return {}, {}
    options = {name: value for own, name in OPTIONS.items() if (value := given.get(own, int, float)) is not None}
    if options.get("max_tokens", 0) < 0:
        del options["max_tokens"]  # -1 and -2 are no limit
    stop = given.get("stop", str, list)
    found: dict[str, Any] = dict(options)
    if stop:
        found["stop"] = [stop] if isinstance(stop, str) else texts_of(given, "stop")
    return found, {key: value for key, value in given.values.items() if key not in OPTIONS and key != "stop"}


def _format(fields: Fields) -> dict[str, Any] | None:
    wanted = fields.get("format", str, dict)
    if isinstance(wanted, dict):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted}}
    if wanted not in (None, "", "json"):
        raise RequestError('format must be "json" or a JSON schema', param="format")
    return {"type": "json_object"} if wanted else None


def _tool(tool: Fields) -> ToolSpec:
    function = tool.nested("function")
    if function is None:
        raise tool.wrong("function", "an object")
    parameters = function.nested("parameters")
    return ToolSpec(function.need("name"), function.text("description"), dict(parameters.values) if parameters else {})


def _images(owner: Fields) -> list[Image]:
    """Pictures are bare base64 here."""
    found = []
    for data in texts_of(owner, "images"):
        media_type = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "image/png")
        found.append(Image(f"data:{media_type};base64,{data}", media_type))
    return found


class _History:
    """The messages so far, and the calls that wait for a result."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.orphan = ""
        """Where the first result is that answers no call."""
        self._count = 0
        self._names: dict[str, str] = {}
        self._waiting: dict[str, str] = {}

    def add(self, message: Fields) -> None:
        """Take one entry of `messages`."""
        role = message.text("role")
        if role == "tool":
            self.messages.append(Message("tool", (self._result(message),)))
            return
        if role not in _ROLES:
            raise RequestError(
                f"{message.at('role')} must be system, user, assistant or tool", param=message.at("role")
            )
        parts: list[Part] = [Reasoning(text) for text in (message.text("thinking"),) if text]
        parts += [Text(text) for text in (message.text("content"),) if text]
        parts += _images(message)
        parts += [self._call(call) for call in message.objects("tool_calls")]
        if parts:
            self.messages.append(Message(_ROLES[role], tuple(parts)))

    def _call(self, call: Fields) -> ToolCall:
        function = call.nested("function")
        if function is None:
            raise call.wrong("function", "an object")
        call_id, name = call.text("id") or self._next_id(), function.need("name")
        self._names[call_id] = self._waiting[call_id] = name
        return ToolCall(call_id, name, arguments_of(function, "arguments"))

    def _next_id(self) -> str:
        while True:
            self._count += 1
            if (call_id := f"call_{self._count}") not in self._names:
                return call_id

    def _result(self, message: Fields) -> ToolResult:
        call_id, name = message.text("tool_call_id"), message.text("tool_name", "name")
        if not call_id:
            call_id = next((at for at, tool in self._waiting.items() if name in ("", tool)), "")
        if call_id not in self._names:
            self.orphan = self.orphan or message.at("tool_call_id" if call_id else "tool_name")
        self._waiting.pop(call_id, None)
        content, images = message.text("content"), tuple(_images(message))
        return ToolResult(call_id, content, self._names.get(call_id, name), images=images)
