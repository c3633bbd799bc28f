"""Grammars made of schemas: they take every value that is written in order, and make none that the schema refuses."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.grammar.gbnf import MAX_ANY_DEPTH, MAX_SELF_DEPTH, SchemaRuleWriter
from callwright.grammar.grammar_rules import MAX_REPEATS, GrammarRules, format_literal
from callwright.grammar.regex_pattern import build_pattern_rule
from tests.support.gbnf import Grammar

ALPHABET = "ab\"\\nu0017é<{}]:, -.'x"
NAMES = st.sampled_from(["a", "ab", "b", "path", "name", 'q"uote', "é", "with space", "a-b"])


def grammar_of(schema: Any) -> Grammar:
    rules = GrammarRules()
    rules.add_rule("root")
    SchemaRuleWriter.add_shared_rules(rules)
    rules.set_rule("root", SchemaRuleWriter(rules, schema).build_value(schema, "x"))
    return Grammar.of(rules.text)


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_valid(schema: Any, value: Any) -> bool:
    return bool(jsonschema_rs.validator_for(schema).is_valid(value))


# ── random schemas, each with values of it ───────────────────────────────────────────────────────

SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab\n"\\é\x01', max_size=4)
TEXTS = st.text('ab \n"\\é\x01/', max_size=6)


@st.composite
def typed(draw: Any, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """A schema with one value of it."""
    kinds = ["string", "length", "integer", "range", "number", "boolean", "null", "enum", "const", "any", "pattern"]
    kind = draw(st.sampled_from([*kinds, "object", "array", "anyOf", "allOf", "ref"] if depth else kinds))
    match kind:
        case "string":
            return {"type": "string"}, draw(TEXTS)
        case "length":
            text = draw(TEXTS)
            least = draw(st.integers(0, len(text)))
            return {"type": "string", "minLength": least, "maxLength": len(text) + draw(st.integers(0, 2))}, text
        case "integer":
            return {"type": "integer"}, draw(st.integers(-(10**17), 10**17))
        case "range":
            low, more = draw(st.integers(-500, 500)), draw(st.integers(0, 9000))
            return {"type": "integer", "minimum": low, "maximum": low + more}, low + draw(st.integers(0, more))
        case "number":
            return {"type": ["number", "null"]}, draw(st.integers(-9, 9) | st.floats(-1e15, 1e15) | st.none())
        case "boolean":
            return {"type": "boolean"}, draw(st.booleans())
        case "null":
            return {"type": "null"}, None
        case "enum":
            choices = draw(st.lists(SCALARS, min_size=1, max_size=4))
            return {"enum": choices}, draw(st.sampled_from(choices))
        case "const":
            value = draw(SCALARS)
            return {"const": value}, value
        case "any":
            return {"description": "anything"}, draw(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2)))
        case "pattern":
            return draw(st.sampled_from(PATTERNED))
        case "array":
            schema, value = draw(typed(depth - 1))
            count = draw(st.integers(0, 3))
            limits = {"minItems": draw(st.integers(0, count)), "maxItems": count + draw(st.integers(0, 1))}
            return {"type": "array", "items": schema, **limits}, [value] * count
        case "anyOf":
            branches = draw(st.lists(typed(depth - 1), min_size=1, max_size=3))
            return {"anyOf": [schema for schema, _ in branches]}, draw(st.sampled_from(branches))[1]
        case "allOf":
            one, value = draw(objects(depth - 1))
            return {"allOf": [one, {"required": list(value)}]}, value
        case _:
            return draw(objects(depth - 1))


PATTERNED = [
    ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "2026-11-16"),
    ({"type": "string", "pattern": r"^(?:[a-z]+|[A-Z_][^/]*)$"}, "Ab c"),
    ({"type": "string", "pattern": r"[0-9]"}, "a7b"),
    ({"type": "string", "pattern": r"^#[\w.-]+\.(py|ts)?$"}, "#a-b.c.py"),
]


@st.composite
def objects(draw: Any, depth: int = 2) -> tuple[dict[str, Any], Any]:
    members = draw(st.dictionaries(NAMES, typed(depth), max_size=4))
    given_names = [name for name in members if draw(st.booleans())]
    required = [name for name in given_names if draw(st.booleans())]
    schema: dict[str, Any] = {"type": "object", "properties": {name: body for name, (body, _) in members.items()}}
    value = {name: members[name][1] for name in given_names}
    if draw(st.booleans()):
        schema["required"] = required
    if draw(st.booleans()):
        schema["additionalProperties"] = extra = {"type": "integer"}
        value |= {f"extra{at}": at for at in range(draw(st.integers(0, 2)))}
        assert extra
    return schema, value


@settings(max_examples=100, deadline=None)
@given(typed())
def test_every_value_of_a_schema_is_taken_when_it_is_written_in_order(case: tuple[dict[str, Any], Any]) -> None:
    schema, value = case
    assert is_valid(schema, value)
    grammar = grammar_of(schema)
    assert grammar.accepts(written(value))
    assert grammar.accepts(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@settings(max_examples=100, deadline=None)
@given(typed(), st.randoms(use_true_random=False))
def test_whatever_a_grammar_makes_is_json_of_the_schema(case: tuple[dict[str, Any], Any], random: Random) -> None:
    schema, _ = case
    grammar = grammar_of(schema)
    made = grammar.make(random, ALPHABET)
    assert is_valid(schema, json.loads(made)), made
    assert grammar.accepts(made)


@settings(max_examples=100, deadline=None)
@given(typed(), typed())
def test_a_value_that_the_schema_refuses_is_refused(
    case: tuple[dict[str, Any], Any], other: tuple[dict[str, Any], Any]
) -> None:
    schema, value = case[0], other[1]
    if not is_valid(schema, value):
        assert not grammar_of(schema).accepts(written(value))


# ── one by one ───────────────────────────────────────────────────────────────────────────────────

NODE = {
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["label"],
}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": NODE}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]},
            ['{"b": 1}', '{"a": 1, "b": []}'],
            ["{}", '{"b": 1, "a": 1}', '{"a": 1}', '{"b": 1, "c": 1}', '{"b": 1, "b": 1}', '{"b": 1,}'],
        ),
        (TREE, ['{"label": "x", "next": {"label": "y", "next": null}, "kids": [{"label": "z"}]}'], ['{"next": null}']),
        (
            {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
            ['{"a": null, "b": 2}', '{"ab": 1, "b": 2}', '{"b": {"c": []}}', "{}"],
            ['{"a": 1}', '{"b": 1, "a": 1}'],
        ),
        ({"type": "object"}, ['{"any": {"thing": [1]}}', "{}"], ["[]"]),
        ({"type": "object", "properties": {}}, ["{}"], ['{"a": 1}']),
        ({"type": "dict", "properties": {"n": {"type": "int"}}}, ['{"n": 3}', "{}"], ['{"n": "3"}']),
        ({"type": "string", "nullable": True}, ['"x"', "null"], ["1"]),
        ({"type": "integer", "minimum": 1}, ["1", "19"], ["0", "-1", "01", "1.5"]),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 3}, ["1", "3"], ["0", "4"]),
        ({"type": "integer", "minimum": 0.5, "exclusiveMaximum": 2.5}, ["1", "2"], ["0", "3"]),
        ({"type": "integer", "exclusiveMinimum": 65535.0}, ["65536"], ["65535", "7"]),
        ({"type": "integer", "minimum": 9, "maximum": 3}, ["6"], ['"6"']),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, ["3"], ["2"]),
        ({"type": "integer", "maximum": float("inf")}, ["3"], ["3.5"]),
        ({"type": "integer", "minimum": -(10**400), "maximum": 10**400}, ["-3", "0", "3"], ["3.5"]),
        (
            {"type": "object", "properties": {"a": {}}, "additionalProperties": {}, "maxProperties": 2},
            ["{}", '{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'],
            ['{"b": 1, "c": 1}', '{"a": 1, "b": 1, "c": 1}'],
        ),
        ({"type": "object", "maxProperties": 0}, ["{}"], ['{"a": 1}']),
        (
            {"type": "object", "additionalProperties": {}, "propertyNames": {"maxLength": 2}, "properties": {"ab": {}}},
            ['{"a": 1}', '{"ab": 1, "ac": 1}'],
            ['{"abc": 1}', '{"abx": 1}', '{"xyz": 1}'],
        ),
        ({"type": "object", "propertyNames": {"enum": ["a"]}}, ['{"a": 1}'], ['{"b": 1}']),
        (
            {"properties": {"a": {}}, "propertyNames": {"enum": ["a"]}, "additionalProperties": True},
            ["{}"],
            ['{"b": 1}'],
        ),
        ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 2}, ["[null, null]"], ["[null]"]),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, ['["a", 1]'], ['[1, "a"]']),
        (
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}},
            ['{"a": 1}', '{"b": 1}'],
            ["{}"],
        ),
        (
            {"allOf": [{"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}],
             "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"]},
            ['{"a": 1}'],
            ['{"a": "x"}', '{"a": null}', "{}"],
        ),
        (
            {"type": "object", "patternProperties": {"^x-[a-z]+$": {"type": "integer"}}},
            ['{"x-a": 1}', "{}"],
            ['{"y": 1}', '{"x-a": "1"}'],
        ),
        (
            {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "integer"}},
            ['{"b": 1}'],
            ['{"c": 1}'],
        ),
        ({"type": "string", "pattern": "(?=look)"}, ['"anything"'], ["1"]),
        ({"type": "string", "maxLength": MAX_REPEATS + 1}, [f'"{"x" * 3000}"'], ["1"]),
    ],
)  # fmt: skip
def test_what_is_taken_and_what_is_not(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    grammar = grammar_of(schema)
    assert [text for text in good if not grammar.accepts(text)] == []
    assert [text for text in bad if grammar.accepts(text)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"anyOf": []},
        {"enum": []},
        {"type": []},
        {"type": "no such type"},
    ],
)
def test_a_schema_without_meaning_takes_any_value(schema: dict[str, Any]) -> None:
    grammar = grammar_of(schema)
    assert grammar.accepts('{"a": [1, "x", null]}')


def test_a_union_that_contains_itself_is_what_else_it_contains() -> None:
    grammar = grammar_of({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}, "$ref": "#/$defs/a"})
    assert grammar.accepts("null")
    assert not grammar.accepts("1")


def test_a_schema_contains_itself_to_a_limit() -> None:
    grammar = grammar_of(TREE)

    def nested(depth: int) -> str:
        return '{"label": "x", "next": ' * depth + "null" + "}" * depth

    assert grammar.accepts(nested(MAX_SELF_DEPTH))
    assert not grammar.accepts(nested(2 * MAX_SELF_DEPTH))


def test_what_must_contain_itself_without_end_is_left_out() -> None:
    endless = {"type": "object", "properties": {"of": {"$ref": "#/$defs/endless"}}, "required": ["of"]}
    grammar = grammar_of({"type": "object", "properties": {"a": endless, "b": {}}, "$defs": {"endless": endless}})
    assert grammar.accepts('{"b": 1}')
    assert not grammar.accepts('{"a": {}}')


def test_values_of_no_type_nest_to_a_limit() -> None:
    grammar = grammar_of({})
    assert grammar.accepts("[" * MAX_ANY_DEPTH + "1" + "]" * MAX_ANY_DEPTH)
    assert not grammar.accepts("[" * (MAX_ANY_DEPTH + 1) + "1" + "]" * (MAX_ANY_DEPTH + 1))


def test_a_schema_of_many_optional_members_stays_small() -> None:
    many = {"type": "object", "properties": {f"member{at}": {"type": "string"} for at in range(100)}}
    rules = GrammarRules()
    SchemaRuleWriter(rules, many).build_value(many, "x")
    assert len(rules.text) < 20_000


@pytest.mark.parametrize(
    "pattern", [r"(?<!a)b", r"\bword\b", r"^(a)\1$", "a++", "^a|b$", "[", "a{2000}", r"\p{L}", '["]', "(a", "a)"]
)
def test_patterns_that_cannot_be_written_are_left_to_the_guard(pattern: str) -> None:
    assert build_pattern_rule(pattern) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_literal_is_exactly_its_text(text: str) -> None:
    assert Grammar.of(f"root ::= {format_literal(text)}").accepts(text)
