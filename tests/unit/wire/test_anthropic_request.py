"""Anthropic's requests, read from clients and written for servers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.anthropic import AnthropicClientCodec, AnthropicServerCodec
from callwright.wire.anthropic.decode import GATEWAY_SIGNATURE
from callwright.wire.base import ClientRequest

PIXEL = {"type": "base64", "media_type": "image/png", "data": "iVBORw0"}
PNG = Image("data:image/png;base64,iVBORw0", "image/png")


def decode(**body: Any) -> ClientRequest:
    return AnthropicServerCodec().decode_request(json.dumps({"model": "m", "messages": [], **body}).encode())


def messages(*entries: dict[str, Any]) -> tuple[Message, ...]:
    return decode(messages=list(entries)).request.messages


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def used(call_id: str = "t1", name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]}


def result(call_id: str = "t1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **fields}


# ── content ──────────────────────────────────────────────────────────────────────────────────────────


def test_instructions_are_a_string_or_blocks() -> None:
    marked = {"type": "text", "text": "B", "cache_control": {"type": "ephemeral"}}
    assert decode(system="A").request.messages == (Message("system", (Text("A"),)),)
    blocks = decode(system=[{"type": "text", "text": "A"}, marked]).request.messages
    assert blocks == (Message("system", (Text("A"), Text("B"))),)
    assert decode(system="").request.messages == ()


def test_instructions_may_stand_among_the_messages() -> None:
    said = {"role": "user", "content": "Hi"}
    assert messages(said, {"role": "system", "content": "Be brief"}) == (
        Message("user", (Text("Hi"),)),
        Message("system", (Text("Be brief"),)),
    )


def test_results_come_as_messages_of_their_own_before_the_rest() -> None:
    calls = {"role": "assistant", "content": used("a")["content"] + used("b", "ls")["content"]}
    mixed = user({"type": "text", "text": "go on"}, result("b", content="2"), result("a", content="1", is_error=True))
    assert messages(calls, mixed)[1:] == (
        Message("tool", (ToolResult("b", "2", "ls"),)),
        Message("tool", (ToolResult("a", "1", "read", is_error=True),)),
        Message("user", (Text("go on"),)),
    )


@pytest.mark.parametrize(
    ("content", "text", "images"),
    [
        (None, "", ()),
        ("", "", ()),
        ("42", "42", ()),
        ([], "", ()),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", ()),
        ([{"type": "image", "source": PIXEL}], "", (PNG,)),
        ([{"type": "document", "source": {"type": "text", "data": "words"}, "title": "T"}], "T\nwords", ()),
        ([{"type": "document", "source": {"type": "content", "content": "words"}}], "words", ()),
        ([{"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "x"}]}],
         "T\nS\nx", ()),
    ],
)  # fmt: skip
def test_results_have_words_and_pictures(content: Any, text: str, images: tuple[Image, ...]) -> None:
    assert messages(used(), user(result(content=content)))[1].parts == (ToolResult("t1", text, "read", images=images),)


def test_a_result_without_any_call_is_refused() -> None:
    with pytest.raises(RequestError, match="t9") as caught:
        messages(user({"type": "text", "text": "go"}), user(result("t9")))
    assert caught.value.param == "messages[1].content[0].tool_use_id"


def test_a_result_beside_other_calls_is_for_the_history_to_mend() -> None:
    assert messages(used(), user(result("t9")))[1].parts[0].call_id == "t9"  # type: ignore[union-attr]


def test_what_the_model_said_is_kept_in_order() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "thinking", "thinking": "ours", "signature": GATEWAY_SIGNATURE},
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"b": 1, "a": [1.5, "é"]}},
    ]
    assert messages({"role": "assistant", "content": blocks})[0].parts == (
        Reasoning("hm", {"signature": "sig"}),
        Reasoning("", {"redacted": "secret"}),
        Reasoning("ours"),
        Text("I look."),
        ToolCall("t1", "read", '{"b":1,"a":[1.5,"é"]}'),
    )


def test_pictures_come_as_data_or_by_address() -> None:
    by_address = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    assert messages(user({"type": "image", "source": PIXEL}, by_address))[0].parts == (PNG, Image("https://x/y.png"))


@pytest.mark.parametrize(
    ("block", "param"),
    [
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, "messages[0].content[0].source.type"),
        ({"type": "document", "source": {"type": "base64", "data": "JVBE"}}, "messages[0].content[0].source.type"),
        ({"type": "image"}, "messages[0].content[0].source"),
        ({"type": "container_upload"}, "messages[0].content[0].type"),
        ({"type": "text", "text": 3}, "messages[0].content[0].text"),
    ],
)
def test_what_cannot_be_passed_on_is_refused_by_name(block: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        messages(user(block))
    assert caught.value.param == param


# ── tools and options ────────────────────────────────────────────────────────────────────────────────

READ = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}, "cache_control": {}}
SPEC = ToolSpec("read", "Reads.", {"type": "object"})


def test_tools_of_the_server_are_left_to_backends_that_have_them() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    ask = decode(tools=[READ, search, {**READ, "type": "custom", "name": "write"}])
    assert [tool.name for tool in ask.request.tools] == ["read", "write"]
    assert ask.request.tools[0] == SPEC
    assert ask.extra == {"tools": [search]}


def test_a_deferred_tool_is_shown_once_a_search_has_found_it() -> None:
    later = {**READ, "name": "later", "defer_loading": True}
    other = {**READ, "name": "DeferredToolPlaceholder", "defer_loading": True}
    tools = [READ, later, other]
    assert [tool.name for tool in decode(tools=tools).request.tools] == ["read"]
    found = user(result(content=[{"type": "tool_reference", "tool_name": "later"}]))
    ask = decode(tools=tools, messages=[used(name="ToolSearch"), found])
    assert [tool.name for tool in ask.request.tools] == ["read", "later"]
    assert "later" in ask.request.messages[-1].parts[0].content
    hosted = {"type": "tool_search_tool_regex_20251119", "name": "tool_search"}
    assert len(decode(tools=[*tools, hosted]).request.tools) == 3


@pytest.mark.parametrize(
    ("choice", "want", "parallel"),
    [
        (None, "auto", True),
        ({"type": "auto"}, "auto", True),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
        ({"type": "tool", "name": "read"}, "read", True),
        ({"type": "none"}, "none", True),
    ],
)
def test_tool_choices(choice: Any, want: str, parallel: bool) -> None:
    request = decode(tools=[READ], tool_choice=choice).request
    assert (request.tool_choice, request.parallel_tool_calls) == (want, parallel)


def test_options_have_everybodys_names() -> None:
    schema = {"type": "object"}
    config = {"effort": "high", "format": {"type": "json_schema", "schema": schema}}
    ask = decode(
        max_tokens=9, temperature=0.5, top_p=1, top_k=3, stop_sequences=["x"], output_config=config, stream=True,
        thinking={"type": "adaptive"}, metadata={"user_id": "u"}, context_management={"edits": []}, betas=["b"],
    )  # fmt: skip
    assert ask.stream
    assert ask.request.options == {
        "max_tokens": 9, "temperature": 0.5, "top_p": 1, "top_k": 3, "stop": ["x"], "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    }  # fmt: skip
    assert set(ask.extra) == {"output_config", "thinking", "metadata", "context_management", "betas"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"messages": {}}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "x"}]}]},
         "messages[0].content[0].id"),
        ({"system": 3}, "system"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "x", "input_schema": "y"}]}, "tools[0].input_schema"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"temperature": True}, "temperature"),
        ({"stop_sequences": [1]}, "stop_sequences[0]"),
        ({"stream": "yes"}, "stream"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(**body)
    assert caught.value.param == param


def test_a_body_for_counting_tokens_is_read_the_same() -> None:
    assert decode(system="A", tools=[READ]).request.tools == (SPEC,)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(
        ["user", "assistant", "system", "text", "image", "tool_use", "tool_result", "document", "base64", "tool"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from([
            "type", "text", "role", "content", "source", "id", "name", "input", "tool_use_id", "data", "media_type",
            "url", "thinking", "signature", "input_schema", "defer_loading", "tool_name", "is_error",
        ]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
fields = st.sampled_from(
    ["messages", "system", "tools", "tool_choice", "stream", "max_tokens", "stop_sequences", "output_config", "x"]
)


@given(st.dictionaries(fields, anything | st.lists(anything, max_size=3)))
def test_no_json_makes_decoding_raise_anything_else(body: dict[str, Any]) -> None:
    with suppress(RequestError):
        decode(**body)


@given(st.binary(max_size=30))
def test_no_bytes_make_decoding_raise_anything_else(body: bytes) -> None:
    with pytest.raises(RequestError):
        AnthropicServerCodec().decode_request(body)


def test_a_body_that_is_no_text_is_refused() -> None:
    with pytest.raises(RequestError):
        AnthropicServerCodec().decode_request(b'{"model":"\xff"}')


@pytest.mark.parametrize("depth", [100_000, 990, 950, 900])
def test_deep_nesting_is_no_crash(depth: int) -> None:
    body = (
        b'{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{"a":'
    )
    with suppress(RequestError):
        AnthropicServerCodec().decode_request(body + b"[" * depth + b"]" * depth + b"}}]}]}")


# ── calling ──────────────────────────────────────────────────────────────────────────────────────────

CALLED = AnthropicClientCodec()


def body(*said: Message, extra: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return json.loads(CALLED.encode_request(Request("claude", said, **fields), extra or {}))


def test_the_path_and_the_headers() -> None:
    assert CALLED.get_path(Request("m", ())) == "/v1/messages"
    assert CALLED.build_headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert "x-api-key" not in CALLED.build_headers("")


def test_a_plain_request() -> None:
    assert body(
        Message("system", (Text("A"),)), Message("developer", (Text("B"),)), Message("user", (Text("Hi"),))
    ) == {
        "model": "claude",
        "max_tokens": 8192,
        "stream": True,
        "system": "A\n\nB",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_speakers_take_turns_and_results_come_first() -> None:
    sent = body(
        Message("user", (Text("one"),)),
        Message("user", (Text("two"), Text(" "))),
        Message("assistant", (Text("I look."), ToolCall("a", "read", '{"p": 1.10}'), ToolCall("b.c:0", "ls", ""))),
        Message("system", (Text("Be brief"),)),
        Message("tool", (ToolResult("b.c:0", "", images=(PNG,)),)),
        Message("tool", (ToolResult("a", "no", is_error=True),)),
        Message("user", (Text("and"), Image("https://x/y.png"))),
    )["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"][1:] == [
        {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1.1}},
        {"type": "tool_use", "id": "b_c_0", "name": "ls", "input": {}},
    ]
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "b_c_0", "content": [{"type": "image", "source": PIXEL}]},
        {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True},
        {"type": "text", "text": "Be brief"},
        {"type": "text", "text": "and"},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ]


def test_only_signed_thinking_goes_back() -> None:
    parts = (Reasoning("a", {"signature": "s"}), Reasoning("", {"redacted": "r"}), Reasoning("b"), Text("Hi"))
    sent = body(Message("user", (Text("x"),)), Message("assistant", parts))["messages"][1]["content"]
    assert sent == [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "r"},
        {"type": "text", "text": "Hi"},
    ]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": "x', {"a": "x"}),
        ("", {}),
        ("no json at all", {"arguments": "no json at all"}),
        ("[1]", {"arguments": "[1]"}),
    ],
)
def test_broken_arguments_of_the_history_become_an_object(arguments: str, sent: dict[str, Any]) -> None:
    call = Message("assistant", (ToolCall("a", "read", arguments),))
    assert body(Message("user", (Text("x"),)), call)["messages"][1]["content"][0]["input"] == sent


@pytest.mark.parametrize(
    ("choice", "parallel", "want"),
    [
        ("auto", True, {"type": "auto"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", True, {"type": "any"}),
        ("none", False, {"type": "none"}),
        ("read", True, {"type": "tool", "name": "read"}),
    ],
)
def test_tools_and_their_choice(choice: str, parallel: bool, want: dict[str, Any]) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    sent = body(tools=(ToolSpec("read"),), tool_choice=choice, parallel_tool_calls=parallel, extra={"tools": [search]})
    assert sent["tools"] == [{"name": "read", "description": "", "input_schema": {"type": "object"}}, search]
    assert sent["tool_choice"] == want


def test_options_are_written_as_this_api_knows_them() -> None:
    options = {
        "max_tokens": 5, "temperature": 0.1, "top_k": 2, "seed": 1, "presence_penalty": 1, "stop": ["x", "\n"],
        "reasoning_effort": "minimal", "response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}},
    }  # fmt: skip
    assert body(options=options) == {
        "model": "claude", "messages": [], "stream": True,
        "max_tokens": 5, "temperature": 0.1, "top_k": 2, "stop_sequences": ["x"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"a": 1}}},
    }  # fmt: skip


def test_what_this_api_does_not_have_is_refused() -> None:
    with pytest.raises(RequestError, match="json_object") as caught:
        body(options={"response_format": {"type": "json_object"}})
    assert caught.value.param == "response_format"


def test_a_clients_own_fields_pass_except_where_they_need_a_header() -> None:
    extra = {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "max"},
        "metadata": {},
        "context_management": {},
    }
    sent = body(extra=extra, options={"reasoning_effort": "low"})
    assert sent["thinking"] == {"type": "adaptive"}
    assert sent["output_config"] == {"effort": "max"}
    assert "context_management" not in sent


@pytest.mark.parametrize(
    ("kind", "choice", "opaque", "kept"),
    [
        ("enabled", "auto", {"signature": "s"}, True),
        ("enabled", "auto", None, False),
        ("adaptive", "auto", None, True),
        ("enabled", "required", {"signature": "s"}, False),
        ("adaptive", "read", {"signature": "s"}, False),
    ],
)
def test_thinking_is_asked_for_only_where_it_is_allowed(kind: str, choice: str, opaque: Any, kept: bool) -> None:
    sent = body(
        Message("user", (Text("x"),)),
        Message("assistant", (Reasoning("hm", opaque), ToolCall("a", "read", "{}"))),
        Message("tool", (ToolResult("a", "ok"),)),
        extra={"thinking": {"type": kind}},
        tools=(ToolSpec("read"),),
        tool_choice=choice,
    )
    assert ("thinking" in sent) is kept


def test_what_a_client_sent_is_what_a_server_gets() -> None:
    sent = {
        "model": "claude",
        "max_tokens": 7,
        "stream": True,
        "system": "A",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image", "source": PIXEL}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "go on"},
            ]},
        ],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": {"user_id": "u"},
    }  # fmt: skip
    ask = AnthropicServerCodec().decode_request(json.dumps(sent).encode())
    assert json.loads(CALLED.encode_request(ask.request, ask.extra)) == sent


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(400, "refused", False), (401, "auth", False), (429, "rate_limit", True), (500, "unavailable", True),
     (529, "overloaded", True)],
)  # fmt: skip
def test_refusals(status: int, kind: str, retryable: bool) -> None:
    body = b'{"type":"error","error":{"type":"x","message":"so it is"},"request_id":"r"}'
    error = CALLED.parse_error(status, body)
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert "so it is" in str(error)
