"""The diet: fewer tools, fewer words, names that services take; and the client never notices."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import check_events
from callwright.errors import RequestError
from callwright.events import CallEnd, CallStart, Finish, TextDelta
from callwright.guard.restore_names import RestoreToolNames
from callwright.model import Message, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.prompt.schema_trim import trim_tool, truncate_text
from callwright.prompt.settings import ToolLimitSettings
from callwright.prompt.tool_aliases import build_aliases, rename_tools
from callwright.prompt.tool_limits import limit_tools
from callwright.schema import Schema


def request(*names: str, said: str = "go", **changes: Any) -> Request:
    return Request("m", (Message("user", (Text(said),)),), tuple(map(ToolSpec, names)), **changes)


def offered(asked: Request, **settings: Any) -> list[str]:
    return [tool.name for tool in limit_tools(asked, ToolLimitSettings(**settings)).request.tools]


def schema(body: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return trim_tool(ToolSpec("t", "", body), ToolLimitSettings(**settings)).parameters


# ── which tools ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["read_file", "write_file", "mcp_search"]),
        ({"allow": ("*_file",)}, ["read_file", "write_file"]),
        ({"deny": ("write_*",)}, ["read_file", "mcp_search"]),
        ({"allow": ("*_file",), "deny": ("write_file",)}, ["read_file"]),
        ({"deny": ("*",)}, []),
    ],
)
def test_a_model_gets_the_tools_that_its_settings_allow(settings: dict[str, Any], expected: list[str]) -> None:
    assert offered(request("read_file", "write_file", "mcp_search"), **settings) == expected


def test_rc6_of_259_tools_the_ones_that_matter_are_kept() -> None:
    """https://github.com/anthropics/claude-code/issues/25857: 259 tools to an 8B model, and it never calls one."""
    many = [f"other_{number}" for number in range(256)]
    asked = request(*many[:200], "readFile", *many[200:], "deploy", "weather", said="Read the file, then deploy.")
    made = (Message("assistant", (ToolCall("1", "weather", "{}"),)), Message("tool", (ToolResult("1", "sunny"),)))
    loop = Request("m", (*asked.messages, *made), asked.tools)
    assert offered(loop, max_tools=3) == ["readFile", "deploy", "weather"]
    assert offered(loop, max_tools=1) == ["weather"], "what was called comes first"
    assert limit_tools(loop, ToolLimitSettings(max_tools=3)).repairs[0].kind == "left_out_tools"


@given(st.permutations(["a", "b", "c", "d"]), st.integers(1, 5))
def test_a_cap_keeps_so_many_in_the_clients_order(names: list[str], most: int) -> None:
    kept = offered(request(*names), max_tools=most)
    assert kept == names[:most]


def test_the_tool_that_must_be_called_is_always_kept() -> None:
    assert offered(request("a", "b", "c", tool_choice="c"), max_tools=1) == ["c"]


def test_tools_that_were_called_are_kept_be_they_more_than_the_cap() -> None:
    calls = tuple(ToolCall(name, name, "{}") for name in ("a", "c"))
    asked = request("a", "b", "c", "d", tool_choice="d")
    loop = Request("m", (*asked.messages, Message("assistant", calls)), asked.tools, asked.tool_choice)
    assert offered(loop, max_tools=1) == ["a", "c", "d"]


@pytest.mark.parametrize("choice", ["required", "a"])
def test_a_required_call_of_a_denied_tool_is_refused(choice: str) -> None:
    with pytest.raises(RequestError, match="allow and deny") as caught:
        limit_tools(request("a", tool_choice=choice), ToolLimitSettings(deny=("a",)))
    assert caught.value.code == "tool_not_offered"


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_without_any_tool_left_it_is_a_plain_request(choice: str) -> None:
    told = limit_tools(request("a", tool_choice=choice), ToolLimitSettings(deny=("a",))).request
    assert (told.tools, told.tool_choice) == ((), "auto")


# ── names ────────────────────────────────────────────────────────────────────────────────────────

NAMES = st.text(min_size=1, max_size=90) | st.from_regex(r"[a-z_]{60,80}", fullmatch=True)


