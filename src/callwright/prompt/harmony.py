"""A conversation as Harmony, the text that gpt-oss continues.

    <|start|>system<|message|>… # Valid channels: analysis, commentary, final. …<|end|>
    <|start|>developer<|message|># Instructions … # Tools … namespace functions { … }<|end|>
    <|start|>user<|message|>How is the weather in Oslo?<|end|><|start|>assistant

(One line.) Defined in the openai/harmony repository, docs/format.md; the same text as its renderer gives, 0.0.8, but
that the recipient of a call stands where the model itself writes it, so that the server's prompt cache goes on from
what was generated. What a message says can never end it or begin another: markers inside it are broken up, and those
inside a call's arguments written with JSON's own escape.
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
from callwright.prompt.transcript import part_text
from callwright.prompt.words import text_of

__all__ = ["MARKERS", "STOPS", "begun", "harmony"]

MARKERS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
"""What a server must leave in the text: each is one special token."""
STOPS = ("<|call|>", "<|return|>")
"""Where the model's turn ends; after a mere `<|end|>` it has more to say."""

_SPECIAL = re.compile(
    r"<\|(start|channel|constrain|message|end|call|return|startoftext|endoftext|endofprompt|reserved_\d+)\|>"
)
_EFFORTS: Mapping[object, str] = MappingProxyType(
    {"none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
)
"""What the model was trained on for each word that clients say."""
_INSTRUCTS = ("system", "developer")


def harmony(request: Request) -> str:
    """The prompt, up to the place where the model goes on."""
    tools = request.tools if request.tool_choice != "none" else ()
    lead = next((at for at, each in enumerate(request.messages) if each.role not in _INSTRUCTS), len(request.messages))
    instructions = "\n\n".join(filter(None, map(_words, request.messages[:lead])))
    written = (
        _message("system", _system(request.options.get("reasoning_effort"), tools)),
        _developer(instructions, tools, request.options.get("response_format")),
        *_conversation(request.messages[lead:]),
        f"<|start|>assistant{begun(request)}",
    )
    return "".join(written)


def begun(request: Request) -> str:
    """What the prompt writes of the answer itself: the beginning of a call, where one is required."""
    choice = request.tool_choice
    if choice in ("auto", "none") or not request.tools:
        return ""
    if choice == "required" and len(request.tools) > 1:
        return "<|channel|>commentary to=functions"
    name = request.tools[0].name if choice == "required" else choice
    return f"<|channel|>commentary to=functions.{_plain(name)} <|constrain|>json<|message|>"


# ── what is told at the beginning ────────────────────────────────────────────────────────────────


def _system(effort: object, tools: Sequence[ToolSpec]) -> str:
    # Who it is and what it knows are the words that it was trained with. The date is left out: it would spoil the
    # prompt cache at midnight, and clients that need it say it.
    lines = [
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06",
        f"Reasoning: {_EFFORTS.get(effort, 'medium')}",
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
    ]
    return "\n\n".join(lines) + (f"\n{HARMONY.describe_call_format()}" if tools else "")


def _developer(instructions: str, tools: Sequence[ToolSpec], answer_format: Any = None) -> str:
    sections = (
        f"# Instructions\n\n{instructions}" if instructions else "",
        f"# Tools\n\n## functions\n\n{_plain(render_namespace('functions', tools))}" if tools else "",
        _answer_format(answer_format),
    )
    told = "\n\n".join(filter(None, sections))
    return _message("developer", told) if told else ""


def _answer_format(asked: Any) -> str:
    """A form that the client holds the answer to, in the section that the format has for it."""
    match asked:
        case {"type": "json_schema", "json_schema": {"schema": schema} as form}:
            name, about = form.get("name") or "answer", form.get("description")
        case {"type": "json_object"}:
            name, about, schema = "answer", "One JSON object.", {"type": "object"}
        case _:
            return ""
    comment = f"// {about}\n" if about else ""
    return _plain(f"# Response Formats\n\n## {name}\n\n{comment}{msgspec.json.encode(schema).decode()}")


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


def _conversation(messages: Sequence[Message]) -> Iterator[str]:
    """The messages. Thoughts before a final answer are left out of what follows it; those of a chain of calls that goes
    on are what the model thinks on from."""
    answered = max((at for at, message in enumerate(messages) if _is_final(message)), default=-1)
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        match message.role:
            case "assistant":
                names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
                yield from _answer(message, thinks=at > answered)
            case "tool":
                results = (part for part in message.parts if isinstance(part, ToolResult))
                yield from (_result(result, names) for result in results)
            case "user":
                yield _message("user", _words(message))
            case _:
                yield _developer(_words(message), ())


def _is_final(message: Message) -> bool:
    return message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts)


def _answer(message: Message, *, thinks: bool) -> Iterator[str]:
    is_final = _is_final(message)
    for part in message.parts:
        match part:
            case Reasoning() if thinks and part.text:
                yield _message("assistant<|channel|>analysis", _plain(part.text))
            case Text() if not is_final:
                yield HARMONY.render_text(_plain(part.text))
            case ToolCall():
                arguments = _SPECIAL.sub(r"\\u003c|\1|>", part.arguments)
                yield HARMONY.render_call(ToolCall(part.id, _plain(part.name), arguments))
            case _:
                pass
    if is_final and (words := text_of(message)):
        yield _message("assistant<|channel|>final", _plain(words))


def _result(result: ToolResult, names: Mapping[str, str]) -> str:
    name = names.get(result.call_id) or result.name
    return HARMONY.render_result(ToolResult(result.call_id, _plain(result.content), _plain(name)))


def _message(header: str, words: str) -> str:
    return f"<|start|>{header}<|message|>{words}<|end|>"


def _words(message: Message) -> str:
    return _plain("\n\n".join(filter(None, map(part_text, message.parts))))


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"<| \1 |>", text)
