"""Input that is deep, large or written to exhaust its reader, in any size: for tests, and for `make bench-limits`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from callwright import get_dialect

# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────

NESTINGS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * n + "]" * n,
    "brackets that stay open": lambda n: "[" * n,
    "objects": lambda n: '{"a":' * n + "1" + "}" * n,
    "tuples": lambda n: "(" * n + ")" * n,
}


def write_call(dialect: str, value: str) -> str:
    """A call of `act` in a dialect, with this text as the value of `items`."""
    it = get_dialect(dialect)
    call = it.render_call(it.build_sample_call("act", {"items": ["@"]}))
    for written in ('["@"]', "['@']", '[<|"|>@<|"|>]', "- '@'", "- @", "@"):
        if written in call:
            return it.call_prefill + call.replace(written, value)
    raise ValueError(dialect)


def list_runs(dialect: str) -> dict[str, str]:
    """Texts that a dialect must look at twice, by what they are; to be repeated."""
    opens = [mark for mark in getattr(get_dialect(dialect), "opens", ()) if len(mark) > 1] or ["<tool_call>"]
    return {
        "brackets": "[",
        "braces": "{",
        "a marker": opens[0],
        "the beginning of a marker": opens[0][:-1],
        "angle brackets": "<",
        "calls that begin": '{"name":',
        "calls in calls": '{"tool_calls":[',
        "functions that begin": "act(",
        "backticks": "`",
        "spaces": " ",
        "line breaks": "\n",
        "backslashes": "\\",
        "quotes": '"',
    }


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────


def fan_out(n: int, word: str) -> dict[str, Any]:
    """Each definition refers to the next twice: 2 ** n ways to the last."""

    def build(at: int) -> dict[str, Any]:
        below = {"$ref": f"#/$defs/d{at + 1}"}
        if word != "properties":
            return {word: [below, dict(below)]}
        return {"type": "object", "properties": {"p1": below, "p2": dict(below)}, "required": ["p1"]}

    last = {"type": "object", "properties": {"x": {"type": "string"}}}
    definitions = {**{f"d{at}": build(at) for at in range(n)}, f"d{n}": last}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def refer_to_all(n: int) -> dict[str, Any]:
    """Each definition refers to all of them."""
    members = {f"p{at}": {"$ref": f"#/$defs/d{at}"} for at in range(n)}
    definitions = {f"d{at}": {"type": "object", "properties": members} for at in range(n)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


def refer_to_next(n: int) -> dict[str, Any]:
    """Each definition refers to the next once."""
    definitions = {f"d{at}": {"properties": {"x": {"$ref": f"#/$defs/d{at + 1}"}}} for at in range(n)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**definitions, f"d{n}": {}}}


def nest_schema(n: int, word: str) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "string"}
    for _ in range(n):
        if word == "properties":
            body = {word: {"a": body}}
        else:
            body = {word: body if word == "items" else [body, {"type": "null"}]}
    return {"type": "object", "properties": {"value": body}}


def multiply_alternatives(n: int) -> dict[str, Any]:
    pairs = [{"anyOf": [{"minLength": at}, {"maxLength": at}]} for at in range(n)]
    return {"type": "object", "properties": {"a": {"allOf": pairs}}}


def branch_into_itself(n: int) -> dict[str, Any]:
    """A value that is nested n deep is checked 2 ** n times."""
    branches = [{"properties": {"x": {"$ref": "#/$defs/a"}}, "minProperties": at} for at in range(2)]
    return {"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": branches}}, "title": "a" * n}


def _name_members(n: int) -> dict[str, Any]:
    return {f"p{at}": {"type": "string"} for at in range(n)}


def _list_words(n: int) -> list[str]:
    return [f"v{at}" for at in range(n)]


SCHEMAS: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "references that fan out as properties": (8, lambda n: fan_out(n, "properties")),
    "references that fan out as anyOf": (8, lambda n: fan_out(n, "anyOf")),
    "references that fan out as oneOf": (8, lambda n: fan_out(n, "oneOf")),
    "references that fan out as allOf": (8, lambda n: fan_out(n, "allOf")),
    "definitions that all refer to all": (8, refer_to_all),
    "definitions that refer to the next": (500, refer_to_next),
    "alternatives that multiply": (8, multiply_alternatives),
    "branches that contain themselves": (20, branch_into_itself),
    "nested items": (30, lambda n: nest_schema(n, "items")),
    "nested properties": (15, lambda n: nest_schema(n, "properties")),
    "nested anyOf": (15, lambda n: nest_schema(n, "anyOf")),
    "nested allOf": (15, lambda n: nest_schema(n, "allOf")),
    "values of an enum": (5_000, lambda n: {"properties": {"a": {"enum": _list_words(n)}}}),
    "enums that are merged": (
        1_000,
        lambda n: {"properties": {"a": {"allOf": [{"enum": _list_words(n)}, {"enum": _list_words(n)}]}}},
    ),
    "optional properties": (1_000, lambda n: {"properties": _name_members(n)}),
    "required properties": (1_000, lambda n: {"properties": _name_members(n), "required": [*_name_members(n)]}),
    "additional properties beside declared ones": (
        500,
        lambda n: {"properties": _name_members(n), "additionalProperties": {"type": "string"}},
    ),
    "a long name": (2_000, lambda n: {"properties": {"p" * n: {}}, "additionalProperties": {"type": "string"}}),
    "a pattern of groups": (
        1_000,
        lambda n: {"properties": {"a": {"type": "string", "pattern": "(" * n + "a" + ")" * n}}},
    ),
    "a long pattern": (5_000, lambda n: {"properties": {"a": {"type": "string", "pattern": "a" * n}}}),
    "branches to one definition": (
        500,
        lambda n: {
            "properties": {"a": {"anyOf": [{"$ref": "#/$defs/b", "minLength": at} for at in range(n)]}},
            "$defs": {"b": {"type": "object", "properties": _name_members(n)}},
        },
    ),
    "references to a large definition": (
        200,
        lambda n: {
            "properties": {f"p{at}": {"$ref": "#/$defs/b"} for at in range(n)},
            "$defs": {"b": {"enum": _list_words(10 * n)}},
        },
    ),
}
"""Kinds of schemas: a size that is ordinary or harmless, and the schema of a size."""


def build_schema(label: str, n: int) -> dict[str, Any]:
    """A schema as from a request: decoded JSON, in which no objects are shared."""
    decoded: dict[str, Any] = json.loads(json.dumps(SCHEMAS[label][1](n)))
    return decoded


def nest_value(n: int) -> str:
    return '{"x": ' * n + "{}" + "}" * n


# ── requests ──────────────────────────────────────────────────────────────────────────────────────

WIRES = ("openai_chat", "openai_responses", "anthropic", "ollama")
TOOL = {"type": "function", "function": {"name": "act", "parameters": {"type": "object"}}}


def ask(*messages: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hi"}, *messages], "tools": [TOOL]}


def call_in_chat(ids: list[str]) -> dict[str, Any]:
    calls = [
        {"id": each, "type": "function", "function": {"name": "act", "arguments": f'{{"value": {at}}}'}}
        for at, each in enumerate(ids)
    ]
    return {"role": "assistant", "tool_calls": calls}


def answer_in_chat(ids: list[str]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": each, "content": f"result {at}"} for at, each in enumerate(ids)]


def _list_ids(n: int) -> list[str]:
    return [f"c{at}" for at in range(n)]


def _call_in_anthropic(n: int) -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": each, "name": "act", "input": {"at": each}} for each in _list_ids(n)]
    results = [{"type": "tool_result", "tool_use_id": each, "content": each} for each in reversed(_list_ids(n))]
    return ask({"role": "assistant", "content": calls}, {"role": "user", "content": results}) | {"tools": []}


def _call_in_responses(n: int) -> dict[str, Any]:
    calls = [
        {"type": "function_call", "call_id": each, "name": "act", "arguments": json.dumps({"at": each})}
        for each in _list_ids(n)
    ]
    results = [{"type": "function_call_output", "call_id": each, "output": each} for each in reversed(_list_ids(n))]
    return {"input": [{"role": "user", "content": "hi"}, *calls, *results]}


def _call_in_ollama(n: int, *, named: bool) -> dict[str, Any]:
    calls = [{"function": {"name": f"t{at}", "arguments": {}}} for at in range(n)]
    results = [
        {"role": "tool", "content": str(at), **({"tool_name": f"t{at}"} if named else {})} for at in reversed(range(n))
    ]
    return ask({"role": "assistant", "tool_calls": calls}, *results)


def _offer_namespaces(n: int, *, long: bool) -> dict[str, Any]:
    if long:
        tools = [{"type": "function", "name": "t" * 60 + str(at)} for at in range(n)]
        return {"input": "hi", "tools": [{"type": "namespace", "name": "s" * 70, "tools": tools}]}
    tools = [{"type": "function", "name": "t"}]
    groups = [{"type": "namespace", "name": f"s{at}", "description": "d", "tools": tools} for at in range(n)]
    return {"input": "hi", "tools": groups}


def _offer_tools(n: int) -> list[dict[str, Any]]:
    parameters = {"properties": {"a": {"type": "string"}}}
    return [{"type": "function", "function": {"name": f"t{at}", "parameters": parameters}} for at in range(n)]


REQUESTS: dict[str, tuple[str, int, Callable[[int], dict[str, Any]]]] = {
    "tool results": (
        "openai_chat",
        5_000,
        lambda n: ask(call_in_chat(_list_ids(n)), *answer_in_chat(_list_ids(n))),
    ),
    "tool results, the last first": (
        "openai_chat",
        5_000,
        lambda n: ask(call_in_chat(_list_ids(n)), *answer_in_chat(_list_ids(n)[::-1])),
    ),
    "tool results without their calls": (
        "openai_chat",
        5_000,
        lambda n: ask(call_in_chat(_list_ids(n)), *answer_in_chat([f"x{at}" for at in range(n)])),
    ),
    "results of one call": ("openai_chat", 5_000, lambda n: ask(call_in_chat(["c"]), *answer_in_chat(["c"] * n))),
    "calls with one id": (
        "openai_chat",
        2_000,
        lambda n: ask(call_in_chat(["c"] * n), *answer_in_chat(["c"] * n)),
    ),
    "calls without an id": (
        "openai_chat",
        2_000,
        lambda n: ask(call_in_chat([f"call_{n + at}" for at in range(n)] + [""] * n)),
    ),
    "rounds of one call": (
        "openai_chat",
        2_500,
        lambda n: ask(*(each for at in _list_ids(n) for each in (call_in_chat([at]), *answer_in_chat([at])))),
    ),
    "messages": (
        "openai_chat",
        5_000,
        lambda n: ask(*({"role": ("assistant", "user")[at % 2], "content": "hi"} for at in range(n))),
    ),
    "tools": ("openai_chat", 1_000, lambda n: {**ask(), "tools": _offer_tools(n)}),
    "tool results, the last first (Messages)": ("anthropic", 5_000, _call_in_anthropic),
    "tool results, the last first (Responses)": ("openai_responses", 5_000, _call_in_responses),
    "tools whose names begin alike (Responses)": (
        "openai_responses",
        500,
        lambda n: _offer_namespaces(n, long=True),
    ),
    "namespaces (Responses)": ("openai_responses", 1_000, lambda n: _offer_namespaces(n, long=False)),
    "tool results, the last first (Ollama)": ("ollama", 5_000, lambda n: _call_in_ollama(n, named=True)),
    "tool results without a name (Ollama)": ("ollama", 5_000, lambda n: _call_in_ollama(n, named=False)),
}
"""Kinds of requests: the wire, a size, and the body of a size."""


def build_body(label: str, n: int) -> bytes:
    return json.dumps({"model": "m", **REQUESTS[label][2](n)}).encode()


def build_deep_body(wire: str, n: int, where: str) -> bytes:
    """A request with n nested brackets: in a tool's `schema`, in the arguments of a `call`, or in any other field."""
    key = "input" if wire == "openai_responses" else "messages"
    body: dict[str, Any] = {"model": "m", key: [{"role": "user", "content": "hi"}], "max_tokens": 9}
    nested = "[" * n + "]" * n
    if where == "schema":
        nested = '{"items":' * n + "{}" + "}" * n
        tool: dict[str, Any] = {"name": "act", "parameters": {"properties": {"a": "@"}}}
        if wire == "anthropic":
            tool["input_schema"] = tool.pop("parameters")
        body["tools"] = [tool if wire == "anthropic" else {"type": "function", **tool, "function": tool}]
    elif where == "call":
        call = {"name": "act", "arguments": {"a": "@"}}
        body[key].append(
            {"type": "function_call", "call_id": "a", **call}
            if wire == "openai_responses"
            else {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "act", "input": {"a": "@"}}]}
            if wire == "anthropic"
            else {"role": "assistant", "tool_calls": [{"id": "a", "function": call}]}
        )
    else:
        body["extra"] = "@"
    return json.dumps(body).replace('"@"', nested).encode()
