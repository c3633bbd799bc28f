"""Terse: a schema with limits wherever it sets none, for models that do not find an end.

A tiny model that begins to repeat itself inside a string or a list goes on until its tokens are spent (seen with
SmolLM2-135M on llama.cpp, in both). A value of the narrower schema is one of the client's too, so the limits are told
with the tool, and kept wherever answers are held to it. Where several schemas speak of one value (`allOf`, conditions)
nothing is changed, because limits of one may contradict another.
"""

from __future__ import annotations

from typing import Any

from callwright.schema import Schema

__all__ = ["MAX_ITEMS", "MAX_STRING_LENGTH", "bound_schema"]

MAX_STRING_LENGTH = 120
"""Characters of a string, and of a member's name."""
MAX_ITEMS = 4
"""Items of a list, and members of an object that are not declared."""

_ANNOTATION_KEYWORDS = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})
_COMPOSITE_KEYWORDS = frozenset(
    {"$ref", "allOf", "not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties"}
)
_SCALAR_TYPES = ["string", "number", "boolean", "null"]
_SCALAR_SCHEMA = {"type": _SCALAR_TYPES, "maxLength": MAX_STRING_LENGTH}
"""What stands in lists and objects that may hold anything."""


def bound_schema(body: Any) -> Any:
    """The schema with limits, and all below it."""
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
    """An object with limits for its members, and for how many there are of those that are not declared."""
    declared, patterns = body.get("properties"), body.get("patternProperties")
    if declared:
        body = {**body, "properties": {name: bound_schema(each) for name, each in declared.items()}}
    if patterns:
        body = {**body, "patternProperties": {name: bound_schema(each) for name, each in patterns.items()}}
    others = body.get("additionalProperties", declared is None and not patterns)
    if others is not False:
        names = body.get("propertyNames", {"type": "string", "maxLength": MAX_STRING_LENGTH})
        body = {**body, "propertyNames": names, "additionalProperties": _bound_inner(others)}
    elif not patterns:
        return body
    return {**body, "maxProperties": _compute_limit(body, "Properties", len(declared or ()) + MAX_ITEMS)}


def _bound_inner(below: Any) -> Any:
    """What a list or an object holds; where nothing is said of it, nothing that could hold more."""
    return _SCALAR_SCHEMA if below in (None, True, {}) else bound_schema(below)


def _compute_limit(body: dict[str, Any], what: str, most: int) -> int:
    """The limit, or the schema's own where that is narrower; never below the least that it asks for."""
    least, own = (body.get(f"{word}{what}") for word in ("min", "max"))
    return max(min(own, most) if isinstance(own, int) else most, least if isinstance(least, int) else 0)
