"""Count the checks that a schema causes for a value, before a validator makes them.

A validator checks every branch at every place of the value. Branches that refer to each other multiply:

    a: {anyOf: [b, b]}, b: {anyOf: [c, c]}, …             2 ** n checks of one value
    a: {anyOf: [{properties: {x: a}}, {…}]}               2 ** depth checks of a nested value

Here each pair of a schema and a value is counted once, and multiplied by how often it occurs, so that counting takes
the time of the distinct pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callwright.input_limits import MAX_SCHEMA_CHECKS
from callwright.text.nesting import count_parts

__all__ = ["needs_too_many_checks"]

_MAX_DEPTH = 150
"""Schemas inside each other that are followed: a value has 100 levels, and some references are on the way."""
_CHECKS_PER_PART = 10
"""Checks that each part of a value may need: long lists are not suspicious."""
_BRANCH_LISTS = ("anyOf", "oneOf", "allOf")
_BRANCHES = ("not", "if", "then", "else")
_MEMBER_KEYWORDS = ("additionalProperties", "unevaluatedProperties")
_ITEM_KEYWORDS = ("items", "contains", "additionalItems", "unevaluatedItems")


class _TooManyChecksError(Exception):
    """There are more checks than the limit."""


def needs_too_many_checks(schema: Any, value: Any) -> bool:
    """Whether a check of the value needs more than `MAX_SCHEMA_CHECKS`, and some for each part of the value."""
    limit = MAX_SCHEMA_CHECKS + _CHECKS_PER_PART * count_parts(value)
    try:
        _CheckCounter(schema, limit).count_checks(schema, value, 0)
    except _TooManyChecksError:
        return True
    return False


class _CheckCounter:
    """Counts checks; `_counts` has the pairs of schemas and values so far, by identity."""

    def __init__(self, document: Any, limit: int) -> None:
        self._document = document
        self._limit = limit
        self._counts: dict[tuple[int, int], int] = {}

    def count_checks(self, schema: Any, value: Any, depth: int) -> int:
        if not isinstance(schema, dict):
            return 1
        pair = id(schema), id(value)
        if pair not in self._counts:
            if depth > _MAX_DEPTH or len(self._counts) > self._limit:
                raise _TooManyChecksError
            self._counts[pair] = 1  # while it is counted: a schema that refers to itself is checked once
            self._counts[pair] = count = 1 + sum(
                self.count_checks(inner, part, depth + 1) for inner, part in self._iter_inner_checks(schema, value)
            )
            if count > self._limit:
                raise _TooManyChecksError
        return self._counts[pair]

    def _iter_inner_checks(self, schema: dict[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the schemas directly below a schema, each with the part of the value that it applies to."""
        if isinstance(schema.get("$ref"), str):
            yield self._resolve_reference(schema["$ref"]), value
        for word in _BRANCH_LISTS:
            for branch in schema[word] if isinstance(schema.get(word), list) else ():
                yield branch, value
        for word in _BRANCHES:
            if word in schema:
                yield schema[word], value
        for word in ("dependentSchemas", "dependencies"):
            for branch in _iter_values(schema.get(word)):
                yield branch, value
        if isinstance(value, dict):
            yield from _iter_member_checks(schema, value)
        elif isinstance(value, list):
            yield from _iter_item_checks(schema, value)

    def _resolve_reference(self, reference: str) -> Any:
        target: Any = self._document
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target


def _iter_values(schemas: Any) -> Iterator[Any]:
    if isinstance(schemas, dict):
        yield from schemas.values()


def _iter_member_checks(schema: dict[str, Any], value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    declared = schema.get("properties")
    if isinstance(declared, dict):
        yield from ((declared[name], part) for name, part in value.items() if name in declared)
    for pattern in (*_iter_values(schema.get("patternProperties")), *(schema.get(word) for word in _MEMBER_KEYWORDS)):
        if isinstance(pattern, dict):
            yield from ((pattern, part) for part in value.values())


def _iter_item_checks(schema: dict[str, Any], value: list[Any]) -> Iterator[tuple[Any, Any]]:
    for word in ("prefixItems", "items"):
        if isinstance(schema.get(word), list):
            yield from zip(schema[word], value, strict=False)
    for word in _ITEM_KEYWORDS:
        if isinstance(schema.get(word), dict):
            yield from ((schema[word], part) for part in value)
