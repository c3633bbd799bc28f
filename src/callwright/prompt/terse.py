"""Terse: a schema with limits wherever it sets none, for models that do not find an end.

A tiny model that begins to repeat itself inside a string or a list goes on until its tokens are spent (seen with
SmolLM2-135M on llama.cpp, in both). A value of the narrower schema is one of the client's too, so the limits are told
with the tool, and kept wherever answers are held to it. Where several schemas speak of one value (`allOf`, conditions)
nothing is changed, because limits of one may contradict another.
"""

from __future__ import annotations

from typing import Any

from callwright.schema import Schema

__all__ = ["ITEMS", "STRING", "bounded"]

STRING = 120
"""Characters of a string, and of a member's name."""
ITEMS = 4
"""Items of a list, and members of an object that are not declared."""

_FOR_PEOPLE = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})
_SEVERAL = frozenset({"$ref", "allOf", "not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties"})
_SCALARS = ["string", "number", "boolean", "null"]
_SIMPLE = {"type": _SCALARS, "maxLength": STRING}
"""What stands in lists and objects that may hold anything."""


def bounded(body: Any) -> Any:
    """The schema with limits, and all below it."""
    if not isinstance(body, dict):
        return bounded({}) if body is True else body
    says = body.keys() - _FOR_PEOPLE
    for word in ("anyOf", "oneOf"):
        if says == {word} and isinstance(body[word], list):
            return {**body, word: [bounded(each) for each in body[word]]}
    if says & {"anyOf", "oneOf", "enum", "const", *_SEVERAL}:
        return body
    if not says:
        body = {**body, "type": [*_SCALARS, "array", "object"]}
    kinds = Schema(body).types
    if "string" in kinds:
        body = {**body, "maxLength": _narrower(body, "Length", STRING)}
    if "array" in kinds and "prefixItems" not in body and not isinstance(body.get("items"), list):
        body = {**body, "maxItems": _narrower(body, "Items", ITEMS), "items": _inside(body.get("items"))}
    return _closed(body) if "object" in kinds else body


def _closed(body: dict[str, Any]) -> dict[str, Any]:
    """An object with limits for its members, and for how many there are of those that are not declared."""
    declared, patterns = body.get("properties"), body.get("patternProperties")
    if declared:
        body = {**body, "properties": {name: bounded(each) for name, each in declared.items()}}
    if patterns:
        body = {**body, "patternProperties": {name: bounded(each) for name, each in patterns.items()}}
    others = body.get("additionalProperties", declared is None and not patterns)
    if others is not False:
        names = body.get("propertyNames", {"type": "string", "maxLength": STRING})
        body = {**body, "propertyNames": names, "additionalProperties": _inside(others)}
    elif not patterns:
        return body
    return {**body, "maxProperties": _narrower(body, "Properties", len(declared or ()) + ITEMS)}


def _inside(below: Any) -> Any:
    """What a list or an object holds; where nothing is said of it, nothing that could hold more."""
    return _SIMPLE if below in (None, True, {}) else bounded(below)


def _narrower(body: dict[str, Any], what: str, most: int) -> int:
    """The limit, or the schema's own where that is narrower; never below the least that it asks for."""
    least, own = (body.get(f"{word}{what}") for word in ("min", "max"))
    return max(min(own, most) if isinstance(own, int) else most, least if isinstance(least, int) else 0)
