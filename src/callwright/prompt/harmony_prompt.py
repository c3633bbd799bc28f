"""Render a conversation as Harmony, the text that gpt-oss continues.

    <|start|>system<|message|>… # Valid channels: analysis, commentary, final. …<|end|>
    <|start|>developer<|message|># Instructions … # Tools … namespace functions { … }<|end|>
    <|start|>user<|message|>How is the weather in Oslo?<|end|><|start|>assistant

(One line.) Defined in the openai/harmony repository, docs/format.md. The text is that of its renderer, 0.0.8, except
that the recipient of a call stands where the model itself writes it, so that the server's prompt cache continues after
the generated text. The text of a message can never end it or begin another: markers inside it are broken up, and those
inside a call's arguments are written with a JSON escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from callwright.dialects.harmony import HARMONY
from callwright.dialects.typescript import render_namespace
from callwright.model import Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.prompt.chat_template import format_part
from callwright.prompt.message_text import get_message_text

__all__ = ["MARKERS", "STOP_MARKERS", "get_answer_prefix", "render_harmony"]

MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
"""Markers that a server must leave in the text: each is one special token."""
STOP_MARKERS = ("<|call|>", "<|return|>")
"""Markers that end the model's turn; after `<|end|>` alone the turn continues."""

_SPECIAL_TOKEN = re.compile(
    r"<\|(start|channel|constrain|message|end|call|return|startoftext|endoftext|endofprompt|reserved_\d+)\|>"
)
_REASONING_EFFORTS: Mapping[object, str] = MappingProxyType(
    {"none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
)
"""The word that the model was trained on for each effort that clients send."""
_INSTRUCTION_ROLES = ("system", "developer")


def render_harmony(request: Request) -> str:
    """Render the prompt, up to where the model continues."""
    tools = request.tools if request.tool_choice != "none" else ()
    lead = next(
        (at for at, each in enumerate(request.messages) if each.role not in _INSTRUCTION_ROLES), len(request.messages)
    )
    instructions = "\n\n".join(filter(None, map(_get_message_words, request.messages[:lead])))
    prompt_parts = (
        _format_message("system", _format_system(request.options.get("reasoning_effort"), tools)),
        _format_developer(instructions, tools, request.options.get("response_format")),
        *_iter_messages(request.messages[lead:]),
        f"<|start|>assistant{get_answer_prefix(request)}",
    )
    return "".join(prompt_parts)


def get_answer_prefix(request: Request) -> str:
    """Return the beginning of the answer that is part of the prompt: that of a call, if one is required."""
    choice = request.tool_choice
    if choice in ("auto", "none") or not request.tools:
        return ""
    if choice == "required" and len(request.tools) > 1:
        return "<|channel|>commentary to=functions"
    name = request.tools[0].name if choice == "required" else choice
    return f"<|channel|>commentary to=functions.{_escape_markers(name)} <|constrain|>json<|message|>"


# ── system and developer messages ────────────────────────────────────────────────────────────────


def _format_system(effort: object, tools: Sequence[ToolSpec]) -> str:
    # The identity and the knowledge cutoff are the words of its training. The date is omitted: it would invalidate the
    # prompt cache at midnight, and clients that need it send it.
    lines = [
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06",
        f"Reasoning: {_REASONING_EFFORTS.get(effort, 'medium')}",
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
    ]
    return "\n\n".join(lines) + (f"\n{HARMONY.describe_call_format()}" if tools else "")


def _format_developer(instructions: str, tools: Sequence[ToolSpec], answer_format: Any = None) -> str:
    sections = (
        f"# Instructions\n\n{instructions}" if instructions else "",
        f"# Tools\n\n## functions\n\n{_escape_markers(render_namespace('functions', tools))}" if tools else "",
        _format_response_format(answer_format),
    )
    text = "\n\n".join(filter(None, sections))
    return _format_message("developer", text) if text else ""


def _format_response_format(response_format: Any) -> str:
    """Format the response format that the client requires, as the section that Harmony has for it."""
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": schema} as form}:
            name, about = form.get("name") or "answer", form.get("description")
        case {"type": "json_object"}:
            name, about, schema = "answer", "One JSON object.", {"type": "object"}
        case _:
            return ""
    comment = f"// {about}\n" if about else ""
    return _escape_markers(f"# Response Formats\n\n## {name}\n\n{comment}{msgspec.json.encode(schema).decode()}")


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


def _iter_messages(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the messages. Reasoning before a final answer is omitted from what follows it; reasoning in a chain of
    calls that continues is kept, because the model builds on it."""
    answered = max((at for at, message in enumerate(messages) if _is_final_answer(message)), default=-1)
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        match message.role:
            case "assistant":
                names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
                yield from _iter_answer_messages(message, include_reasoning=at > answered)
            case "tool":
                results = (part for part in message.parts if isinstance(part, ToolResult))
                yield from (_format_result(result, names) for result in results)
            case "user":
                yield _format_message("user", _get_message_words(message))
            case _:
                yield _format_developer(_get_message_words(message), ())


def _is_final_answer(message: Message) -> bool:
    return message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts)


def _iter_answer_messages(message: Message, *, include_reasoning: bool) -> Iterator[str]:
    is_final = _is_final_answer(message)
    for part in message.parts:
        match part:
            case Reasoning() if include_reasoning and part.text:
                yield _format_message("assistant<|channel|>analysis", _escape_markers(part.text))
            case Text() if not is_final:
                yield HARMONY.render_text(_escape_markers(part.text))
            case ToolCall():
                arguments = _SPECIAL_TOKEN.sub(r"\\u003c|\1|>", part.arguments)
                yield HARMONY.render_call(ToolCall(part.id, _escape_markers(part.name), arguments))
            case _:
                pass
    if is_final and (words := get_message_text(message)):
        yield _format_message("assistant<|channel|>final", _escape_markers(words))


def _format_result(result: ToolResult, names: Mapping[str, str]) -> str:
    name = names.get(result.call_id) or result.name
    return HARMONY.render_result(ToolResult(result.call_id, _escape_markers(result.content), _escape_markers(name)))


def _format_message(header: str, text: str) -> str:
    return f"<|start|>{header}<|message|>{text}<|end|>"


def _get_message_words(message: Message) -> str:
    return _escape_markers("\n\n".join(filter(None, map(format_part, message.parts))))


def _escape_markers(text: str) -> str:
    return _SPECIAL_TOKEN.sub(r"<| \1 |>", text)