@given(st.lists(NAMES, unique=True, max_size=8))
def test_every_name_is_one_that_services_take_and_can_be_told_from_the_others(names: list[str]) -> None:
    told = limit_tools(request(*names), ToolLimitSettings())
    seen = [tool.name for tool in told.request.tools]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in seen)
    assert len(set(seen)) == len(seen)
    assert [told.client_names.get(name, name) for name in seen] == names


@given(st.lists(NAMES, unique=True, max_size=4))
def test_names_that_are_told_are_told_everywhere_and_come_back(names: list[str]) -> None:
    parts = tuple(ToolCall(str(at), name, "{}") for at, name in enumerate(names))
    asked = Request("m", (Message("assistant", parts),), tuple(map(ToolSpec, names)), names[0] if names else "auto")
    there = build_aliases(asked)
    told = rename_tools(asked, there)
    assert rename_tools(told, {alias: name for name, alias in there.items()}) == asked
    assert not build_aliases(told)


def test_rc10_a_name_of_more_than_64_characters_does_not_kill_all_tools() -> None:
    """https://github.com/anomalyco/opencode/issues/38808"""
    long = "mcp__" + "server" * 12 + "__search"
    told, names, repairs = limit_tools(request(long, "read", tool_choice=long), ToolLimitSettings())
    alias = told.tools[0].name
    assert (told.tool_choice, len(alias), names) == (alias, 64, {alias: long})
    assert [repair.kind for repair in repairs] == ["aliased_name"]
    events = [TextDelta("x"), CallStart(0, "1", alias), CallEnd(0, complete=False), Finish("length")]
    back = RestoreToolNames(names).feed(events)
    check_events(back)
    assert back[1] == CallStart(0, "1", long)
    assert [*back[:1], *back[2:]] == [*events[:1], *events[2:]]


def test_names_stay_where_that_is_set() -> None:
    assert offered(request("a.b"), alias_names=False) == ["a.b"]


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────


def test_rc10_references_are_put_in_their_place() -> None:
    """https://github.com/anomalyco/opencode/issues/12295: every turn is refused by Gemini and Moonshot."""
    body = {
        "type": "object",
        "properties": {
            "at": {"$ref": "#/$defs/Point", "description": "where"},
            "path": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            "$ref": {"type": "string"},
        },
        "$defs": {
            "Point": {"type": "object", "description": "a point", "properties": {"x": {"$ref": "#/$defs/Number"}}},
            "Number": {"type": "number"},
        },
    }
    point = {"type": "object", "description": "a point", "properties": {"x": {"type": "number"}}}
    assert schema(body) == {
        "type": "object",
        "properties": {
            "at": {**point, "description": "where"},
            "path": {"type": "array", "items": point},
            "$ref": {"type": "string"},
        },
    }
    assert schema(body, inline_refs=False) == body


def test_a_schema_that_holds_itself_ends() -> None:
    body = {
        "$ref": "#/$defs/Tree",
        "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}},
    }
    assert schema(body) == {"type": "object", "properties": {"left": {"type": "object"}}}


def test_references_that_multiply_are_left_alone() -> None:
    steps = {f"S{n}": {"anyOf": [{"$ref": f"#/$defs/S{n + 1}"}, {"$ref": f"#/$defs/S{n + 1}"}]} for n in range(40)}
    body = {"$ref": "#/$defs/S0", "$defs": {**steps, "S40": {"type": "string"}}}
    assert schema(body) == body


def test_a_schema_may_be_true() -> None:
    body = {"properties": {"a": True}, "anyOf": [True, {"$ref": "#/$defs/A"}], "$defs": {"A": False}}
    assert schema(body, trim_schemas=True) == {"properties": {"a": True}, "anyOf": [True, {}]}


def test_without_a_users_message_the_first_tools_are_kept() -> None:
    asked = Request("m", (Message("user", ()),), tuple(map(ToolSpec, ("a", "b"))))
    assert offered(asked, max_tools=1) == ["a"]


