"""`POST /v1/responses`, read: a body becomes an `Ask`, or a `RequestError` that names the field.

`Ask.extra` keeps what only this API knows, under its own field names. Some of those are more than passed on:
`instructions` says that the first message came from there, `tools` and `input` hold what was left out of the request's
tools and messages, `reasoning` and `text` what is left of them without effort and format.
"""

from __future__ import annotations

from typing import Any

from callwright.errors import RequestError
from callwright.model import Message, Request, Text
from callwright.wire.base import Ask
from callwright.wire.fields import Fields, parse
from callwright.wire.openai_responses.items import History
from callwright.wire.openai_responses.tools import Toolset
from callwright.wire.orphans import check_results

__all__ = ["PREFIX", "decode"]

PREFIX = "resp_"
"""Before the id of every answer; `Ask.previous` is without it, the same as the earlier `Head.id`."""
_NUMBERS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_READ = {
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "previous_response_id",
}
_READ |= {"max_output_tokens", "reasoning", "text", *_NUMBERS}
_WORDS = ("auto", "none", "required")


def decode(body: bytes) -> Ask:
    """Read a request."""
    try:
        return _ask(parse(body))
    except RecursionError:
        raise RequestError("the body is nested too deeply") from None


def _ask(fields: Fields) -> Ask:
    extra = {key: value for key, value in fields.values.items() if key not in _READ and value is not None}
    if fields.get("background", bool):
        raise RequestError("background: answers are given at once here", param="background")
    tools = Toolset()
    tools.add(fields.objects("tools"))
    items = _items(fields)
    for item in items:
        if item.values.get("type") == "additional_tools":  # Codex 0.144 and later: models with `use_responses_lite`
            tools.add(item.objects("tools"))
    history = History(tools)
    for item in items:
        history.add(item)
    previous = fields.text("previous_response_id").removeprefix(PREFIX)
    messages = history.messages()
    if history.orphan and not previous and not history.has_references:
        check_results(messages, history.orphan)
    if not messages and not previous:
        raise fields.wrong("input", "a string or a list of items, and not be empty")
    if instructions := fields.text("instructions"):
        messages = (Message("system", (Text(instructions),)), *messages)
        extra["instructions"] = instructions
    offered, choice = _choice(fields, tools, extra)
    extra |= {key: value for key, value in (("tools", tools.left_out), ("input", history.set_aside)) if value}
    return Ask(
        request=Request(
            model=fields.need("model"),
            messages=messages,
            tools=tuple(spec for name, spec in tools.specs.items() if name in offered),
            tool_choice=choice,
            parallel_tool_calls=fields.get("parallel_tool_calls", bool) is not False,
            options=_options(fields, extra),
        ),
        stream=bool(fields.get("stream", bool)),
        include_usage=True,
        origins=tools.origins,
        previous=previous,
        extra=extra,
    )


def _items(fields: Fields) -> list[Fields]:
    """The input; a string is short for one message of the user."""
    value = fields.values.get("input")
    if isinstance(value, str):
        return [Fields({"role": "user", "content": value}, "input")] if value else []
    return list(fields.objects("input"))


def _choice(fields: Fields, tools: Toolset, extra: dict[str, Any]) -> tuple[set[str], str]:
    """Which of the tools are offered, and which of those the model must call."""
    everything = set(tools.specs)
    value = fields.values.get("tool_choice")
    if value is None:
        return everything, "auto"
    if isinstance(value, str):
        if value not in _WORDS:
            raise RequestError(f"tool_choice must be one of {', '.join(_WORDS)}, or an object", param="tool_choice")
        return everything, value
    choice = Fields(value, "tool_choice")
    match choice.text("type"):
        case "function" | "custom":
            return everything, tools.chosen(choice)
        case "allowed_tools":
            named = [tool for tool in choice.objects("tools") if tool.values.get("type") in ("function", "custom")]
            mode = choice.text("mode")
            return {tools.chosen(tool) for tool in named}, mode if mode in _WORDS else "auto"
        case _:
            extra["tool_choice"] = value
            return everything, "auto"


def _options(fields: Fields, extra: dict[str, Any]) -> dict[str, Any]:
    """What all wires share, under the names of chat completions."""
    options: dict[str, Any] = {key: fields.get(key, int, float) for key in _NUMBERS}
    options["max_tokens"] = fields.get("max_output_tokens", int)
    reasoning, text = fields.nested("reasoning"), fields.nested("text")
    if reasoning:
        options["reasoning_effort"] = reasoning.get("effort", str)
        extra["reasoning"] = _without(reasoning, "effort")
    if text:
        options["response_format"] = _format(text.nested("format"))
        extra["text"] = _without(text, "format")
    return {key: value for key, value in options.items() if value is not None}


def _format(form: Fields | None) -> dict[str, Any] | None:
    """The form of the answer as chat completions write it, where the name and the schema are one level further down."""
    if form is None or (kind := form.text("type") or "text") == "text":
        return None
    inner = _without(form, "type")
    return {"type": kind, kind: inner} if inner else {"type": kind}


def _without(fields: Fields, key: str) -> dict[str, Any]:
    return {name: value for name, value in fields.values.items() if name != key and value is not None}
