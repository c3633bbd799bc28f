"""Build the constraint for an answer from the tools of a request.

There are two forms for two kinds of servers. A grammar (llama.cpp, vLLM) allows text or calls, the calls in the dialect
that the prompt describes, and after a call's opening marker nothing but a call of a known tool. A JSON schema (Ollama,
OpenAI's `response_format`) makes the answer one object, which `dialects.answer` reads: a call, or text. Where a call is
required, neither form allows text.
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
from callwright.grammar.gbnf import SchemaRuleWriter
from callwright.grammar.grammar_rules import GrammarRules, format_char_class, format_literal
from callwright.grammar.schema_merge import resolve_reference
from callwright.model import Constraint, ToolCall, ToolSpec

__all__ = ["build_constraint", "get_constraint_dialect"]

_MAX_CALLS = 8
"""The maximum number of calls in one answer: a small model that may write nothing but calls would never stop."""
_CACHE_SIZE = 128
_JSON_STARTS = "{[ \n\r\t"
"""How bare JSON begins, including white space before it."""
_ANY_TEXT = r"[^\x00]*"

_NAME_KEYWORDS = ("properties", "patternProperties")
"""Schema keywords whose members are names that people chose."""
_DATA_KEYWORDS = ("enum", "const", "default", "examples")
"""Schema keywords whose values are not schemas."""

_SAMPLE_CALLS = (ToolCall("a", "first", "{}"), ToolCall("b", "second", "{}"))


class _CallForm(NamedTuple):
    """The text around the JSON of calls."""

    before: str
    between: str
    after: str


def get_constraint_dialect(dialect: Dialect) -> Dialect:
    """Return the dialect for constrained answers of a model that uses this one: the same if its calls are JSON."""
    return dialect if _find_call_form(dialect) else REGISTRY["hermes"]


def build_constraint(
    tools: Sequence[ToolSpec], dialect: Dialect, tool_choice: str = "auto", *, parallel: bool = True
) -> Constraint:
    """Build the constraint for an answer. `dialect` is from `get_constraint_dialect`. A named choice is one call."""
    chosen = tuple(tool for tool in tools if tool.name == tool_choice)
    return _build_cached_constraint(
        msgspec.json.encode(chosen or tools), dialect, tool_choice == "auto", parallel and not chosen
    )


@lru_cache(_CACHE_SIZE)
def _build_cached_constraint(tools: bytes, dialect: Dialect, allow_text: bool, parallel: bool) -> Constraint:
    """Build a constraint; cached, because a conversation has the same tools in every turn."""
    offered = msgspec.json.decode(tools, type=tuple[ToolSpec, ...])
    return Constraint(
        _build_schema(offered, allow_text=allow_text),
        _build_grammar(offered, dialect, allow_text=allow_text, parallel=parallel),
    )


def _get_parameters(tool: ToolSpec) -> dict[str, Any]:
    return {**(tool.parameters or {"properties": {}}), "type": "object"}


# ── as a grammar ─────────────────────────────────────────────────────────────────────────────────


def _find_call_form(dialect: Dialect) -> _CallForm | None:
    """Derive the form from a rendered call; None if that is not the JSON of calls with text around it."""
    if not isinstance(dialect, TaggedJson) or dialect.id_key:
        return None
    first, second = (format_call_json(call, dialect.name_key, dialect.arguments_key) for call in _SAMPLE_CALLS)
    before, found, rest = dialect.render_call(*_SAMPLE_CALLS).partition(first)
    between, found_too, after = rest.partition(second)
    announced = before.startswith(dialect.opens[0]) if before else True
    return _CallForm(before, between, after) if found and found_too and announced else None


def _build_grammar(tools: Sequence[ToolSpec], dialect: Dialect, *, allow_text: bool, parallel: bool) -> str:
    form = _find_call_form(dialect)
    if form is None or not isinstance(dialect, TaggedJson):
        return ""
    rules = GrammarRules()
    rules.add_rule("root")
    SchemaRuleWriter.add_shared_rules(rules)
    call = rules.add_rule("call")
    rules.set_rule(call, " | ".join(_build_call_rule(rules, tool, dialect) for tool in tools))
    more = f"({format_literal(form.between)} {call}){{0,{_MAX_CALLS - 1}}}" if parallel else ""
    opener = dialect.opens[0] if form.before else ""
    inside = rules.add_rule(
        "calls",
        _join_parts(
            _format_optional_literal(form.before[len(opener) :]), call, more, _format_optional_literal(form.after)
        ),
    )
    called = _join_parts(_format_optional_literal(opener), inside)
    if not allow_text:
        rules.set_rule("root", called)
    elif opener:
        rules.set_rule("root", _build_text_rules(rules, opener, inside))
    else:
        # An answer is a call or text from its first character on.
        rules.set_rule("root", f"{called} | [^{format_char_class(_JSON_STARTS)}] {rules.add_rule('text', _ANY_TEXT)}")
    return rules.text


def _build_call_rule(rules: GrammarRules, tool: ToolSpec, dialect: TaggedJson) -> str:
    schema = _get_parameters(tool)
    arguments = SchemaRuleWriter(rules, schema).build_value(schema, tool.name) or '"{" "}"'
    name = format_literal(json.dumps(tool.name, ensure_ascii=False))
    name_rule = f"{format_literal(f'{{{json.dumps(dialect.name_key)}:')} ws {name}"
    return f'{name_rule} "," ws {format_literal(f"{json.dumps(dialect.arguments_key)}:")} ws {arguments} "}}"'


def _build_text_rules(rules: GrammarRules, opener: str, then: str) -> str:
    """Build rules for text, and for what must follow the first `opener` in it: one rule for each prefix of the opener
    that was already written. At least one character is required, so that no turn is empty."""
    states = [rules.add_rule("text") for _ in opener]
    for at, state in enumerate(states):
        rules.set_rule(state, f'"" | {_format_transitions(states, opener, at, then)}')
    return _format_transitions(states, opener, 0, then)


def _format_transitions(states: list[str], opener: str, at: int, then: str) -> str:
    ways = {char: _count_matched(opener[:at] + char, opener) for char in dict.fromkeys(opener)}
    onward = {char: states[length] if length < len(opener) else then for char, length in ways.items() if length}
    steps = [f"{format_literal(char)} {state}" for char, state in onward.items()]
    return " | ".join([f"[^{format_char_class(''.join(onward))}] {states[0]}", *steps])


def _count_matched(text: str, opener: str) -> int:
    """Return how many characters of the opener's beginning are at the end of the text."""
    return next(length for length in range(len(text), -1, -1) if opener.startswith(text[len(text) - length :]))


