"""What the embedded model is asked for, and what counts as an answer: calls of offered tools that fit their schemas.

`make embedded` asks for all of it and counts; tests/integration asks for a few and demands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

if TYPE_CHECKING:
    import openai

HERE = Path(__file__).parent
MODEL = "SmolLM2-135M-Instruct.Q4_1"
PROMPTS: Sequence[str] = (HERE / "prompts.txt").read_text(encoding="utf-8").splitlines()
"""What people ask for, in many languages; the last few ask for nothing that a tool could do."""
SPECS: Sequence[dict[str, Any]] = json.loads((HERE / "tools.json").read_bytes())
NAMES = [spec["name"] for spec in SPECS]
CHAT_TOOLS: list[Any] = [{"type": "function", "function": spec} for spec in SPECS]
MAX_TOKENS = 512
MISFIT = "does not fit"

_VALIDATORS = {spec["name"]: jsonschema_rs.validator_for(spec["parameters"]) for spec in SPECS}


class Answer(NamedTuple):
    """One answer over any wire."""

    calls: Sequence[tuple[str, str]]
    """Names and arguments."""
    text: str
    finish: str
    """In the words of chat completions."""


def problem(answer: Answer, *, words: bool = False) -> str:
    """Why an answer is not calls that fit; empty when it is. With `words`, some may stand beside them."""
    if answer.finish == "length":
        return "cut off by the token limit"
    if not answer.calls:
        return "no call"
    if answer.finish != "tool_calls" or (answer.text and not words):
        return f"more than calls: {answer.text!r}, finish {answer.finish}"
    return next(filter(None, map(_misfit, answer.calls)), "")


def _misfit(call: tuple[str, str]) -> str:
    name, arguments = call
    if name not in _VALIDATORS:
        return f"{MISFIT}: there is no tool {name}"
    try:
        _VALIDATORS[name].validate(json.loads(arguments))
    except (json.JSONDecodeError, jsonschema_rs.ValidationError) as error:
        return f"{MISFIT}: {name} {arguments}, {error}"
    return ""


def asked(api: openai.OpenAI, model: str, prompt: str, choice: Any, *, stream: bool, **more: Any) -> Answer:
    """What the model answers over chat completions; `more` are fields of the request. `openai.APIStatusError` when
    it gives no answer."""
    request: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    request |= {"tools": CHAT_TOOLS, "tool_choice": choice, "max_tokens": MAX_TOKENS, **more}
    if stream:
        return joined(api.chat.completions.create(**request, stream=True))
    choice = api.chat.completions.create(**request).choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    return Answer(calls, choice.message.content or "", choice.finish_reason)


def joined(chunks: Iterable[Any]) -> Answer:
    """The chunks of a stream as one answer."""
    names: list[str] = []
    arguments: list[str] = []
    text = finish = ""
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for piece in choice.delta.tool_calls or ():
                if piece.index == len(names):
                    names.append(piece.function.name)
                    arguments.append("")
                arguments[piece.index] += piece.function.arguments or ""
    return Answer(list(zip(names, arguments, strict=True)), text, finish)
