"""What clients send to `/v1/responses`, and what becomes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult
from callwright.wire.base import ClientRequest, ToolOrigin
from callwright.wire.openai_responses import OpenAIResponsesServerCodec

HI = {"role": "user", "content": "hi"}


def decode(**body: Any) -> ClientRequest:
    return OpenAIResponsesServerCodec().decode_request(json.dumps({"model": "m", "input": "hi"} | body).encode())


def messages(*items: Any, **body: Any) -> tuple[Message, ...]:
    return decode(input=list(items), **body).request.messages


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}} | more


def call(call_id: str = "c1", name: str = "ping", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments} | more


def output(value: Any, call_id: str = "c1", kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": value}


# ── whatever comes ───────────────────────────────────────────────────────────────────────────────

keys = st.sampled_from(
    [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "previous_response_id",
        "max_output_tokens",
        "temperature",
        "reasoning",
        "effort",
        "text",
        "format",
        "type",
        "role",
        "content",
        "output",
        "call_id",
        "name",
        "namespace",
        "arguments",
        "summary",
        "image_url",
        "url",
        "id",
        "mode",
        "syntax",
        "definition",
        "parameters",
        "description",
        "function",
        "store",
        "background",
    ]
) | st.text(max_size=4)
words = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "item_reference",
        "additional_tools",
        "agent_message",
        "input_text",
        "output_text",
        "input_image",
        "function",
        "custom",
        "namespace",
        "allowed_tools",
        "web_search",
        "user",
        "assistant",
        "developer",
        "system",
        "tool",
        "auto",
        "none",
        "required",
        "json_schema",
        "functions",
        "m",
    ]
) | st.text(max_size=4)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=30,
)
items = st.fixed_dictionaries({"type": words}, optional={"call_id": words, "name": words, "content": values}) | values


@given(values)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with suppress(RequestError):
        OpenAIResponsesServerCodec().decode_request(json.dumps(value).encode())


@given(st.dictionaries(keys, values), st.lists(items, max_size=5), st.lists(items, max_size=3))
def test_anything_that_looks_like_a_request_is_read_or_refused(body: Any, conversation: Any, tools: Any) -> None:
    with suppress(RequestError):
        decode(**(body | {"input": conversation, "tools": tools}))


@given(st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        OpenAIResponsesServerCodec().decode_request(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"null", b'{"model": NaN}'],
    ids=["empty", "cut", "deep list", "deep object", "no UTF-8", "null", "NaN"],
)
def test_broken_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        OpenAIResponsesServerCodec().decode_request(body)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": [HI, 3]}, "input[1]"),
        ({"input": [{"role": "critic", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0].type"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": [HI, {"type": "function_call", "call_id": "c"}]}, "input[1].name"),
        ({"input": [HI, {"type": "function_call", "name": "ping"}]}, "input[1].call_id"),
        ({"input": [HI, output("x", "lost")]}, "input[1].call_id"),
        ({"input": [HI, {"type": "item_reference"}]}, "input[1].id"),
        ({"instructions": 3}, "instructions"),
        ({"tools": {}}, "tools"),
        ({"tools": [3]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [function("a"), {"type": "namespace", "name": "n", "tools": [{}]}]}, "tools[1].tools[0].name"),
        ({"tools": [function("a", parameters=[])]}, "tools[0].parameters"),
        ({"tool_choice": "ping"}, "tool_choice"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "ping"}}, "tool_choice.name"),
        (
            {"tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "x"}]}},
            "tool_choice.tools[0].name",
        ),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"max_output_tokens": 1.5}, "max_output_tokens"),
        ({"stream": "yes"}, "stream"),
        ({"reasoning": "high"}, "reasoning"),
        ({"reasoning": {"effort": 3}}, "reasoning.effort"),
        ({"text": {"format": "json"}}, "text.format"),
        ({"background": True}, "background"),
        ({"previous_response_id": 3}, "previous_response_id"),
    ],
)
def test_an_error_names_the_field_that_is_wrong(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(**body)
    assert caught.value.param == param
    assert caught.value.status == 400


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


def test_a_string_is_a_message_of_the_user() -> None:
    assert decode().request.messages == (user("hi"),)


def test_instructions_come_first_and_are_known_as_such() -> None:
    ask = decode(instructions="be brief")
    assert ask.request.messages == (Message("system", (Text("be brief"),)), user("hi"))
    assert ask.extra["instructions"] == "be brief"


def test_roles_and_content_parts() -> None:
    picture = "data:image/png;base64,AAAA"
    got = messages(
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        {"role": "system", "content": "more"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": picture, "detail": "high"},
                {"type": "input_image", "image_url": {"url": "https://x/y.png"}},
            ],
        },
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a cat"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    )
    assert got == (
        Message("developer", (Text("rules"),)),
        Message("system", (Text("more"),)),
        Message("user", (Text("see"), Image(picture, "image/png"), Image("https://x/y.png"))),
        Message("assistant", (Text("a cat"), Text("no"))),
    )


def test_what_the_model_said_and_did_in_one_run_is_one_message() -> None:
    got = messages(
        HI,
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}]},
        {"role": "assistant", "content": "let me"},
        call("c1", arguments='{"a": '),
        call("c2"),
        output("one"),
        output("two", "c2"),
        {"role": "assistant", "content": "done"},
    )
    thinking = Reasoning("why")
    assert got == (
        user("hi"),
        Message(
            "assistant", (thinking, Text("let me"), ToolCall("c1", "ping", '{"a": '), ToolCall("c2", "ping", "{}"))
        ),
        Message("tool", (ToolResult("c1", "one", "ping"),)),
        Message("tool", (ToolResult("c2", "two", "ping"),)),
        Message("assistant", (Text("done"),)),
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"summary": []}, Reasoning("")),
        # The id is one that we gave; the server encrypted it for its own.
        ({"summary": [], "encrypted_content": "gAAA", "id": "rs"}, Reasoning("", {"encrypted_content": "gAAA"})),
        (
            {"summary": [{"text": "a"}, {"text": "b"}], "content": None, "encrypted_content": None},
            Reasoning("a\n\nb"),
        ),
        ({"content": [{"type": "reasoning_text", "text": "raw"}], "summary": []}, Reasoning("raw")),
        ({"content": [{"text": "raw"}], "summary": [{"text": "in short"}]}, Reasoning("raw")),
    ],
)
def test_reasoning_keeps_what_a_server_wants_back(item: dict[str, Any], expected: Reasoning) -> None:
    assert messages({"type": "reasoning"} | item)[0].parts == (expected,)


def test_broken_arguments_in_the_history_are_kept_as_they_are() -> None:
    # Codex 0.166 sends the model's own text back.
    assert messages(HI, call(arguments='{"cmd": "ls'), output("failed to parse"))[1].parts == (
        ToolCall("c1", "ping", '{"cmd": "ls'),
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ToolResult("c1", "text", "ping")),
        ("", ToolResult("c1", "", "ping")),
        (None, ToolResult("c1", "", "ping")),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], ToolResult("c1", "a\nb", "ping")),
        (
            [{"type": "input_image", "image_url": "https://x"}],
            ToolResult("c1", "", "ping", images=(Image("https://x"),)),
        ),
        ({"content": "x", "success": False}, ToolResult("c1", '{"content": "x", "success": false}', "ping")),
    ],
)
def test_a_result_may_have_many_shapes(value: Any, expected: ToolResult) -> None:
    assert messages(HI, call(), output(value))[-1].parts == (expected,)


def test_free_text_in_the_history_is_what_the_model_saw() -> None:
    # Copilot CLI 1.0 with a GPT-5 id offers apply_patch so.
    got = messages(
        HI,
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": '*** "Begin"\n'},
        output("ok", kind="custom_tool_call_output"),
    )
    assert got[1].parts == (ToolCall("c1", "apply_patch", '{"input": "*** \\"Begin\\"\\n"}'),)
    assert got[2].parts == (ToolResult("c1", "ok", "apply_patch"),)


def test_a_task_for_a_sub_agent_is_a_message_of_the_user() -> None:
    content = [{"type": "input_text", "text": "Payload:\n"}, {"type": "encrypted_content", "encrypted_content": "list"}]
    assert messages({"type": "agent_message", "author": "/root", "content": content})[0] == Message(
        "user", (Text("Payload:\n"), Text("list"))
    )


def test_items_that_we_cannot_use_are_set_aside_with_their_results() -> None:
    unknown = {"type": "local_shell_call", "call_id": "c9", "action": {"type": "exec"}}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    ask = decode(input=[HI, search, unknown, output("x", "c9")])
    assert ask.request.messages == (user("hi"),)
    assert ask.extra["input"] == [search, unknown, output("x", "c9")]


def test_a_result_whose_call_is_elsewhere_is_taken_on_trust() -> None:
    ask = decode(input=[output("x", "c7")], previous_response_id="resp_abc")
    assert ask.previous == "abc"
    assert ask.request.messages[0].parts == (ToolResult("c7", "x"),)


# ── tools ────────────────────────────────────────────────────────────────────────────────────────

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files.", "format": GRAMMAR}


def test_functions_keep_their_names_and_schemas() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "$schema": "x"}
    ask = decode(
        tools=[function("ping", description="d", parameters=schema, strict=None), function("bare", parameters=None)]
    )
    assert [(tool.name, tool.description, tool.parameters) for tool in ask.request.tools] == [
        ("ping", "d", schema),
        ("bare", "", {}),
    ]
    assert ask.origins == {}


def test_the_nested_form_of_chat_completions_is_a_function_too() -> None:
    ask = decode(tools=[{"type": "function", "function": {"name": "ping", "parameters": {}}}])
    assert [tool.name for tool in ask.request.tools] == ["ping"]


def test_a_custom_tool_is_a_function_of_one_string_with_the_grammar_in_words() -> None:
    ask = decode(tools=[PATCH])
    (tool,) = ask.request.tools
    assert tool.parameters["required"] == ["input"]
    assert tool.parameters["properties"]["input"]["type"] == "string"
    assert tool.description.startswith("Edit files.")
    assert "lark" in tool.description
    assert GRAMMAR["definition"] in tool.description
    assert ask.origins == {"apply_patch": ToolOrigin("apply_patch", "custom")}


def test_a_namespace_is_flattened_and_leads_back() -> None:
    group = {"type": "namespace", "name": "mcp__notes", "description": "Notes.", "tools": [function("add"), PATCH]}
    ask = decode(
        tools=[function("add"), group],
        tool_choice={"type": "function", "name": "add", "namespace": "mcp__notes"},
        input=[HI, call(name="add", namespace="mcp__notes"), call("c2", "add"), output("x"), output("y", "c2")],
    )
    assert [tool.name for tool in ask.request.tools] == ["add", "mcp__notes__add", "mcp__notes__apply_patch"]
    assert ask.request.tools[1].description == "Notes."
    assert ask.origins == {
        "mcp__notes__add": ToolOrigin("add", "function", "mcp__notes"),
        "mcp__notes__apply_patch": ToolOrigin("apply_patch", "custom", "mcp__notes"),
    }
    assert ask.request.tool_choice == "mcp__notes__add"
    assert [part.name for part in ask.request.messages[1].parts] == ["mcp__notes__add", "add"]


def test_codexs_own_namespace_is_none() -> None:
    # 0.144 and later; a call without a namespace is taken as meant for it.
    tools = [{"type": "namespace", "name": "functions", "tools": [PATCH, function("wait")]}]
    ask = decode(
        input=[
            {"type": "additional_tools", "role": "developer", "tools": tools},
            HI,
            call(name="wait", namespace="functions"),
        ]
    )
    assert [tool.name for tool in ask.request.tools] == ["apply_patch", "wait"]
    assert ask.origins == {"apply_patch": ToolOrigin("apply_patch", "custom")}
    assert ask.request.messages[1].parts[0].name == "wait"
    assert "input" not in ask.extra


def test_a_tool_that_is_declared_twice_is_offered_once() -> None:
    again = {"type": "additional_tools", "role": "developer", "tools": [function("ping", description="other")]}
    ask = decode(tools=[function("ping", description="first")], input=[again, HI])
    assert [tool.description for tool in ask.request.tools] == ["first"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("", "_", "a", "a_", "a__b", "n" * 70, "functions")),
            st.sampled_from(("x", "__x", "b__x", "y" * 90)),
        ),
        unique=True,
    )
)
def test_every_tool_has_a_name_of_its_own_that_leads_back_to_it(declared: list[tuple[str, str]]) -> None:
    tools = [
        {"type": "namespace", "name": space, "tools": [function(name)]} if space else function(name)
        for space, name in declared
    ]
    ask = decode(tools=tools)
    back = [ask.origins.get(tool.name, ToolOrigin(tool.name)) for tool in ask.request.tools]
    told = {(one.namespace, one.name) for one in back}
    assert told == {("" if space == "functions" else space, name) for space, name in declared}
    assert len({tool.name for tool in ask.request.tools}) == len(back) == len(told)


def test_tools_that_a_server_would_run_are_left_out_and_kept() -> None:
    search, shell = {"type": "web_search", "external_web_access": True}, {"type": "local_shell"}
    ask = decode(tools=[search, function("ping"), shell])
    assert [tool.name for tool in ask.request.tools] == ["ping"]
    assert ask.extra["tools"] == [search, shell]


@pytest.mark.parametrize(
    ("choice", "expected", "offered"),
    [
        (None, "auto", ["ping", "pong"]),
        ("none", "none", ["ping", "pong"]),
        ("required", "required", ["ping", "pong"]),
        ({"type": "function", "name": "pong"}, "pong", ["ping", "pong"]),
        ({"type": "custom", "name": "pong"}, "pong", ["ping", "pong"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "pong"}]},
            "required",
            ["pong"],
        ),
        ({"type": "web_search"}, "auto", ["ping", "pong"]),
    ],
)
def test_tool_choice(choice: Any, expected: str, offered: list[str]) -> None:
    ask = decode(tools=[function("ping"), function("pong")], tool_choice=choice)
    assert ask.request.tool_choice == expected
    assert [tool.name for tool in ask.request.tools] == offered


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────


def test_options_have_the_names_that_all_wires_share() -> None:
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    ask = decode(
        temperature=0,
        top_p=0.5,
        max_output_tokens=9,
        reasoning={"effort": "high", "summary": "auto"},
        text={"format": schema, "verbosity": "low"},
        parallel_tool_calls=False,
        stream=True,
    )
    assert ask.request.options == {
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 9,
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
    }
    assert (ask.request.parallel_tool_calls, ask.stream, ask.choices, ask.include_usage) == (False, True, 1, True)
    assert (ask.extra["reasoning"], ask.extra["text"]) == ({"summary": "auto"}, {"verbosity": "low"})


def test_plain_text_is_no_response_format_and_json_is() -> None:
    # LM Studio's clients (Obsidian Copilot 4) always send the first.
    assert "response_format" not in decode(text={"format": {"type": "text"}}).request.options
    assert decode(text={"format": {"type": "json_object"}}).request.options["response_format"] == {
        "type": "json_object"
    }


def test_fields_that_only_this_wire_knows_are_kept_and_nulls_are_not() -> None:
    # What Codex 0.166 and Copilot CLI 1.0.102 send besides.
    sent = {"store": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "client_metadata": {}}
    assert decode(**sent, user=None, temperature=None).extra == sent


@pytest.mark.parametrize("depth", [900, 2000, 5000])
def test_a_result_that_is_nested_deeply_is_read_or_refused(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    body = '{"model": "m", "input": [%s, {"type": "function_call_output", "call_id": "c1", "output": %s}]}'
    with suppress(RequestError):
        OpenAIResponsesServerCodec().decode_request((body % (json.dumps(call()), deep)).encode())
