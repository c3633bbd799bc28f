"""Ollama's API, server side: decode `/api/chat` and `/api/generate` as a `ClientRequest`.

    {"model": …, "messages": [{"role": "tool", "content": "…", "tool_name": "…"}], "tools": […], "options": {…}}

A client gets a stream unless it sends `"stream": false`. Call ids are optional here: calls without one are numbered
through the conversation, so the same history gives the same ids, and a result without one answers the oldest open call
of its tool. Options for the server, not the model (`num_ctx`, `keep_alive` …), go to `extra`.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Reasoning, Request, Role, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.argument_json import read_arguments, read_strings
from callwright.wire.base import ClientRequest
from callwright.wire.open_calls import OpenCalls
from callwright.wire.orphan_results import check_orphan_results
from callwright.wire.request_fields import RequestFields, parse_body

__all__ = ["OPTION_NAMES", "decode_chat_request", "decode_generate_request"]

OPTION_NAMES = {
    "num_predict": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Numeric options: Ollama's name, and the shared name."""

_CHAT_FIELDS = frozenset({"model", "messages", "tools", "stream", "format", "options"})
_GENERATE_FIELDS = frozenset({"model", "prompt", "system", "images", "suffix", "stream", "format", "options"})
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
_IMAGE_SIGNATURES = {"/9j/": "image/jpeg", "iVBOR": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""The first characters of the base64 of an image file."""


def decode_chat_request(body: bytes) -> ClientRequest:
    """Decode a request of `/api/chat`."""
    fields = parse_body(body)
    history = _HistoryDecoder()
    for message in fields.iter_objects("messages"):
        history.add_message(message)
    if history.orphan_path:
        check_orphan_results(history.messages, history.orphan_path)
    tools: list[ToolSpec] = []
    others: list[dict[str, Any]] = []
    for tool in fields.iter_objects("tools"):
        if tool.get_text("type") in ("", "function"):
            tools.append(_decode_tool(tool))
        else:
            others.append(dict(tool.values))
    return _build_client_request(fields, _CHAT_FIELDS, tuple(history.messages), tuple(tools), {"tools": others})


def decode_generate_request(body: bytes) -> ClientRequest:
    """Decode a request of `/api/generate`: one prompt, no tools."""
    fields = parse_body(body)
    if fields.get_text("suffix"):
        raise RequestError("suffix is not supported: a chat model cannot fill in the middle", param="suffix")
    prompt: list[Part] = [Text(text) for text in (fields.get_text("prompt"),) if text]
    messages = [Message("system", (Text(text),)) for text in (fields.get_text("system"),) if text]
    if prompt := [*prompt, *_decode_images(fields)]:
        messages.append(Message("user", tuple(prompt)))
    return _build_client_request(fields, _GENERATE_FIELDS, tuple(messages), (), {})


def _build_client_request(
    fields: RequestFields,
    known: frozenset[str],
    messages: tuple[Message, ...],
    tools: tuple[ToolSpec, ...],
    extra: dict[str, Any],
) -> ClientRequest:
    options, extra["options"] = _decode_options(fields.get_object("options"))
    if isinstance(think := fields.values.get("think"), str):
        options["reasoning_effort"] = think
    if response_format := _decode_format(fields):
        options["response_format"] = response_format
    extra |= {key: value for key, value in fields.values.items() if key not in known}
    stream = fields.get("stream", bool)
    return ClientRequest(
        request=Request(model=fields.require_text("model"), messages=messages, tools=tools, options=options),
        stream=stream is not False,
        include_usage=True,
        extra={key: value for key, value in extra.items() if value not in (None, [], {})},
    )


def _decode_options(options_fields: RequestFields | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options that every server knows, and all others: Ollama's VS Code extension 0.0.8 adds some."""
    if options_fields is None:
        return {}, {}
    options = {
        name: value for own, name in OPTION_NAMES.items() if (value := options_fields.get(own, int, float)) is not None
    }
    if options.get("max_tokens", 0) < 0:
        del options["max_tokens"]  # -1 and -2 are no limit
    stop = options_fields.get("stop", str, list)
    values: dict[str, Any] = dict(options)
    if stop:
        values["stop"] = [stop] if isinstance(stop, str) else read_strings(options_fields, "stop")
    return values, {
        key: value for key, value in options_fields.values.items() if key not in OPTION_NAMES and key != "stop"
    }


def _decode_format(fields: RequestFields) -> dict[str, Any] | None:
    output_format = fields.get("format", str, dict)
    if isinstance(output_format, dict):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": output_format}}
    if output_format not in (None, "", "json"):
        raise RequestError('format must be "json" or a JSON schema', param="format")
    return {"type": "json_object"} if output_format else None


def _decode_tool(tool: RequestFields) -> ToolSpec:
    function = tool.get_object("function")
    if function is None:
        raise tool.build_error("function", "an object")
    parameters = function.get_object("parameters")
    return ToolSpec(
        function.require_text("name"), function.get_text("description"), dict(parameters.values) if parameters else {}
    )


def _decode_images(owner: RequestFields) -> list[Image]:
    """Decode images, which are bare base64 here."""
    images = []
    for data in read_strings(owner, "images"):
        media_type = next((kind for start, kind in _IMAGE_SIGNATURES.items() if data.startswith(start)), "image/png")
        images.append(Image(f"data:{media_type};base64,{data}", media_type))
    return images


class _HistoryDecoder:
    """Collects the messages so far, and the calls that wait for a result."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.orphan_path = ""
        """The path of the first result without a call."""
        self._count = 0
        self._call_names: dict[str, str] = {}
        self._open_calls = OpenCalls()

    def add_message(self, message: RequestFields) -> None:
        """Add one entry of `messages`."""
        role = message.get_text("role")
        if role == "tool":
            self.messages.append(Message("tool", (self._decode_result(message),)))
            return
        if role not in _ROLES:
            raise RequestError(
                f"{message.format_path('role')} must be system, user, assistant or tool",
                param=message.format_path("role"),
            )
        parts: list[Part] = [Reasoning(text) for text in (message.get_text("thinking"),) if text]
        parts += [Text(text) for text in (message.get_text("content"),) if text]
        parts += _decode_images(message)
        parts += [self._decode_call(call) for call in message.iter_objects("tool_calls")]
        if parts:
            self.messages.append(Message(_ROLES[role], tuple(parts)))

    def _decode_call(self, call: RequestFields) -> ToolCall:
        function = call.get_object("function")
        if function is None:
            raise call.build_error("function", "an object")
        call_id, name = call.get_text("id") or self._make_call_id(), function.require_text("name")
        self._call_names[call_id] = name
        self._open_calls.add_call(call_id, name)
        return ToolCall(call_id, name, read_arguments(function, "arguments"))

    def _make_call_id(self) -> str:
        while True:
            self._count += 1
            if (call_id := f"call_{self._count}") not in self._call_names:
                return call_id

    def _decode_result(self, message: RequestFields) -> ToolResult:
        call_id, name = message.get_text("tool_call_id"), message.get_text("tool_name", "name")
        if call_id:
            self._open_calls.close_call(call_id)
        else:
            call_id = self._open_calls.close_next(name)
        if call_id not in self._call_names:
            self.orphan_path = self.orphan_path or message.format_path("tool_call_id" if call_id else "tool_name")
        content, images = message.get_text("content"), tuple(_decode_images(message))
        return ToolResult(call_id, content, self._call_names.get(call_id, name), images=images)
