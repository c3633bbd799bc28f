"""Normalize schemas: resolve references, merge `allOf`, and collect alternatives in one list.

Merging keeps the requirements of both sides where that is simple (members, required names, narrower limits); if two
requirements cannot be combined, the later one is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flatten_schema", "merge_schemas", "resolve_reference"]

_MAX_STEPS = 32
"""How many references and `allOf` are resolved before a schema counts as empty."""
_VALUE_KEYWORDS = frozenset(
    {
        *("type", "nullable", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"),
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "maxProperties"),
        *("items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""The keywords that constrain a value; titles, descriptions, defaults and others do not."""
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
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, Mapping) else None
    return node


def flatten_schema(body: Any, document: Any, steps: int = _MAX_STEPS) -> dict[str, Any]:
    """Return the schema without `$ref`, `allOf` and `oneOf` at its top; alternatives are in `anyOf`."""
    for remaining in range(steps, 0, -1):
        own: dict[str, Any] = (
            {word: body[word] for word in body if word in _VALUE_KEYWORDS} if isinstance(body, Mapping) else {}
        )
        if isinstance(own.get("$ref"), str):
            target = resolve_reference(own.pop("$ref"), document)
            body = _join_schemas(target if isinstance(target, Mapping) else {}, own) if own else target
        elif isinstance(own.get("allOf"), list):
            parts = own.pop("allOf")
            body = {}
            for part in (*parts, own):
                body = _join_schemas(body, flatten_schema(part, document, remaining - 1))
        elif isinstance(own.get("oneOf"), list):
            choices = own.pop("oneOf")
            body = _join_schemas(own, {"anyOf": choices})
        else:
            return own
    return {}


def merge_schemas(one: Mapping[str, Any], other: Any, document: Any) -> dict[str, Any]:
    """Return a schema with the requirements of both."""
    return _join_schemas(one, flatten_schema(other, document))


def _join_schemas(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    joined = {**one, **other}
    for word in one.keys() & other.keys():
        left, right = one[word], other[word]
        if word in _NARROWEST_LIMIT:
            joined[word] = _NARROWEST_LIMIT[word]((left, right))
        elif word == "required":
            joined[word] = [*left, *(name for name in right if name not in left)]
        elif word == "properties":
            shared = {name: {"allOf": [left[name], right[name]]} for name in left.keys() & right.keys()}
            joined[word] = {**left, **right, **{name: shared[name] for name in left if name in shared}}
        elif word == "anyOf":
            joined[word] = [{"allOf": [mine, theirs]} for mine in left for theirs in right]
        elif word == "enum":
            joined[word] = [value for value in left if value in right] or right
        elif word == "type":
            joined[word] = _join_types(left, right)
    return joined


def _join_types(left: Any, right: Any) -> Any:
    ours = left if isinstance(left, list) else [left]
    theirs = right if isinstance(right, list) else [right]
    return [kind for kind in ours if kind in theirs] or right
