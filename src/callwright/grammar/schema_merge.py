"""Schemas made plain: references followed, `allOf` merged, alternatives in one list. What is left says what it means.

Merging keeps both sides' demands where that is simple (members, required names, narrower limits); of two demands that
cannot be joined the later one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flatten_schema", "merge_schemas", "resolve_reference"]

_MAX_STEPS = 32
"""References and `allOf` that are followed before a schema counts as one without meaning."""
_VALUE_KEYWORDS = frozenset(
    {
        *("type", "nullable", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"),
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "maxProperties"),
        *("items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""What decides about a value; titles, descriptions, defaults and all others do not."""
_NARROWEST_LIMIT = {
    **dict.fromkeys(("minItems", "minLength", "minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "maximum", "exclusiveMaximum"), min),
}


def resolve_reference(reference: str, document: Any) -> Any:
    """What a reference inside a document points at; None for nothing."""
    found = document
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)] if name.isdecimal() and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
    return found


def flatten_schema(body: Any, document: Any, steps: int = _MAX_STEPS) -> dict[str, Any]:
    """The schema without `$ref`, `allOf` and `oneOf` at its top; what may be one of several has `anyOf`."""
    for left in range(steps, 0, -1):
        own: dict[str, Any] = (
            {word: body[word] for word in body if word in _VALUE_KEYWORDS} if isinstance(body, Mapping) else {}
        )
        if isinstance(own.get("$ref"), str):
            found = resolve_reference(own.pop("$ref"), document)
            body = _join_schemas(found if isinstance(found, Mapping) else {}, own) if own else found
        elif isinstance(own.get("allOf"), list):
            parts = own.pop("allOf")
            body = {}
            for part in (*parts, own):
                body = _join_schemas(body, flatten_schema(part, document, left - 1))
        elif isinstance(own.get("oneOf"), list):
            choices = own.pop("oneOf")
            body = _join_schemas(own, {"anyOf": choices})
        else:
            return own
    return {}


def merge_schemas(one: Mapping[str, Any], other: Any, document: Any) -> dict[str, Any]:
    """A schema that demands what both do."""
    return _join_schemas(one, flatten_schema(other, document))


def _join_schemas(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {**one, **other}
    for word in one.keys() & other.keys():
        left, right = one[word], other[word]
        if word in _NARROWEST_LIMIT:
            both[word] = _NARROWEST_LIMIT[word]((left, right))
        elif word == "required":
            both[word] = [*left, *(name for name in right if name not in left)]
        elif word == "properties":
            shared = {name: {"allOf": [left[name], right[name]]} for name in left.keys() & right.keys()}
            both[word] = {**left, **right, **{name: shared[name] for name in left if name in shared}}
        elif word == "anyOf":
            both[word] = [{"allOf": [mine, theirs]} for mine in left for theirs in right]
        elif word == "enum":
            both[word] = [value for value in left if value in right] or right
        elif word == "type":
            both[word] = _join_types(left, right)
    return both


def _join_types(left: Any, right: Any) -> Any:
    ours = left if isinstance(left, list) else [left]
    theirs = right if isinstance(right, list) else [right]
    return [kind for kind in ours if kind in theirs] or right
