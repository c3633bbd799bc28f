"""Short descriptions of tools: as signatures, and as Python functions. The same tool always gives the same text.

- get_weather(city: string, days?: integer)

def get_weather(city: str, days: int = None):
    \"\"\"The weather of the next days.\"\"\"
"""

from __future__ import annotations

import json

from callwright.input_limits import MAX_RENDERED_TYPES, WorkBudget
from callwright.model import ToolSpec
from callwright.schema import Schema

__all__ = ["format_python_function", "format_signature"]

_PYTHON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict",
}
_MAX_DEPTH = 4
_MAX_CHOICES = 12


def format_signature(tool: ToolSpec) -> str:
    """Format a tool as one line: its name, its parameters and their types; optional ones have a question mark."""
    schema, budget = Schema(tool.parameters), WorkBudget(MAX_RENDERED_TYPES)
    parameters = (
        f"{name}{'' if name in schema.required else '?'}: {_format_type(member, budget)}"
        for name, member in schema.properties.items()
    )
    return f"- {tool.name}({', '.join(parameters)})"


def format_python_function(tool: ToolSpec) -> str:
    """Format a tool as a Python function with a docstring. Names are unchanged: calls must use them."""
    schema = Schema(tool.parameters)
    # Python requires parameters without a default first; calls name their arguments, so the order has no meaning.
    members = sorted(schema.properties.items(), key=lambda each: each[0] not in schema.required)
    parameters = (
        f"{name}: {_format_python_type(member)}{'' if name in schema.required else ' = None'}"
        for name, member in members
    )
    description = [tool.description.strip()] if tool.description.strip() else []
    described = [(name, _get_description(member)) for name, member in members]
    if lines := [f"    {name}: {words}" for name, words in described if words]:
        description += ["", "Args:", *lines] if description else ["Args:", *lines]
    text = "\n".join(description).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    body = "\n".join(f"    {line}".rstrip() for line in f'"""{text}"""'.split("\n")) if description else "    ..."
    return f"def {tool.name}({', '.join(parameters)}):\n{body}"


def _get_description(schema: Schema) -> str:
    words = schema.body.get("description")
    return " ".join(words.split()) if isinstance(words, str) else ""


def _format_type(schema: Schema, budget: WorkBudget, depth: int = 0) -> str:
    if schema.choices:
        return _format_choices(schema, "|")
    return "|".join(_format_single_type(schema, kind, budget, depth) for kind in _sort_types(schema)) or "any"


def _format_single_type(schema: Schema, kind: str, budget: WorkBudget, depth: int) -> str:
    if kind == "array" and depth < _MAX_DEPTH and schema.items.types:
        return f"array<{_format_type(schema.items, budget, depth + 1)}>"
    if kind == "object" and depth < _MAX_DEPTH and schema.properties and budget.take_amount(len(schema.properties)):
        members = (
            f"{name}{'' if name in schema.required else '?'}: {_format_type(member, budget, depth + 1)}"
            for name, member in schema.properties.items()
        )
        return f"{{{', '.join(members)}}}"
    return kind


def _format_python_type(schema: Schema, depth: int = 0) -> str:
    if schema.choices:
        return f"Literal[{_format_choices(schema, ', ')}]"
    kinds = [
        f"list[{_format_python_type(schema.items, depth + 1)}]"
        if kind == "array" and depth < _MAX_DEPTH and schema.items.types
        else _PYTHON_TYPES.get(kind, "list")
        for kind in _sort_types(schema)
    ]
    return " | ".join(kinds) or "Any"


def _format_choices(schema: Schema, between: str) -> str:
    shown = [json.dumps(choice, ensure_ascii=False) for choice in schema.choices[:_MAX_CHOICES]]
    return between.join([*shown, "…"] if len(schema.choices) > _MAX_CHOICES else shown)


def _sort_types(schema: Schema) -> list[str]:
    """Return the types in a fixed order, null last."""
    return sorted(schema.types, key=lambda kind: (kind == "null", kind))
