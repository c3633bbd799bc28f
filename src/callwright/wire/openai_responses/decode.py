"""Decode `POST /v1/responses`: a body becomes a `ClientRequest`, or a `RequestError` that names the field.

`ClientRequest.extra` has what only this API knows, under its own field names. Some fields have a further meaning:
`instructions` says that the first message came from there, `tools` and `input` have what was left out of the request's
tools and messages, `reasoning` and `text` what remains of them without effort and format.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Message, Request, Text
from callwright.wire.base import ClientRequest
from callwright.wire.openai_responses.input_items import InputItemDecoder
from callwright.wire.openai_responses.toolset import RequestToolset
from callwright.wire.orphan_results import check_orphan_results
from callwright.wire.request_fields import RequestFields, parse_body

__all__ = ["RESPONSE_ID_PREFIX", "decode_request"]

RESPONSE_ID_PREFIX = "resp_"
"""The prefix of every answer's id; `ClientRequest.previous` has no prefix, like the earlier `ResponseHead.id`."""
_NUMBER_OPTIONS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_KNOWN_FIELDS = {
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "previous_response_id",
}
_KNOWN_FIELDS |= {"max_output_tokens", "reasoning", "text", *_NUMBER_OPTIONS}
_TOOL_CHOICE_MODES = ("auto", "none", "required")


def decode_request(body: bytes) -> ClientRequest:
    """Decode a request."""
    fields = parse_body(body)
    extra = {key: value for key, value in fields.values.items() if key not in _KNOWN_FIELDS and value is not None}
    if fields.get("background", bool):
        raise RequestError("background is not supported: answers are returned immediately", param="background")
    tools = RequestToolset()
    tools.add_tools(fields.iter_objects("tools"))
    items = _list_items(fields)
    for item in items:
        if item.values.get("type") == "additional_tools":  # Codex 0.144 and later: models with `use_responses_lite`
            tools.add_tools(item.iter_objects("tools"))
    history = InputItemDecoder(tools)
    for item in items:
        history.add_item(item)
    previous = fields.get_text("previous_response_id").removeprefix(RESPONSE_ID_PREFIX)
    messages = history.build_messages()
    if history.orphan_path and not previous and not history.has_references:
        check_orphan_results(messages, history.orphan_path)
    if not messages and not previous:
        raise fields.build_error("input", "a string or a list of items, and not be empty")
    if instructions := fields.get_text("instructions"):
        messages = (Message("system", (Text(instructions),)), *messages)
        extra["instructions"] = instructions
    offered, choice = _decode_tool_choice(fields, tools, extra)
    extra |= {key: value for key, value in (("tools", tools.hosted_tools), ("input", history.skipped_items)) if value}
    return ClientRequest(
        request=Request(
            model=fields.require_text("model"),
            messages=messages,
            tools=tuple(spec for name, spec in tools.specs.items() if name in offered),
            tool_choice=choice,
            parallel_tool_calls=fields.get("parallel_tool_calls", bool) is not False,
            options=_decode_options(fields, extra),
        ),
        stream=bool(fields.get("stream", bool)),
        include_usage=True,
        origins=tools.origins,
        previous=previous,
        extra=extra,
    )


def _list_items(fields: RequestFields) -> list[RequestFields]:
    """Return the input items; a string is one message of the user."""
    value = fields.values.get("input")
    if isinstance(value, str):
        return [RequestFields({"role": "user", "content": value}, "input")] if value else []
    return list(fields.iter_objects("input"))


def _decode_tool_choice(fields: RequestFields, tools: RequestToolset, extra: dict[str, Any]) -> tuple[set[str], str]:
    """Return the names of the offered tools, and the tool choice."""
    everything = set(tools.specs)
    value = fields.values.get("tool_choice")
    if value is None:
        return everything, "auto"
    if isinstance(value, str):
        if value not in _TOOL_CHOICE_MODES:
            raise RequestError(
                f"tool_choice must be one of {', '.join(_TOOL_CHOICE_MODES)}, or an object", param="tool_choice"
            )
        return everything, value
    choice = RequestFields(value, "tool_choice")
    match choice.get_text("type"):
        case "function" | "custom":
            return everything, tools.resolve_choice(choice)
        case "allowed_tools":
            named = [tool for tool in choice.iter_objects("tools") if tool.values.get("type") in ("function", "custom")]
            mode = choice.get_text("mode")
            return {tools.resolve_choice(tool) for tool in named}, mode if mode in _TOOL_CHOICE_MODES else "auto"
        case _:
            extra["tool_choice"] = value
            return everything, "auto"


def _decode_options(fields: RequestFields, extra: dict[str, Any]) -> dict[str, Any]:
    """Decode the options that all wires share, under the names of chat completions."""
    options: dict[str, Any] = {key: fields.get(key, int, float) for key in _NUMBER_OPTIONS}
    options["max_tokens"] = fields.get("max_output_tokens", int)
    reasoning, text = fields.get_object("reasoning"), fields.get_object("text")
    if reasoning:
        options["reasoning_effort"] = reasoning.get("effort", str)
        extra["reasoning"] = _copy_without(reasoning, "effort")
    if text:
        options["response_format"] = _decode_format(text.get_object("format"))
        extra["text"] = _copy_without(text, "format")
    return {key: value for key, value in options.items() if value is not None}


def _decode_format(form: RequestFields | None) -> dict[str, Any] | None:
    """Convert the response format to that of chat completions, where the name and the schema are one level deeper."""
    if form is None or (kind := form.get_text("type") or "text") == "text":
        return None
    inner = _copy_without(form, "type")
    return {"type": kind, kind: inner} if inner else {"type": kind}


def _copy_without(fields: RequestFields, key: str) -> dict[str, Any]:
    return {name: value for name, value in fields.values.items() if name != key and value is not None}
