"""Schemas with limits: what fits one fits the client's own, and whoever is held to one comes to an end."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.model import ToolSpec
from callwright.prompt.schema_bounds import MAX_ITEMS, MAX_STRING_LENGTH, bound_schema
from callwright.prompt.schema_trim import trim_tool
from callwright.prompt.settings import ToolLimitSettings
from tests.support.gbnf import Grammar
from tests.unit.grammar.test_gbnf import ALPHABET, grammar_of, is_valid, typed

SIMPLE = {"type": ["string", "number", "boolean", "null"], "maxLength": MAX_STRING_LENGTH}
ANYTHING = {
    "type": [*SIMPLE["type"], "array", "object"],
    "maxLength": MAX_STRING_LENGTH,
    "maxItems": MAX_ITEMS,
    "items": SIMPLE,
    "propertyNames": {"type": "string", "maxLength": MAX_STRING_LENGTH},
    "additionalProperties": SIMPLE,
    "maxProperties": MAX_ITEMS,
}
NAMED = {"propertyNames": {"type": "string", "maxLength": MAX_STRING_LENGTH}}


def endless(grammar: Grammar) -> bool:
    """Whether something in the grammar may come any number of times."""

    def inside(node: Any, above: tuple[str, ...]) -> bool:
        match node:
            case ("rule", name):
                return name in above or inside(grammar.rules[name], (*above, name))
            case ("many", inner, _, most):
                return most is None or inside(inner, above)
            case ("any" | "all", nodes):
                return any(inside(each, above) for each in nodes)
        return False

    return inside(("rule", "root"), ())


@settings(max_examples=100, deadline=None)
@given(typed(), st.randoms(use_true_random=False))
def test_whatever_fits_a_bounded_schema_fits_the_schema(case: tuple[dict[str, Any], Any], random: Random) -> None:
    schema, _ = case
    before = json.dumps(schema)
    narrow = bound_schema(schema)
    assert json.dumps(schema) == before, "inputs are never changed"
    assert bound_schema(narrow) == narrow
    made = json.loads(grammar_of(narrow).make(random, ALPHABET))
    assert is_valid(narrow, made)
    assert is_valid(schema, made)


@settings(max_examples=100, deadline=None)
@given(typed())
def test_a_bounded_schema_has_an_end(case: tuple[dict[str, Any], Any]) -> None:
    schema, _ = case
    if not any(word in json.dumps(schema) for word in ("allOf", "pattern")):
        assert not endless(grammar_of(bound_schema(schema)))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ANYTHING),
        (True, ANYTHING),
        ({"type": "integer"}, {"type": "integer"}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({"type": "string"}, {"type": "string", "maxLength": MAX_STRING_LENGTH}),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 9}),
        ({"type": "string", "maxLength": 9999}, {"type": "string", "maxLength": MAX_STRING_LENGTH}),
        ({"type": "string", "minLength": 500}, {"type": "string", "minLength": 500, "maxLength": 500}),
        ({"type": "array"}, {"type": "array", "maxItems": MAX_ITEMS, "items": SIMPLE}),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 6},
            {
                "type": "array",
                "items": {"type": "string", "maxLength": MAX_STRING_LENGTH},
                "minItems": 6,
                "maxItems": 6,
            },
        ),
        ({"prefixItems": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"},
            {"anyOf": [{"type": "string", "maxLength": MAX_STRING_LENGTH}, {"type": "null"}], "description": "d"},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {
                "type": "object",
                "additionalProperties": {"type": "string", "maxLength": MAX_STRING_LENGTH},
                "maxProperties": MAX_ITEMS,
                **NAMED,
            },
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": True},
            {"properties": {"a": ANYTHING}, "additionalProperties": SIMPLE, "maxProperties": 1 + MAX_ITEMS, **NAMED},
        ),
        (
            {"patternProperties": {"^x$": {"type": "string"}}, "additionalProperties": False, "type": "object"},
            {
                "patternProperties": {"^x$": {"type": "string", "maxLength": MAX_STRING_LENGTH}},
                "additionalProperties": False,
                "type": "object",
                "maxProperties": MAX_ITEMS,
            },
        ),
    ],
)
def test_limits_stand_where_none_were(body: Any, expected: dict[str, Any]) -> None:
    assert bound_schema(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        {"properties": {"a": {"type": "object"}}, "anyOf": [{"required": ["a"]}, {"type": "object"}]},
        {"allOf": [{"type": "object"}, {"properties": {"a": {"type": "array"}}}]},
        {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    ],
)
def test_a_schema_put_together_of_several_is_left_alone(body: dict[str, Any]) -> None:
    assert bound_schema(body) == body


def test_a_tool_without_parameters_stays_without() -> None:
    assert trim_tool(ToolSpec("ping"), ToolLimitSettings(terse=True)) == ToolSpec("ping")
