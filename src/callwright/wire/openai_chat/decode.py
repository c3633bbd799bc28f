"""A chat completions request, read. What one client writes its own way is accepted from all.

Fields that only this wire knows end in `Ask.extra`, and so do tools that are no functions: a backend that speaks this
wire gets them back. `strict` of a tool is dropped: arguments are held to the schema here.
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
    """Read a request; `RequestError` names the field that is wrong."""
    try:
        return _build_client_request(parse_body(body))
    except RecursionError as problem:
        raise RequestError("the body is nested too deeply") from problem


def _build_client_request(fields: RequestFields) -> ClientRequest:
    tools, others = _decode_tools(fields)
    functions = not tools and bool(fields.get("functions", list))
    if functions:
        tools = [_decode_tool(each) for each in fields.iter_objects("functions")]
    if others and not tools:
        raise RequestError("tools holds no function; other kinds of tools cannot be served", param="tools")
    extra = {key: value for key, value in fields.values.items() if key not in _KNOWN_FIELDS}
    if others:
        extra["tools"] = others
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
    given = _OPTION_TYPES.keys() & fields.values.keys()
    options: dict[str, Any] = {
        key: value for key in sorted(given) if (value := fields.get(key, *_OPTION_TYPES[key])) is not None
    }
    # The newer name; it stays in `extra` as well, where the caller of a server sees which one the client used.
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
    """The functions, and what else is offered."""
    functions: list[ToolSpec] = []
    others: list[Any] = []
    for entry in fields.iter_objects("tools"):
        if (entry.get_text("type") or "function") == "function":
            functions.append(_decode_tool(entry.get_object("function") or entry))
        else:
            others.append(entry.values)
    return functions, others


def _decode_tool(fields: RequestFields) -> ToolSpec:
    return ToolSpec(fields.require_text("name"), fields.get_text("description"), fields.get("parameters", dict) or {})


def _decode_tool_choice(fields: RequestFields, key: str, tools: list[ToolSpec]) -> str:
    """`auto`, `none`, `required`, or the name of the one tool to call. Without tools there is nothing to choose."""
    value = fields.get(key, str, dict)
    if not value or not tools:
        return "auto"
    name = value if isinstance(value, str) else _decode_choice_object(RequestFields(value, fields.format_path(key)))
    if name in _TOOL_CHOICES:
        return _TOOL_CHOICES[name]
    if not any(tool.name == name for tool in tools):
        raise RequestError(f"{key} asks for {name!r}, which is not among the tools", param=key)
    return name


def _decode_choice_object(choice: RequestFields) -> str:
    """The word or name in a choice that is an object."""
    allowed = choice.get_object("allowed_tools")
    if allowed is not None:
        return allowed.get_text("mode") or "auto"
    function = choice.get_object("function") or choice
    return function.get_text("name") or choice.get_text("type") or function.require_text("name")
