"""What a raw value becomes: by the tool's schema, then JSON, then Python, then the raw string."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import ToolSpec
from callwright.schema import (
    ANY_SCHEMA,
    Schema,
    Tool,
    Toolbox,
    coerce_value,
    is_similar_name,
    parse_tool_spec,
    text_to_json,
)

DEFINED = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}, "loop": {"$ref": "#/$defs/Loop"}},
    "$defs": {
        "Place": {"type": "object", "properties": {"lat": {"type": "number"}}},
        "Loop": {"$ref": "#/$defs/Loop"},
        "a/b~c": {"type": "integer"},
        "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
    },
}


# ── which types a schema allows ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": "STRING"}, {"string"}),
        ({"type": "dict"}, {"object"}),
        ({"type": "float"}, {"number"}),
        ({"type": "any"}, set()),
        ({"type": 5}, set()),
        ({"type": "integer", "nullable": True}, {"integer", "null"}),
        ({"nullable": True}, set()),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"integer", "null"}),
        ({"oneOf": [{"type": "integer"}, {}]}, set()),
        ({"allOf": [{"type": "string"}]}, {"string"}),
        ({"anyOf": "wrong"}, set()),
        ({"enum": ["a", "b"]}, {"string"}),
        (
            {"enum": ["a", 1, 1.5, True, None, [], {}]},
            {"string", "integer", "number", "boolean", "null", "array", "object"},
        ),
        ({"const": 3}, {"integer"}),
        ({"properties": {"a": {}}}, {"object"}),
        ({"items": {}}, {"array"}),
        ({}, set()),
        (True, set()),
        (None, set()),
    ],
)
def test_types(body: Any, types: set[str]) -> None:
    assert Schema(body).types == types
    assert Schema(body).is_string == (types == {"string"})


def test_references_are_followed_and_loops_end() -> None:
    schema = Schema(DEFINED)
    assert schema.get_member("place").get_member("lat").types == {"number"}
    assert schema.get_member("loop").types == set()
    assert Schema({"$ref": "#/$defs/a~1b~0c", **DEFINED}).types == {"integer"}
    assert Schema({"$ref": "#/nowhere/at/all"}).types == set()
    tree = Schema({"$ref": "#/$defs/Tree", "$defs": DEFINED["$defs"]})
    for _ in range(100):
        tree = tree.get_member("kids").items
    assert tree is ANY_SCHEMA


def test_what_lies_below() -> None:
    schema = Schema(
        {
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
                {"type": "array", "items": {"type": "boolean"}},
            ],
            "properties": {"b": {"type": "null"}},
            "required": ["a"],
        }
    )
    assert schema.get_member("a").types == {"integer"}
    assert schema.get_member("b").types == {"null"}
    assert schema.get_member("c") is ANY_SCHEMA
    assert schema.items.types == {"boolean"}
    assert schema.required == {"a"}
    assert Schema({"required": "a"}).required == frozenset()
    assert Schema({"additionalProperties": {"type": "string"}}).get_member("x").is_string
    assert Schema({"items": {"type": "string"}}).items.is_string
    assert Schema({"type": "array"}).items is ANY_SCHEMA


# ── text to JSON ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "body", "value"),
    [
        ("42", {"type": "string"}, "42"),
        (" x \n", {"type": "string"}, " x \n"),
        ("null", {"type": "string"}, "null"),
        ('"q"', {"type": "string"}, '"q"'),
        ("42", {"type": "integer"}, 42),
        (" 42\n", {"type": "integer"}, 42),
        ("2.0", {"type": "integer"}, 2),
        ("two", {"type": "integer"}, "two"),
        ("true", {"type": "integer"}, True),
        ("1.50", {"type": "number"}, 1.5),
        ("7", {"type": "number"}, 7),
        ("true", {"type": "boolean"}, True),
        ("False", {"type": "boolean"}, False),
        ("TRUE", {"type": "boolean"}, True),
        ("yes", {"type": "boolean"}, "yes"),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ("['a', None]", {"type": "array"}, ["a", None]),
        ("[1, 2", {"type": "array"}, [1, 2]),
        ("('a', 1)", {"type": "array"}, ["a", 1]),
        ("a, b", {"type": "array"}, "a, b"),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("{a: 1}", {"type": "object"}, {"a": 1}),
        ("{'a': True}", {"type": "object"}, {"a": True}),
        ("null", {"type": "null"}, None),
        ("None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ("3", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, 3),
        ("x", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x"),
        ("[1]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "[1]"),
        ("2", {"enum": [1, 2]}, 2),
        ("True", {"enum": [True, "x"]}, True),
        ("x", {"enum": [1, "x"]}, "x"),
        ("fast", {"enum": ["fast"]}, "fast"),
        ("5", {}, 5),
        ("Oslo", {}, "Oslo"),
        ("007", {}, "007"),
        ("", {}, ""),
        ("", {"type": "integer"}, ""),
        ("'x'", {}, "x"),
        ('["3"]', {"type": "array", "items": {"type": "integer"}}, [3]),
        ("12345678901234567890123", {"type": "integer"}, 12345678901234567890123),
    ],
)
def test_raw_text_takes_the_declared_type(raw: str, body: Any, value: Any) -> None:
    assert json.loads(text_to_json(raw, Schema(body))[0]) == value


def test_numbers_keep_their_digits() -> None:
    assert text_to_json("1.50", Schema({"type": "number"})) == ("1.50", ())


def test_text_repairs_are_named() -> None:
    assert [repair.kind for repair in text_to_json("[1, 2", Schema({"type": "array"}))[1]] == ["closed_bracket"]
    assert [repair.kind for repair in text_to_json("2.0", Schema({"type": "integer"}))[1]] == ["coerced_type"]


@given(st.text())
def test_a_declared_string_is_never_changed(raw: str) -> None:
    assert json.loads(text_to_json(raw, Schema({"type": "string"}))[0]) == raw


@given(st.text(), st.sampled_from([{}, {"type": "integer"}, {"type": "array"}, {"type": ["string", "null"]}]))
def test_any_text_becomes_valid_json(raw: str, body: Any) -> None:
    json.loads(text_to_json(raw, Schema(body))[0])


# ── JSON that is almost right ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "body", "wanted", "detail"),
    [
        ("3", {"type": "integer"}, 3, "value: string became integer"),
        ("3.0", {"type": "integer"}, 3, "value: string became integer"),
        (3.0, {"type": "integer"}, 3, "value: number became integer"),
        ("0.5", {"type": "number"}, 0.5, "value: string became number"),
        ("TRUE", {"type": "boolean"}, True, "value: string became boolean"),
        ('{"a": 1}', {"type": "object"}, {"a": 1}, "value: string became object"),
        ("{a: 1", {"type": "object"}, {"a": 1}, "value: string became object"),
        ("['x']", {"type": "array"}, ["x"], "value: string became array"),
        ("null", {"type": ["integer", "null"]}, None, "value: string became null"),
        (5, {"type": "string"}, "5", "value: integer became string"),
        (True, {"type": "string"}, "true", "value: boolean became string"),
        ({"a": "é"}, {"type": "string"}, '{"a": "é"}', "value: object became string"),
    ],
)
def test_almost_right_values_are_coerced(value: Any, body: Any, wanted: Any, detail: str) -> None:
    mended, repairs = coerce_value(value, Schema(body))
    assert (mended, type(mended)) == (wanted, type(wanted))
    assert [(repair.kind, repair.detail) for repair in repairs] == [("coerced_type", detail)]


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("x", {"type": "integer"}),
        ("'3'", {"type": "integer"}),
        ("x", {"type": "object"}),
        (3.5, {"type": "integer"}),
        (None, {"type": "string"}),
        ([1], {"type": "object"}),
        (1, {"type": ["string", "null"]}),
        ("3", {"type": ["string", "integer"]}),
        (3, {"type": "number"}),
        ("anything", {}),
        ("maybe", {"type": "boolean"}),
    ],
)
def test_what_fits_or_cannot_be_told_stays(value: Any, body: Any) -> None:
    assert coerce_value(value, Schema(body)) == (value, ())


def test_the_inside_is_coerced_with_its_path() -> None:
    schema = Schema(
        {
            "type": "object",
            "properties": {
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"line": {"type": "integer"}, "text": {"type": "string"}},
                    },
                }
            },
        }
    )
    value, repairs = coerce_value({"edits": '[{"line": "3", "text": 4}]', "more": "5"}, schema)
    assert value == {"edits": [{"line": 3, "text": "4"}], "more": "5"}
    assert [repair.detail for repair in repairs] == [
        "edits: string became array",
        "edits[0].line: string became integer",
        "edits[0].text: integer became string",
    ]


# ── names and tools ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("path", "filePath", True),
        ("file_path", "filePath", True),
        ("FILE-PATH", "file_path", True),
        ("file", "filePath", True),
        ("contents", "content", True),
        ("quary", "query", True),
        ("x", "xy", False),
        ("id", "grid", False),
        ("city", "days", False),
    ],
)
def test_near_names(one: str, other: str, alike: bool) -> None:
    assert is_similar_name(one, other) is alike
    assert is_similar_name(other, one) is alike


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
        {"name": "f", "description": "d", "parameters": {"type": "object"}},
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}},
        {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        ToolSpec("f", "d", {"type": "object"}),
    ],
)
def test_tools_come_in_many_shapes(tool: Any) -> None:
    assert parse_tool_spec(tool) == ToolSpec("f", "d", {"type": "object"})


@pytest.mark.parametrize(
    "tool", [{}, {"function": {}}, {"name": ""}, {"function": 5}, "text", {"name": "f", "parameters": [1]}]
)
def test_a_wrong_tool_is_the_requests_fault(tool: Any) -> None:
    with pytest.raises(RequestError, match="tool"):
        parse_tool_spec(tool)


def test_a_toolbox_knows_its_tools() -> None:
    box = Toolbox([ToolSpec("f"), ToolSpec("g")])
    assert [tool.name for tool in box] == ["f", "g"]
    assert (len(box), box.names, "f" in box, "x" in box) == (2, ("f", "g"), True, False)
    assert box.get("x") is None
    found = box.get("g")
    assert isinstance(found, Tool)
    assert found.name == found.spec.name == "g"
