"""Constrain: the tools of a request as what an answer is held to while it is written.

Two forms, for two kinds of servers. A grammar (llama.cpp, vLLM) allows words or calls, the calls in the dialect that
the model was taught, and after a call's opening marker nothing but a call of an offered tool. A JSON schema (Ollama,
OpenAI's `response_format`) makes the whole answer one object, which `dialects.answer` reads: a call, or words. Where a
call is required there are no words in either.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from callwright.dialects import REGISTRY, Dialect
from callwright.dialects.answer import ANSWER_KEY
from callwright.dialects.tagged_json import TaggedJson, format_call_json
from callwright.model import Constraint, ToolCall, ToolSpec
from callwright.prompt.gbnf import SchemaRules
from callwright.prompt.merge import target
from callwright.prompt.rules import Rules, char_class, literal

__all__ = ["constrained_in", "constraint"]

_MOST_CALLS = 8
"""In one answer: a small model that is held to calls and nothing else would write them until its tokens are spent."""
_KEPT = 128
_NO_WORD = "{[ \n\r\t"
"""How bare JSON begins, and what may stand before it."""
_ANYTHING = r"[^\x00]*"

_NAMES = ("properties", "patternProperties")
"""Keywords of a schema whose members are names that people chose …"""
_DATA = ("enum", "const", "default", "examples")
"""… and those whose values are no schemas."""

_SAMPLES = (ToolCall("a", "first", "{}"), ToolCall("b", "second", "{}"))


class _Form(NamedTuple):
    """What stands around the JSON of calls."""

    before: str
    between: str
    after: str


def constrained_in(dialect: Dialect) -> Dialect:
    """The dialect for constrained answers of a model that was taught this one: the same where calls are JSON."""
    return dialect if _form(dialect) else REGISTRY["hermes"]


def constraint(
    tools: Sequence[ToolSpec], dialect: Dialect, tool_choice: str = "auto", *, parallel: bool = True
) -> Constraint:
    """What an answer with these tools may be. `dialect` comes from `constrained_in`. A named choice is one call."""
    named = tuple(tool for tool in tools if tool.name == tool_choice)
    return _constraint(msgspec.json.encode(named or tools), dialect, tool_choice == "auto", parallel and not named)


@lru_cache(_KEPT)
def _constraint(tools: bytes, dialect: Dialect, words: bool, parallel: bool) -> Constraint:
    """Kept, because a conversation offers the same tools in every turn."""
    offered = msgspec.json.decode(tools, type=tuple[ToolSpec, ...])
    return Constraint(_schema(offered, words=words), _grammar(offered, dialect, words=words, parallel=parallel))


def _parameters(tool: ToolSpec) -> dict[str, Any]:
    return {**(tool.parameters or {"properties": {}}), "type": "object"}


# ── as a grammar ─────────────────────────────────────────────────────────────────────────────────


def _form(dialect: Dialect) -> _Form | None:
    """Read off what the dialect itself renders; None where that is not the JSON of calls with something around it."""
    if not isinstance(dialect, TaggedJson) or dialect.id_key:
        return None
    first, second = (format_call_json(call, dialect.name_key, dialect.arguments_key) for call in _SAMPLES)
    before, found, rest = dialect.render_call(*_SAMPLES).partition(first)
    between, found_too, after = rest.partition(second)
    announced = before.startswith(dialect.opens[0]) if before else True
    return _Form(before, between, after) if found and found_too and announced else None


def _grammar(tools: Sequence[ToolSpec], dialect: Dialect, *, words: bool, parallel: bool) -> str:
    form = _form(dialect)
    if form is None or not isinstance(dialect, TaggedJson):
        return ""
    rules = Rules()
    rules.add("root")
    SchemaRules.begin(rules)
    call = rules.add("call")
    rules.set(call, " | ".join(_call(rules, tool, dialect) for tool in tools))
    more = f"({literal(form.between)} {call}){{0,{_MOST_CALLS - 1}}}" if parallel else ""
    opener = dialect.opens[0] if form.before else ""
    inside = rules.add("calls", _spaced(_text(form.before[len(opener) :]), call, more, _text(form.after)))
    called = _spaced(_text(opener), inside)
    if not words:
        rules.set("root", called)
    elif opener:
        rules.set("root", _words_until(rules, opener, inside))
    else:
        # An answer is a call or words from its first character on.
        rules.set("root", f"{called} | [^{char_class(_NO_WORD)}] {rules.add('text', _ANYTHING)}")
    return rules.text


def _call(rules: Rules, tool: ToolSpec, dialect: TaggedJson) -> str:
    schema = _parameters(tool)
    arguments = SchemaRules(rules, schema).value(schema, tool.name) or '"{" "}"'
    named = f"{literal(f'{{{json.dumps(dialect.name_key)}:')} ws {literal(json.dumps(tool.name, ensure_ascii=False))}"
    return f'{named} "," ws {literal(f"{json.dumps(dialect.arguments_key)}:")} ws {arguments} "}}"'


def _words_until(rules: Rules, opener: str, then: str) -> str:
    """Words, and after the first `opener` among them what must follow it: one rule for each length of the opener that
    stands there already. At least one character, so that no turn is empty."""
    states = [rules.add("text") for _ in opener]
    for at, state in enumerate(states):
        rules.set(state, f'"" | {_steps(states, opener, at, then)}')
    return _steps(states, opener, 0, then)


def _steps(states: list[str], opener: str, at: int, then: str) -> str:
    ways = {char: _matched(opener[:at] + char, opener) for char in dict.fromkeys(opener)}
    onward = {char: states[length] if length < len(opener) else then for char, length in ways.items() if length}
    steps = [f"{literal(char)} {state}" for char, state in onward.items()]
    return " | ".join([f"[^{char_class(''.join(onward))}] {states[0]}", *steps])


def _matched(text: str, opener: str) -> int:
    """How much of the opener's beginning stands at the end of the text."""
    return next(length for length in range(len(text), -1, -1) if opener.startswith(text[len(text) - length :]))


