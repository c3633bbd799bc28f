"""Add limits to a schema where it has none, for models that do not stop.

A tiny model that begins to repeat itself inside a string or a list continues until its tokens are used up (seen with
SmolLM2-135M on llama.cpp, in both). A value of the narrower schema is also valid for the client's schema, so the limits
are shown with the tool and enforced by constrained decoding. Where several schemas apply to one value (`allOf`,
conditions), nothing is changed, because limits of one may contradict another.
"""

from __future__ import annotations

from typing import Any

from callwright.schema import Schema

__all__ = ["MAX_ITEMS", "MAX_STRING_LENGTH", "bound_schema"]

MAX_STRING_LENGTH = 120
"""The maximum length of a string, and of a member's name."""
MAX_ITEMS = 4
"""The maximum number of items in a list, and of undeclared members in an object."""

_ANNOTATION_KEYWORDS = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})
_COMPOSITE_KEYWORDS = frozenset(
    {"$ref", "allOf", "not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties"}
)
_SCALAR_TYPES = ["string", "number", "boolean", "null"]
_SCALAR_SCHEMA = {"type": _SCALAR_TYPES, "maxLength": MAX_STRING_LENGTH}
"""The schema for lists and objects that may contain anything."""


def bound_schema(body: Any) -> Any:
    """Return the schema with limits, at every level."""
    if not isinstance(body, dict):
        return bound_schema({}) if body is True else body
    says = body.keys() - _ANNOTATION_KEYWORDS
    for word in ("anyOf", "oneOf"):
        if says == {word} and isinstance(body[word], list):
            return {**body, word: [bound_schema(each) for each in body[word]]}
    if says & {"anyOf", "oneOf", "enum", "const", *_COMPOSITE_KEYWORDS}:
        return body
    if not says:
        body = {**body, "type": [*_SCALAR_TYPES, "array", "object"]}
    kinds = Schema(body).types
    if "string" in kinds:
        body = {**body, "maxLength": _compute_limit(body, "Length", MAX_STRING_LENGTH)}
    if "array" in kinds and "prefixItems" not in body and not isinstance(body.get("items"), list):
        body = {**body, "maxItems": _compute_limit(body, "Items", MAX_ITEMS), "items": _bound_inner(body.get("items"))}
    return _bound_object(body) if "object" in kinds else body


def _bound_object(body: dict[str, Any]) -> dict[str, Any]:
    """Add limits to an object: to its members, and to the number of undeclared ones."""
    declared, patterns = (
        value if isinstance(value, dict) else None for value in map(body.get, ("properties", "patternProperties"))
    )
    if declared:
        body = {**body, "properties": {name: bound_schema(each) for name, each in declared.items()}}
    if patterns:
        body = {**body, "patternProperties": {name: bound_schema(each) for name, each in patterns.items()}}
    additional = body.get("additionalProperties", declared is None and not patterns)
    if additional is not False:
        names = body.get("propertyNames", {"type": "string", "maxLength": MAX_STRING_LENGTH})
        body = {**body, "propertyNames": names, "additionalProperties": _bound_inner(additional)}
    elif not patterns:
        return body
    return {**body, "maxProperties": _compute_limit(body, "Properties", len(declared or ()) + MAX_ITEMS)}


def _bound_inner(schema: Any) -> Any:
    """Return the schema of a list's items or an object's members; without one, a schema that cannot nest further."""
    return _SCALAR_SCHEMA if schema in (None, True, {}) else bound_schema(schema)


def _compute_limit(body: dict[str, Any], keyword: str, maximum: int) -> int:
    """Return the limit, or the schema's own if that is narrower; never below the schema's minimum."""
    least, own = (body.get(f"{word}{keyword}") for word in ("min", "max"))
    return max(min(own, maximum) if isinstance(own, int) else maximum, least if isinstance(least, int) else 0)
