"""Tools on the diet of their model, through the gateway: what the server is told, and what comes back (P-14, P-16)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import call, said, spoken
from tests.integration.wires import CHAT, RESPONSES, TOOLS, WIRES, Call, Round, Wire
from tests.support.upstream import Upstream

STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
LONG = "mcp__" + "a_server_with_a_long_name__" * 3 + "ping"
ODD = "files.read/all"


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream(spoken("Done.")) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    models = [
        model("m", "main"),
        model("taught", "main", tools="taught", dialect="hermes"),
        model("allowed", "main", tool_limits={"allow": ["get_*"]}),
        model("denied", "main", tool_limits={"deny": ["get_*"]}),
        model("capped", "main", tool_limits={"max_tools": 2}),
        model("slim", "main", tool_limits={"trim_schemas": True, "max_description": 20, "drop_null": True}),
        model("small", "main", model="tiny"),
    ]
    jobs = '[[jobs]]\nname = "titles"\nmodel = "small"\nkeywords = ["title for"]\nmax_tokens = 100\n'
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models) + jobs) as gateway:
        yield gateway


def renamed(wire: Wire, body: dict[str, Any], name: str) -> dict[str, Any]:
    """The request with `ping` under another name, in its tools and its history."""
    changed: dict[str, Any] = json.loads(json.dumps(body).replace('"ping"', json.dumps(name)))
    return changed


def functions(*tools: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": tool} for tool in tools]


def told(gateway: Hosted, server: Upstream, name: str, tools: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The tools that the server is told of, by name, with their parameters."""
    server.play(spoken("Done."))
    body = {"model": name, "messages": [{"role": "user", "content": "go"}], "tools": tools, **more}
    assert gateway.post(CHAT.path, body).status == 200
    offered = server.requests[-1].json.get("tools", ())
    return {tool["function"]["name"]: tool["function"] for tool in offered}


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@STREAM
@EACH_WIRE
@pytest.mark.parametrize("name", [LONG, ODD])
def test_a_name_that_services_refuse_is_told_under_another_and_comes_back_as_it_was(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool, name: str
) -> None:
    body = renamed(wire, wire.body("m", stream=stream, rounds=[Round("a", Call("ping", {}), "pong")]), name)
    server.play(spoken("Done."))
    assert gateway.post(wire.path, body).status == 200
    sent = server.requests[-1].json
    alias = sent["tools"][1]["function"]["name"]
    assert alias != name
    assert len(alias) <= 64
    assert alias.replace("_", "").replace("-", "").isalnum()
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == alias, "the history has it too"
    server.play(said(call(0, "{}", id="b", name=alias), reason="tool_calls"))
    reply = gateway.post(wire.path, body)
    heard = wire.streamed(reply.body) if stream else wire.whole(reply.body)
    assert heard.calls == (Call(name, {}),)
    assert alias.encode() not in reply.body


@STREAM
def test_a_model_that_is_taught_writes_the_alias_and_the_client_reads_the_name(
    gateway: Hosted, server: Upstream, stream: bool
) -> None:
    body = renamed(CHAT, CHAT.body("taught", stream=stream), LONG)
    server.play(spoken("Done."))
    assert gateway.post(CHAT.path, body).status == 200
    lesson = server.requests[-1].json["messages"][0]["content"]
    assert LONG not in lesson
    alias = next(word for word in lesson.replace('"', " ").split() if word.startswith("mcp__"))
    server.play(spoken(f'<tool_call>\n{{"name": "{alias}", "arguments": {{}}}}\n</tool_call>'))
    reply = gateway.post(CHAT.path, body)
    heard = CHAT.streamed(reply.body) if stream else CHAT.whole(reply.body)
    assert heard.calls == (Call(LONG, {}),)


def test_a_choice_of_a_tool_with_an_alias_is_told_under_it(gateway: Hosted, server: Upstream) -> None:
    choice = {"type": "function", "function": {"name": LONG}}
    server.play(said(call(0, "{}", id="b", name="x"), reason="tool_calls"))
    gateway.post(CHAT.path, {**renamed(CHAT, CHAT.body("m", stream=False), LONG), "tool_choice": choice})
    sent = server.requests[-1].json
    assert sent["tool_choice"]["function"]["name"] == sent["tools"][1]["function"]["name"]


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}, "where": {"$ref": "#/definitions/Place"}},
    "required": ["root"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
    "definitions": {"Place": {"type": "string", "enum": ["here", "there"]}},
}


def test_references_are_written_out_and_recursion_ends(gateway: Hosted, server: Upstream) -> None:
    parameters = told(gateway, server, "m", functions({"name": "plant", "parameters": TREE}))["plant"]["parameters"]
    assert "$ref" not in json.dumps(parameters)
    assert "$defs" not in parameters
    assert parameters["properties"]["where"] == {"type": "string", "enum": ["here", "there"]}
    node = parameters["properties"]["root"]
    assert node["required"] == ["name"]
    assert node["properties"]["children"]["items"] == {"type": "object"}


