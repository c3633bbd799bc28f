"""Decode a chat completions request. Variants that one client uses are accepted from all.

Fields that only this wire has go to `ClientRequest.extra`, and so do tools that are not functions: a backend with the
same API gets them back. `strict` of a tool is dropped: this gateway checks arguments against the schema.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Request, ToolSpec
from callwright.wire.base import ClientRequest
from callwright.wire.openai_chat.chat_messages import decode_messages
from callwright.wire.request_fields import RequestFields, parse_body

__all__ = ["decode_request"]

_OPTION_TYPES: dict[str, tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int,),
    "max_tokens": (int,),
    "seed": (int,),
    "presence_penalty": (int, float),
    "frequency_penalty": (int, float),
    "response_format": (dict,),
    "reasoning_effort": (str,),
}
_KNOWN_FIELDS = frozenset(_OPTION_TYPES) | {
    "function_call",
    "functions",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "stop",
    "stream",
    "stream_options",
    "tool_choice",
    "tools",
}
# `any` is Mistral's word.
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def decode_request(body: bytes) -> ClientRequest:
    """Decode a request; `RequestError` names the field that is wrong."""
    fields = parse_body(body)
    tools, other_tools = _decode_tools(fields)
    functions = not tools and bool(fields.get("functions", list))
    if functions:
        tools = [_decode_tool(each) for each in fields.iter_objects("functions")]
    if other_tools and not tools:
        raise RequestError("tools has no function; other kinds of tools are not supported", param="tools")
    extra = {key: value for key, value in fields.values.items() if key not in _KNOWN_FIELDS}
    if other_tools:
        extra["tools"] = other_tools
    usage = fields.get_object("stream_options")
    return ClientRequest(
        request=Request(
            model=fields.require_text("model"),
            messages=decode_messages(fields),
            tools=tuple(tools),
            tool_choice=_decode_tool_choice(fields, "function_call" if functions else "tool_choice", tools),
            parallel_tool_calls=fields.get("parallel_tool_calls", bool) is not False,
            options=_decode_options(fields),
        ),
        stream=bool(fields.get("stream", bool)),
        choices=_decode_choice_count(fields),
        include_usage=usage is not None and bool(usage.get("include_usage", bool)),
        functions=functions,
        extra=extra,
    )


def _decode_options(fields: RequestFields) -> dict[str, Any]:
    keys = _OPTION_TYPES.keys() & fields.values.keys()
    options: dict[str, Any] = {
        key: value for key in sorted(keys) if (value := fields.get(key, *_OPTION_TYPES[key])) is not None
    }
    # The newer name; it also stays in `extra`, so that the request to a server uses the client's name.
    limit = fields.get("max_completion_tokens", int)
    if limit is not None:
        options["max_tokens"] = limit
    stop = fields.get("stop", str, list)
    if stop:
        options["stop"] = [stop] if isinstance(stop, str) else list(stop)
        if not all(isinstance(each, str) for each in options["stop"]):
            raise fields.build_error("stop", "a string or a list of strings")
    return options


def _decode_choice_count(fields: RequestFields) -> int:
    count = fields.get("n", int)
    if count is not None and count < 1:
        raise RequestError(f"n must be at least 1, not {count}", param="n")
    return count or 1


def _decode_tools(fields: RequestFields) -> tuple[list[ToolSpec], list[Any]]:
    """Return the functions, and the other tools."""
    functions: list[ToolSpec] = []
    other_tools: list[Any] = []
    for entry in fields.iter_objects("tools"):
        if (entry.get_text("type") or "function") == "function":
            functions.append(_decode_tool(entry.get_object("function") or entry))
        else:
            other_tools.append(entry.values)
    return functions, other_tools


def _decode_tool(fields: RequestFields) -> ToolSpec:
    return ToolSpec(fields.require_text("name"), fields.get_text("description"), fields.get("parameters", dict) or {})


def _decode_tool_choice(fields: RequestFields, key: str, tools: list[ToolSpec]) -> str:
    """Return `auto`, `none`, `required`, or the name of the required tool. Without tools there is no choice."""
    value = fields.get(key, str, dict)
    if not value or not tools:
        return "auto"
    name = value if isinstance(value, str) else _decode_choice_object(RequestFields(value, fields.format_path(key)))
    if name in _TOOL_CHOICES:
        return _TOOL_CHOICES[name]
    if not any(tool.name == name for tool in tools):
        raise RequestError(f"{key} requires {name!r}, which is not among the tools", param=key)
    return name


def _decode_choice_object(choice: RequestFields) -> str:
    """Return the word or name in a choice that is an object."""
    allowed = choice.get_object("allowed_tools")
    if allowed is not None:
        return allowed.get_text("mode") or "auto"
    function = choice.get_object("function") or choice
    return function.get_text("name") or choice.get_text("type") or function.require_text("name")