def _text(text: str) -> str:
    return literal(text) if text else ""


def _spaced(*parts: str) -> str:
    return " ".join(filter(None, parts))


# ── as a schema ──────────────────────────────────────────────────────────────────────────────────


def _schema(tools: Sequence[ToolSpec], *, words: bool) -> dict[str, Any]:
    shared: dict[str, Any] = {}
    forms = [
        _object({"name": {"type": "string", "enum": [tool.name]}, "arguments": _hoisted(tool, number, shared)})
        for number, tool in enumerate(tools)
    ]
    if words:
        forms.append(_object({ANSWER_KEY: {"type": "string"}}))
    whole = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {**whole, "$defs": shared} if shared else whole


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _hoisted(tool: ToolSpec, number: int, shared: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema whose references hold inside a larger one: what they point at is moved to the top of that."""
    document = _parameters(tool)
    body = {word: value for word, value in document.items() if word not in ("$defs", "definitions", "$schema")}

    def moved(node: Any) -> Any:
        if isinstance(node, list):
            return [moved(each) for each in node]
        return {word: below(word, value) for word, value in node.items()} if isinstance(node, dict) else node

    def below(word: str, value: Any) -> Any:
        if word == "$ref" and isinstance(value, str):
            return f"#/$defs/{name_of(value)}"
        if word in _NAMES and isinstance(value, dict):
            return {name: moved(each) for name, each in value.items()}
        return value if word in _DATA else moved(value)

    names: dict[str, str] = {}

    def name_of(reference: str) -> str:
        if reference not in names:
            names[reference] = name = f"t{number}-{len(names)}"
            shared[name] = {}
            shared[name] = moved(target(reference, document) or {})
        return names[reference]

    return dict(moved(body))
