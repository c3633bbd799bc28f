"""A chat completions request, read. What one client writes its own way is accepted from all.

Fields that only this wire knows end in `Ask.extra`, and so do tools that are no functions: a backend that speaks this
wire gets them back. `strict` of a tool is dropped: arguments are held to the schema here.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Request, ToolSpec
from callwright.wire.base import Ask
from callwright.wire.fields import Fields, parse
from callwright.wire.openai_chat.history import read_messages

__all__ = ["decode"]

_OPTIONS: dict[str, tuple[type, ...]] = {
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
_HANDLED = frozenset(_OPTIONS) | {
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
_CHOICES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def decode(body: bytes) -> Ask:
    """Read a request; `RequestError` names the field that is wrong."""
    try:
        return _ask(parse(body))
    except RecursionError as problem:
        raise RequestError("the body is nested too deeply") from problem


def _ask(fields: Fields) -> Ask:
    tools, others = _tools(fields)
    functions = not tools and bool(fields.get("functions", list))
    if functions:
        tools = [_tool(each) for each in fields.objects("functions")]
    if others and not tools:
        raise RequestError("tools holds no function; other kinds of tools cannot be served", param="tools")
    extra = {key: value for key, value in fields.values.items() if key not in _HANDLED}
    if others:
        extra["tools"] = others
    usage = fields.nested("stream_options")
    return Ask(
        request=Request(
            model=fields.need("model"),
            messages=read_messages(fields),
            tools=tuple(tools),
            tool_choice=_tool_choice(fields, "function_call" if functions else "tool_choice", tools),
            parallel_tool_calls=fields.get("parallel_tool_calls", bool) is not False,
            options=_options(fields),
        ),
        stream=bool(fields.get("stream", bool)),
        choices=_choices(fields),
        include_usage=usage is not None and bool(usage.get("include_usage", bool)),
        functions=functions,
        extra=extra,
    )


def _options(fields: Fields) -> dict[str, Any]:
    given = _OPTIONS.keys() & fields.values.keys()
    options: dict[str, Any] = {
        key: value for key in sorted(given) if (value := fields.get(key, *_OPTIONS[key])) is not None
    }
    # The newer name; it stays in `extra` as well, where the caller of a server sees which one the client used.
    limit = fields.get("max_completion_tokens", int)
    if limit is not None:
        options["max_tokens"] = limit
    stop = fields.get("stop", str, list)
    if stop:
        options["stop"] = [stop] if isinstance(stop, str) else list(stop)
        if not all(isinstance(each, str) for each in options["stop"]):
            raise fields.wrong("stop", "a string or a list of strings")
    return options


def _choices(fields: Fields) -> int:
    count = fields.get("n", int)
    if count is not None and count < 1:
        raise RequestError(f"n must be at least 1, not {count}", param="n")
    return count or 1


def _tools(fields: Fields) -> tuple[list[ToolSpec], list[Any]]:
    """The functions, and what else is offered."""
    functions: list[ToolSpec] = []
    others: list[Any] = []
    for entry in fields.objects("tools"):
        if (entry.text("type") or "function") == "function":
            functions.append(_tool(entry.nested("function") or entry))
        else:
            others.append(entry.values)
    return functions, others


def _tool(fields: Fields) -> ToolSpec:
    return ToolSpec(fields.need("name"), fields.text("description"), fields.get("parameters", dict) or {})


def _tool_choice(fields: Fields, key: str, tools: list[ToolSpec]) -> str:
    """`auto`, `none`, `required`, or the name of the one tool to call. Without tools there is nothing to choose."""
    value = fields.get(key, str, dict)
    if not value or not tools:
        return "auto"
    name = value if isinstance(value, str) else _chosen(Fields(value, fields.at(key)))
    if name in _CHOICES:
        return _CHOICES[name]
    if not any(tool.name == name for tool in tools):
        raise RequestError(f"{key} asks for {name!r}, which is not among the tools", param=key)
    return name


def _chosen(choice: Fields) -> str:
    """The word or name in a choice that is an object."""
    allowed = choice.nested("allowed_tools")
    if allowed is not None:
        return allowed.text("mode") or "auto"
    function = choice.nested("function") or choice
    return function.text("name") or choice.text("type") or function.need("name")
