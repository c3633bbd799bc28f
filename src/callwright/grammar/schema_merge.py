"""Normalize schemas: resolve references, merge `allOf`, and collect alternatives in one list.

Merging keeps the requirements of both sides where that is simple (members, required names, narrower limits); if two
requirements cannot be combined, the later one is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from callwright.input_limits import MAX_MERGED_ALTERNATIVES, WorkBudget

__all__ = ["flatten_schema", "merge_schemas", "resolve_reference"]

_MAX_STEPS = 32
"""How many references and `allOf` are resolved before a schema counts as empty."""
_FLATTEN_COST = 50
"""What a step counts in a budget of characters, besides the values of an enum."""
_VALUE_TYPES: dict[str, type | tuple[type, ...]] = {
    "const": object,
    "nullable": bool,
    "type": (str, list),
    "items": (Mapping, list, bool),
    **dict.fromkeys(("$ref", "pattern"), str),
    **dict.fromkeys(("enum", "allOf", "anyOf", "oneOf", "required", "prefixItems"), list),
    **dict.fromkeys(("properties", "patternProperties"), Mapping),
    **dict.fromkeys(("additionalProperties", "propertyNames"), (Mapping, bool)),
    **dict.fromkeys(("maxProperties", "minItems", "maxItems", "minLength", "maxLength"), int),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (int, float)),
}
"""The keywords that constrain a value, and the types of theirs; titles, descriptions, defaults and others do not. A
keyword of another type is a mistake of the tool's author, and is ignored."""
_NARROWEST_LIMIT = {
    **dict.fromkeys(("minItems", "minLength", "minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "maximum", "exclusiveMaximum"), min),
}


def resolve_reference(reference: str, document: Any) -> Any:
    """Return what a reference inside a document points to; None if there is nothing."""
    node = document
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isdecimal() and len(name) < 10 and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, Mapping) else None
    return node


def flatten_schema(body: Any, document: Any, budget: WorkBudget, steps: int = _MAX_STEPS) -> dict[str, Any]:
    """Return the schema without `$ref`, `allOf` and `oneOf` at its top; alternatives are in `anyOf`. When the budget is
    used up, it is a schema without requirements."""
    for remaining in range(steps, 0, -1):
        own = _select_keywords(body) if isinstance(body, Mapping) else {}
        if not budget.take_amount(_FLATTEN_COST + len(own.get("enum", ()))):
            return {}
        if isinstance(own.get("$ref"), str):
            target = resolve_reference(own.pop("$ref"), document)
            body = _join_schemas(target if isinstance(target, Mapping) else {}, own) if own else target
        elif isinstance(own.get("allOf"), list):
            parts = own.pop("allOf")
            body = {}
            for part in (*parts, own):
                body = _join_schemas(body, flatten_schema(part, document, budget, remaining - 1))
        elif isinstance(own.get("oneOf"), list):
            choices = own.pop("oneOf")
            body = _join_schemas(own, {"anyOf": choices})
        else:
            return own
    return {}


def _select_keywords(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        word: value for word, value in body.items() if word in _VALUE_TYPES and isinstance(value, _VALUE_TYPES[word])
    }


def merge_schemas(one: Mapping[str, Any], other: Any, document: Any, budget: WorkBudget) -> dict[str, Any]:
    """Return a schema with the requirements of both."""
    return _join_schemas(one, flatten_schema(other, document, budget))


def _join_schemas(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    joined = {**one, **other}
    for word in one.keys() & other.keys():
        left, right = one[word], other[word]
        if word in _NARROWEST_LIMIT:
            joined[word] = _NARROWEST_LIMIT[word]((left, right))
        elif word == "required":
            joined[word] = list(dict.fromkeys(map(str, (*left, *right))))
        elif word == "properties":
            shared = {name: {"allOf": [left[name], right[name]]} for name in left.keys() & right.keys()}
            joined[word] = {**left, **right, **{name: shared[name] for name in left if name in shared}}
        elif word == "anyOf":
            too_many = len(left) * len(right) > MAX_MERGED_ALTERNATIVES
            joined[word] = left if too_many else [{"allOf": [mine, theirs]} for mine in left for theirs in right]
        elif word == "enum":
            allowed = {_make_key(value) for value in right}
            joined[word] = [value for value in left if _make_key(value) in allowed] or right
        elif word == "type":
            joined[word] = _join_types(left, right)
    return joined


def _make_key(value: Any) -> Any:
    """Return a key that is equal for equal values."""
    return ("json", json.dumps(value, sort_keys=True)) if isinstance(value, dict | list) else value


def _join_types(left: Any, right: Any) -> Any:
    ours = left if isinstance(left, list) else [left]
    theirs = right if isinstance(right, list) else [right]
    return [kind for kind in ours if kind in theirs] or right
