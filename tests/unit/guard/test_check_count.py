"""Checks counted before they are made: few for the schemas of tools, too many for branches that multiply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright.events import CallDelta, CallEnd, CallStart, Malformed
from callwright.guard.check_count import needs_too_many_checks
from callwright.guard.schema_check import SchemaCheckedCalls
from callwright.model import ToolSpec
from tests.support import hostile

USED: dict[str, tuple[Any, Any]] = {
    "no schema": (True, {}),
    "a reference to nothing": ({"$ref": "#/$defs/gone"}, {}),
    "a reference to itself": ({"$ref": "#"}, {}),
    "a reference through a list": ({"allOf": [{"$ref": "#/allOf/0"}]}, {}),
    "branches": ({"anyOf": [{}, True], "not": {}, "if": {}, "then": {}, "dependentSchemas": {"a": {}}}, {}),
    "members": ({"properties": {"a": {}}, "patternProperties": {"b": {}}, "additionalProperties": {}}, {"a": 1}),
    "items": ({"prefixItems": [{}], "items": {}, "contains": {}}, [1, 2]),
    "items in a list": ({"items": [{}, {}]}, [1]),
    "keywords of a wrong type": ({"anyOf": 5, "properties": [], "items": 7, "dependencies": 1}, {"a": [1]}),
}


@pytest.mark.parametrize("label", USED)
def test_ordinary_schemas_need_few_checks(label: str) -> None:
    assert not needs_too_many_checks(*USED[label])


def test_many_references_are_too_many() -> None:
    """More pairs than the limit are not counted to their end."""
    branches = [{"title": str(at)} for at in range(5_000)]
    assert needs_too_many_checks({"allOf": branches}, {})


def test_long_lists_are_not_suspicious() -> None:
    item = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert not needs_too_many_checks({"properties": {"a": {"items": item}}}, {"a": list(range(5_000))})


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_references_that_fan_out_are_too_many(word: str) -> None:
    """Two to the power of 200 checks: nobody could make them."""
    assert needs_too_many_checks(hostile.fan_out(200, word), {"a": {}})
    assert needs_too_many_checks(hostile.fan_out(20, word), {"a": {}})
    assert not needs_too_many_checks(hostile.fan_out(8, word), {"a": {}})


def test_a_schema_that_branches_at_every_level_of_a_value_is_too_many() -> None:
    schema = hostile.branch_into_itself(1)
    assert needs_too_many_checks(schema, json.loads(hostile.nest_value(90)))
    assert not needs_too_many_checks(schema, json.loads(hostile.nest_value(4)))


def test_a_long_way_of_references_is_too_many() -> None:
    definitions = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(5_000)}
    assert needs_too_many_checks({"$ref": "#/$defs/d0", "$defs": definitions}, {})


def test_values_with_more_pairs_than_the_limit_are_too_many() -> None:
    branches = [{"items": {"title": str(at)}} for at in range(100)]
    assert needs_too_many_checks({"items": {"allOf": branches}}, [[at] for at in range(1_000)])


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_a_call_that_cannot_be_checked_is_passed_on(word: str) -> None:
    stage = SchemaCheckedCalls([ToolSpec("act", "", hostile.fan_out(200, word))])
    events = [CallStart(0, "a", "act"), CallDelta(0, '{"a": 5}'), CallEnd(0, True, ())]
    assert stage.feed(events) == events


def test_a_call_that_can_be_checked_is_checked() -> None:
    stage = SchemaCheckedCalls([ToolSpec("act", "", hostile.fan_out(3, "anyOf"))])
    events = stage.feed([CallStart(0, "a", "act"), CallDelta(0, '{"a": {"x": 5}}'), CallEnd(0, True, ())])
    assert isinstance(events[0], Malformed)
