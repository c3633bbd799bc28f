"""Ollama's requests, read from clients and written for servers."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire.base import ClientRequest
from callwright.wire.ollama import OLLAMA_CHAT_CODEC, OLLAMA_GENERATE_CODEC, OllamaClientCodec

PNG = Image("data:image/png;base64,iVBORw0", "image/png")


def decode(**body: Any) -> ClientRequest:
    return OLLAMA_CHAT_CODEC.decode_request(json.dumps({"model": "m", "messages": [], **body}).encode())


def messages(*entries: dict[str, Any]) -> tuple[Message, ...]:
    return decode(messages=list(entries)).request.messages


def called(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def call(name: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    entry = {"function": {"name": name, "arguments": arguments}}
    return {"id": call_id, **entry} if call_id else entry


def answered(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **fields}


def results(*entries: dict[str, Any]) -> list[tuple[str, str, str]]:
    parts = [part for message in messages(*entries) for part in message.parts]
    return [(part.call_id, part.name, part.content) for part in parts if isinstance(part, ToolResult)]


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_is_what_clients_get_unless_they_say_no() -> None:
    assert [decode(**body).stream for body in ({}, {"stream": None}, {"stream": True}, {"stream": False})] == [
        True,
        True,
        True,
        False,
    ]


def test_what_was_said_is_kept_in_order() -> None:
    assistant = {"role": "assistant", "content": "I look.", "thinking": "hm", "tool_calls": [call("read", "c1", a=1)]}
    assert messages(
        {"role": "system", "content": "A"},
        {"role": "user", "content": "Hi", "images": ["iVBORw0"]},
        assistant,
        answered("ok", tool_call_id="c1"),
    ) == (
        Message("system", (Text("A"),)),
        Message("user", (Text("Hi"), PNG)),
        Message("assistant", (Reasoning("hm"), Text("I look."), ToolCall("c1", "read", '{"a":1}'))),
        Message("tool", (ToolResult("c1", "ok", "read"),)),
    )


@pytest.mark.parametrize(
    ("data", "kind"),
    [("/9j/4A", "jpeg"), ("iVBORw", "png"), ("R0lGODlh", "gif"), ("UklGRg", "webp"), ("AAAA", "png"), ("", "png")],
)
def test_pictures_are_known_by_their_first_bytes(data: str, kind: str) -> None:
    parts = messages({"role": "user", "images": [data]})[0].parts
    assert parts == (Image(f"data:image/{kind};base64,{data}", f"image/{kind}"),)


def test_a_result_without_an_id_answers_the_oldest_open_call_of_its_tool() -> None:
    calls = called(call("a"), call("b"), call("a"))
    assert results(calls, answered("1", tool_name="b"), answered("2", tool_name="a"), answered("3", tool_name="a")) == [
        ("call_2", "b", "1"),
        ("call_1", "a", "2"),
        ("call_3", "a", "3"),
    ]
    assert results(calls, answered("1"), answered("2"), answered("3")) == [
        ("call_1", "a", "1"),
        ("call_2", "b", "2"),
        ("call_3", "a", "3"),
    ]


def test_ids_of_a_longer_history_begin_with_those_of_the_shorter() -> None:
    first = [called(call("a")), answered("1", tool_name="a")]
    longer = [*first, called(call("a")), answered("2", tool_name="a")]
    assert results(*longer) == [*results(*first), ("call_2", "a", "2")]


def test_ids_that_clients_give_are_not_given_again() -> None:
    calls = called(call("a", "call_2"), call("b"), call("c"))
    ids = [part.id for part in messages(calls)[0].parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("result", "param"),
    [
        (answered("x", tool_call_id="c9"), "messages[1].tool_call_id"),
        (answered("x", tool_name="other"), "messages[1].tool_name"),
    ],
)
def test_a_result_without_any_call_is_refused_and_one_beside_calls_is_for_the_history_to_mend(
    result: dict[str, Any], param: str
) -> None:
    with pytest.raises(RequestError) as caught:
        messages({"role": "user", "content": "go"}, result)
    assert caught.value.param == param
    assert len(messages(called(call("a", "c1")), result)) == 2


def test_broken_arguments_stay_as_they_are() -> None:
    broken = {"function": {"name": "a", "arguments": '{"x": '}}
    assert messages(called(broken))[0].parts == (ToolCall("call_1", "a", '{"x": '),)


# ── tools and options ────────────────────────────────────────────────────────────────────────────────


def test_options_have_everybodys_names_and_the_rest_stays() -> None:
    own = {"num_predict": 9, "temperature": 0.5, "seed": 1, "stop": ["x"], "num_ctx": 8192, "_otelTraceContext": {}}
    ask = decode(options=own, keep_alive="5m", think=True, format="json")
    assert ask.request.options == {
        "max_tokens": 9, "temperature": 0.5, "seed": 1, "stop": ["x"], "response_format": {"type": "json_object"},
    }  # fmt: skip
    assert ask.extra == {
        "options": {"num_ctx": 8192, "_otelTraceContext": {}}, "keep_alive": "5m", "think": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ({"options": {"num_predict": -1}}, {}),
        ({"options": {"stop": "x"}}, {"stop": ["x"]}),
        ({"options": {"stop": []}}, {}),
        ({"think": "high"}, {"reasoning_effort": "high"}),
        ({"think": False}, {}),
        ({"format": ""}, {}),
        ({"format": {"type": "object"}},
         {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}}),
    ],
)  # fmt: skip
def test_options(body: dict[str, Any], want: dict[str, Any]) -> None:
    assert decode(**body).request.options == want


def test_tools() -> None:
    function = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    other = {"type": "web_search"}
    ask = decode(tools=[{"type": "function", "function": function}, other, {"function": {"name": "ls"}}])
    assert ask.request.tools == (ToolSpec("read", "Reads.", {"type": "object"}), ToolSpec("ls"))
    assert ask.extra == {"tools": [other]}


def test_generate_is_a_conversation_of_one_prompt() -> None:
    body = {"model": "m", "system": "A", "prompt": "Hi", "images": ["iVBORw0"], "options": {"seed": 1}, "raw": False}
    ask = OLLAMA_GENERATE_CODEC.decode_request(json.dumps(body).encode())
    assert ask.request.messages == (Message("system", (Text("A"),)), Message("user", (Text("Hi"), PNG)))
    assert ask.request.options == {"seed": 1}
    assert ask.stream
    assert ask.extra == {"raw": False}


def test_filling_in_the_middle_is_refused() -> None:
    with pytest.raises(RequestError, match="suffix"):
        OLLAMA_GENERATE_CODEC.decode_request(b'{"model":"m","prompt":"def f","suffix":"return"}')


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": 3}, "model"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "images": [1]}]}, "messages[0].images[0]"),
        ({"messages": [called({})]}, "messages[0].tool_calls[0].function"),
        ({"messages": [called({"function": {"arguments": {}}})]}, "messages[0].tool_calls[0].function.name"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"options": {"num_predict": "9"}}, "options.num_predict"),
        ({"options": {"stop": [1]}}, "options.stop[0]"),
        ({"options": 1}, "options"),
        ({"format": "yaml"}, "format"),
        ({"stream": 1}, "stream"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(**body)
    assert caught.value.param == param


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "tool", "function", "json"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from([
            "type", "role", "content", "thinking", "images", "tool_calls", "function", "name", "arguments", "id",
            "tool_name", "tool_call_id", "parameters", "num_predict", "stop", "temperature",
        ]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
fields = st.sampled_from(
    ["messages", "tools", "stream", "options", "format", "think", "prompt", "system", "images", "suffix", "x"]
)


@given(
    st.dictionaries(fields, anything | st.lists(anything, max_size=3)),
    st.sampled_from([OLLAMA_CHAT_CODEC, OLLAMA_GENERATE_CODEC]),
)
def test_no_json_makes_decoding_raise_anything_else(body: dict[str, Any], served: Any) -> None:
    with suppress(RequestError):
        served.decode_request(json.dumps({"model": "m", **body}).encode())


@pytest.mark.parametrize("body", [b'{"model":"\xff"}', b'{"model":"m","messages":' + b"[" * 100_000, b"", b"[]"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        OLLAMA_CHAT_CODEC.decode_request(body)


# ── calling ──────────────────────────────────────────────────────────────────────────────────────────

CALLED = OllamaClientCodec()


def body(*said: Message, extra: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return json.loads(CALLED.encode_request(Request("qwen3", said, **fields), extra or {}))


def test_the_path_and_the_headers() -> None:
    assert CALLED.get_path(Request("m", ())) == "/api/chat"
    assert CALLED.build_headers("") == {}
    assert CALLED.build_headers("k") == {"authorization": "Bearer k"}


def test_messages_as_ollama_wants_them() -> None:
    assert body(
        Message("developer", (Text("A"),)),
        Message("user", (Text("one"), Text("two"), PNG)),
        Message("assistant", (Reasoning("hm"), Text("I look."), ToolCall("c1", "read", '{"a": "x'))),
        Message("tool", (ToolResult("c1", "ok", "read"), ToolResult("c2", "", "see", images=(PNG,)))),
    )["messages"] == [
        {"role": "system", "content": "A"},
        {"role": "user", "content": "one\ntwo", "images": ["iVBORw0"]},
        {"role": "assistant", "content": "I look.", "thinking": "hm",
         "tool_calls": [{"id": "c1", "function": {"name": "read", "arguments": {"a": "x"}}}]},
        {"role": "tool", "content": "ok", "tool_name": "read", "tool_call_id": "c1"},
        {"role": "tool", "content": "", "tool_name": "see", "tool_call_id": "c2", "images": ["iVBORw0"]},
    ]  # fmt: skip


def test_pictures_by_address_are_refused() -> None:
    with pytest.raises(RequestError, match="image"):
        body(Message("user", (Image("https://x/y.png"),)))


def test_options_are_ollamas_again() -> None:
    options = {"max_tokens": 9, "temperature": 0.5, "stop": ["x"], "num_ctx": 8192, "reasoning_effort": "minimal",
               "response_format": {"type": "json_object"}}  # fmt: skip
    extra = {"options": {"num_ctx": 4096, "mirostat": 1}, "keep_alive": "5m"}
    assert body(options=options, extra=extra) == {
        "model": "qwen3", "messages": [], "stream": True, "keep_alive": "5m", "think": "low", "format": "json",
        "options": {"num_predict": 9, "temperature": 0.5, "stop": ["x"], "num_ctx": 8192, "mirostat": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("effort", "think", "sent"),
    [("none", None, False), ("high", None, "high"), ("xhigh", None, "high"), ("high", True, True), ("", False, False)],
)
def test_thinking(effort: str, think: Any, sent: Any) -> None:
    assert body(options={"reasoning_effort": effort}, extra={} if think is None else {"think": think})["think"] == sent


def test_a_schema_is_the_format() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    assert body(options={"response_format": wanted})["format"] == {"type": "object"}
    assert "format" not in body(options={"response_format": {"type": "text"}})


def test_tools_are_offered_unless_none_may_be_called() -> None:
    tools = (ToolSpec("read", "Reads."),)
    assert body(tools=tools)["tools"] == [
        {"type": "function", "function": {"name": "read", "description": "Reads.",
                                          "parameters": {"type": "object", "properties": {}}}},
    ]  # fmt: skip
    assert "tools" not in body(tools=tools, tool_choice="none")


def test_what_a_client_sent_is_what_a_server_gets() -> None:
    sent = {
        "model": "qwen3",
        "messages": [
            {"role": "user", "content": "Hi", "images": ["iVBORw0"]},
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("read", "c1", a=1.5)]},
            {"role": "tool", "content": "ok", "tool_name": "read", "tool_call_id": "c1"},
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "", "parameters": {
            "type": "object", "properties": {"a": {"type": "number"}}}}}],
        "stream": True,
        "think": "high",
        "format": {"type": "object"},
        "keep_alive": -1,
        "options": {"num_ctx": 8192, "num_predict": 5, "stop": ["x"]},
    }  # fmt: skip
    ask = OLLAMA_CHAT_CODEC.decode_request(json.dumps(sent).encode())
    assert json.loads(CALLED.encode_request(ask.request, ask.extra)) == sent
