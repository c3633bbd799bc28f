"""Tools as TypeScript types, in the form of Harmony's developer message.

    type get_weather = (_: {
    city: string,
    }) => any;

Defined in the openai/harmony repository, docs/format.md. The output is that of its renderer, 0.0.8, where that loses
nothing: alternatives, constants and multi-line descriptions are declared here, but dropped or broken there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callwright.input_limits import MAX_RENDERED_TYPES, WorkBudget
from callwright.model import ToolSpec
from callwright.schema import Schema

__all__ = ["render_namespace"]

_TYPES = {"integer": "number", "object": "object", "array": "any[]"}
_MAX_DEPTH = 8
_INDENT = "    "


def render_namespace(name: str, tools: Sequence[ToolSpec]) -> str:
    """Render the declarations of all tools in one namespace."""
    declared = "\n\n".join(_render_declaration(tool) for tool in tools)
    return f"namespace {name} {{\n\n{declared}\n\n}} // namespace {name}"


def _render_declaration(tool: ToolSpec) -> str:
    schema, budget = Schema(tool.parameters), WorkBudget(MAX_RENDERED_TYPES)
    parameters = f"_: {_render_object_type(schema, 0, '', budget)}" if schema.properties else ""
    return f"{_render_comment(tool.description)}type {tool.name} = ({parameters}) => any;"


def _render_comment(text: Any, indent: str = "") -> str:
    return "".join(f"{indent}// {line}\n" for line in text.split("\n")) if isinstance(text, str) and text else ""


def _render_object_type(schema: Schema, depth: int, indent: str, budget: WorkBudget) -> str:
    members = (
        f"{_render_comment(member.body.get('description'), indent)}"
        f"{indent}{name}{'' if name in schema.required else '?'}: "
        f"{_render_type(member, depth + 1, indent + _INDENT, budget)},{_render_default(member)}\n"
        for name, member in schema.properties.items()
    )
    return "{\n" + "".join(members) + f"{indent}}}"


def _render_default(schema: Schema) -> str:
    if "default" not in schema.body:
        return ""
    default = schema.body["default"]
    is_choice = isinstance(default, str) and bool(schema.choices)
    return f" // default: {default if is_choice else json.dumps(default, ensure_ascii=False, separators=(',', ':'))}"


def _render_type(schema: Schema, depth: int, indent: str, budget: WorkBudget) -> str:
    if schema.choices and budget.take_amount(len(schema.choices)):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in schema.choices)
    kinds = (_render_single_type(schema, kind, depth, indent, budget) for kind in _sort_types(schema.types))
    return " | ".join(kinds) or "any"


def _sort_types(types: frozenset[str]) -> list[str]:
    """Return the types in a fixed order, null last."""
    return sorted(types, key=lambda kind: (kind == "null", kind))


def _render_single_type(schema: Schema, kind: str, depth: int, indent: str, budget: WorkBudget) -> str:
    if depth < _MAX_DEPTH and kind == "object" and schema.properties and budget.take_amount(len(schema.properties)):
        return _render_object_type(schema, depth, indent, budget)
    if depth < _MAX_DEPTH and kind == "array" and schema.items.types:
        inner = _render_type(schema.items, depth + 1, indent, budget)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    return _TYPES.get(kind, kind)
