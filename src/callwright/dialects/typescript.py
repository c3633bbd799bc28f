"""Tools as TypeScript types, the way Harmony's developer message declares them.

    type get_weather = (_: {
    city: string,
    }) => any;

Defined in the openai/harmony repository, docs/format.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callwright.model import ToolSpec
from callwright.schema import Schema

__all__ = ["namespace"]

_TYPES = {"integer": "number", "object": "object", "array": "any[]"}
_MAX_DEPTH = 8


def namespace(name: str, tools: Sequence[ToolSpec]) -> str:
    """The declarations of all tools in one namespace."""
    declared = "\n\n".join(_declaration(tool) for tool in tools)
    return f"namespace {name} {{\n\n{declared}\n\n}} // namespace {name}"


def _declaration(tool: ToolSpec) -> str:
    schema = Schema(tool.parameters)
    taken = f"_: {_object(schema, 0)}" if schema.properties else ""
    return f"{_comment(tool.description)}type {tool.name} = ({taken}) => any;"


def _comment(text: Any) -> str:
    return "".join(f"// {line}\n" for line in text.split("\n")) if isinstance(text, str) and text else ""


def _object(schema: Schema, depth: int) -> str:
    members = (
        f"{_comment(member.body.get('description'))}{name}{'' if name in schema.required else '?'}: "
        f"{_type(member, depth + 1)},{_default(member)}\n"
        for name, member in schema.properties.items()
    )
    return "{\n" + "".join(members) + "}"


def _default(schema: Schema) -> str:
    return f" // default: {json.dumps(schema.body['default'], ensure_ascii=False)}" if "default" in schema.body else ""


def _type(schema: Schema, depth: int) -> str:
    if schema.choices:
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in schema.choices)
    return " | ".join(_one(schema, kind, depth) for kind in _in_order(schema.types)) or "any"


def _in_order(types: frozenset[str]) -> list[str]:
    """Types in a fixed order, null last."""
    return sorted(types, key=lambda kind: (kind == "null", kind))


def _one(schema: Schema, kind: str, depth: int) -> str:
    if depth < _MAX_DEPTH and kind == "object" and schema.properties:
        return _object(schema, depth)
    if depth < _MAX_DEPTH and kind == "array" and schema.items.types:
        inner = _type(schema.items, depth + 1)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    return _TYPES.get(kind, kind)