@pytest.mark.parametrize(
    "body",
    [
        {"$ref": "#"},
        {"type": "object", "properties": {"me": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}},
        },
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}},
    ],
)
@pytest.mark.parametrize("name", ["m", "taught"])
def test_references_that_lead_nowhere_or_round_in_circles_do_no_harm(
    gateway: Hosted, server: Upstream, name: str, body: dict[str, Any]
) -> None:
    server.play(spoken("Done."))
    request = CHAT.body(name, stream=False) | {"tools": functions({"name": "odd", "parameters": body})}
    assert gateway.post(CHAT.path, request).status == 200


def test_what_only_people_read_is_left_out_where_that_is_set(gateway: Hosted, server: Upstream) -> None:
    place = {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "title": "Place",
        "examples": ["Oslo"],
        "description": "W.",
    }
    tool = {
        "name": "look",
        "description": "Look there. Then come back and tell everybody of it.",
        "parameters": {"type": "object", "title": "Look", "properties": {"place": place}},
    }
    found = told(gateway, server, "slim", functions(tool))["look"]
    assert found["description"] == "Look there."
    assert found["parameters"] == {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "W."}},
    }


# ── which tools ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "expected"), [("allowed", ["get_weather"]), ("denied", ["ping"]), ("m", [*TOOLS])])
def test_a_model_is_offered_what_its_settings_allow(
    gateway: Hosted, server: Upstream, name: str, expected: list[str]
) -> None:
    tools = functions(*({"name": each, "parameters": body} for each, body in TOOLS.items()))
    assert list(told(gateway, server, name, tools)) == expected


def test_a_call_that_must_be_made_of_a_denied_tool_is_refused(gateway: Hosted) -> None:
    choice = {"type": "function", "function": {"name": "get_weather"}}
    reply = gateway.post(CHAT.path, CHAT.body("denied", stream=False) | {"tool_choice": choice})
    assert (reply.status, reply.json["error"]["code"]) == (400, "tool_not_offered")


def test_under_a_cap_the_tools_that_matter_are_kept(gateway: Hosted, server: Upstream) -> None:
    tools = functions(*({"name": name} for name in ("one", "two", "three", "deploy", "four")))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Deploy it."}]
    assert list(told(gateway, server, "capped", tools, messages=messages)) == ["one", "deploy"]
    made = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("two", "four")]
    messages += [{"role": "assistant", "content": None, "tool_calls": made}]
    messages += [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in ("two", "four")]
    assert list(told(gateway, server, "capped", tools, messages=messages)) == ["two", "four"]
    server.play(said(call(0, "{}", id="b", name="three"), reason="tool_calls"))
    choice = {"type": "function", "function": {"name": "three"}}
    gateway.post(CHAT.path, {"model": "capped", "messages": messages, "tools": tools, "tool_choice": choice})
    offered = [tool["function"]["name"] for tool in server.requests[-1].json["tools"]]
    assert offered == ["two", "three", "four"]


# ── small jobs (P-16) ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "goes_to"),
    [
        ({"max_tokens": 50}, "tiny"),
        ({"max_tokens": 5000}, "m"),
        ({}, "m"),
        ({"max_tokens": 50, "tools": functions({"name": "ping"})}, "m"),
        ({"max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}, "m"),
    ],
    ids=["a title", "a long one", "without a limit", "with tools", "something else"],
)
@STREAM
def test_a_small_job_goes_to_the_model_of_its_rule(
    gateway: Hosted, server: Upstream, changes: dict[str, Any], goes_to: str, stream: bool
) -> None:
    server.play(spoken("Done."))
    title = [{"role": "user", "content": "Write a title for this conversation."}]
    reply = gateway.post(CHAT.path, {"model": "m", "messages": title, "stream": stream, **changes})
    assert reply.status == 200
    assert server.requests[-1].json["model"] == goes_to
    assert b'"model":"m"' in reply.body, "the client hears the name that it asked for"


@EACH_WIRE
def test_every_wire_has_its_small_jobs(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    server.play(spoken("Done."))
    limit = {"chat": {"max_tokens": 9}, "responses": {"max_output_tokens": 9}, "messages": {"max_tokens": 9}}
    asked = [{"role": "user", "content": "Write a title for this conversation."}]
    body = {"model": "m", "stream": False, "input" if wire is RESPONSES else "messages": asked}
    body |= limit.get(wire.name, {"options": {"num_predict": 9}})
    assert gateway.post(wire.path, body).status == 200
    assert server.requests[-1].json["model"] == "tiny"