def test_a_reference_to_nothing_says_nothing() -> None:
    assert schema({"properties": {"a": {"$ref": "#/nowhere", "title": "A"}}}) == {"properties": {"a": {"title": "A"}}}


def test_what_only_people_read_is_left_out_but_never_a_parameter() -> None:
    body = {
        "title": "Args",
        "$schema": "x",
        "properties": {
            "title": {"type": "string", "title": "Title", "examples": ["a"], "default": "title"},
            "examples": {"enum": ["title", "examples"]},
        },
        "required": ["title"],
    }
    assert schema(body, trim_schemas=True) == {
        "properties": {"title": {"type": "string", "default": "title"}, "examples": {"enum": ["title", "examples"]}},
        "required": ["title"],
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, {"type": "string", "default": None}),
        ({"type": ["integer", "null"]}, {"type": "integer"}),
        ({"type": ["integer", "string", "null"]}, {"type": ["integer", "string"]}),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ({"type": "string", "nullable": True}, {"type": "string"}),
        ({"type": "null"}, {"type": "null"}),
        ({"type": ["null"]}, {"type": ["null"]}),
        ({"anyOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
        ({"const": None, "enum": [None]}, {"const": None, "enum": [None]}),
    ],
)
def test_null_is_not_told_where_that_is_set(body: dict[str, Any], expected: dict[str, Any]) -> None:
    assert schema({"properties": {"a": body}}, drop_null=True) == {"properties": {"a": expected}}


BODIES = st.deferred(
    lambda: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "object", "array", ["string", "null"]]),
            "title": st.just("T"),
            "description": st.text(max_size=30),
            "properties": st.dictionaries(st.sampled_from(["a", "title", "$defs"]), BODIES, max_size=2),
            "items": BODIES,
            "anyOf": st.lists(BODIES, max_size=2),
            "$ref": st.sampled_from(["#/$defs/A", "#/$defs/B", "#/$defs/none", "#", "http://x/y"]),
            "enum": st.lists(st.sampled_from(["$ref", "title"]), max_size=1),
        },
    )
)
ROOTS = st.builds(lambda body, a, b: {**body, "$defs": {"A": a, "B": b}}, BODIES, BODIES, BODIES)


@given(ROOTS, st.booleans(), st.booleans(), st.integers(0, 12))
def test_any_schema_can_be_slimmed_and_then_is_slim(body: dict[str, Any], slim: bool, null: bool, most: int) -> None:
    settings = ToolLimitSettings(trim_schemas=slim, drop_null=null, max_description=most)
    before = json.dumps(body)
    once = trim_tool(ToolSpec("t", "", body), settings)
    assert json.dumps(body) == before, "inputs are never changed"
    assert trim_tool(once, settings) == once
    assert '"$ref": "#' not in json.dumps(once.parameters)


@given(ROOTS)
def test_inlining_keeps_what_a_value_may_be(body: dict[str, Any]) -> None:
    before, after = Schema(body), Schema(schema(body))
    beside = set(body) & {"type", "enum", "properties", "anyOf"}
    if not beside:  # next to a reference they count here, and were ignored in old drafts
        assert before.types == after.types
        assert set(before.properties) == set(after.properties)


@given(st.text(st.sampled_from("ab. !\n"), max_size=60), st.integers(0, 30))
def test_a_description_is_cut_to_its_size_at_a_sentence(text: str, most: int) -> None:
    short = truncate_text(text, most)
    assert len(short) <= most or not most
    assert short == text or text.startswith(short.removesuffix("…"))
    assert truncate_text(short, most) == short


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("Reads a file. Lines are numbered. More.", 34, "Reads a file. Lines are numbered."),
        ("Reads a file. Lines are numbered.", 20, "Reads a file."),
        ("Version 1.2.3 of it", 12, "Version 1.2…"),
        ("First line\nsecond line", 15, "First line"),
        ("whole", 5, "whole"),
        ("whole", 0, "whole"),
    ],
)
def test_the_last_sentence_that_fits_is_the_last(text: str, most: int, expected: str) -> None:
    assert truncate_text(text, most) == expected