def _format_optional_literal(text: str) -> str:
    return format_literal(text) if text else ""


def _join_parts(*parts: str) -> str:
    return " ".join(filter(None, parts))


# ── as a schema ──────────────────────────────────────────────────────────────────────────────────


def _build_schema(tools: Sequence[ToolSpec], *, allow_text: bool) -> dict[str, Any]:
    shared: dict[str, Any] = {}
    forms = [
        _build_object_schema(
            {"name": {"type": "string", "enum": [tool.name]}, "arguments": _hoist_definitions(tool, number, shared)}
        )
        for number, tool in enumerate(tools)
    ]
    if allow_text:
        forms.append(_build_object_schema({ANSWER_KEY: {"type": "string"}}))
    schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {**schema, "$defs": shared} if shared else schema


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _hoist_definitions(tool: ToolSpec, number: int, shared: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's schema with its definitions moved to the top of a larger schema, and its references adjusted."""
    document = _get_parameters(tool)
    body = {word: value for word, value in document.items() if word not in ("$defs", "definitions", "$schema")}

    def moved(node: Any) -> Any:
        if isinstance(node, list):
            return [moved(each) for each in node]
        return {word: below(word, value) for word, value in node.items()} if isinstance(node, dict) else node

    def below(word: str, value: Any) -> Any:
        if word == "$ref" and isinstance(value, str):
            return f"#/$defs/{name_of(value)}"
        if word in _NAME_KEYWORDS and isinstance(value, dict):
            return {name: moved(each) for name, each in value.items()}
        return value if word in _DATA_KEYWORDS else moved(value)

    names: dict[str, str] = {}
    waiting: list[str] = []

    def name_of(reference: str) -> str:
        if reference not in names:
            names[reference] = f"t{number}-{len(names)}"
            waiting.append(reference)
        return names[reference]

    arguments = dict(moved(body))
    while waiting:  # not by recursion: each definition may refer to the next
        reference = waiting.pop()
        shared[names[reference]] = moved(resolve_reference(reference, document) or {})
    return arguments
