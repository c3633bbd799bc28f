"""Chat completions requests as clients send them, and what becomes of those that make no sense."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from callwright.wire import SERVER_CODECS
from callwright.wire.base import ClientRequest

USER = {"role": "user", "content": "hi"}
FUNCTION = {"name": "ping", "description": "Pong.", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
SPEC = ToolSpec("ping", "Pong.", {"type": "object", "properties": {}})
CALL = {"id": "call_1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def decode(**body: Any) -> ClientRequest:
    return SERVER_CODECS["openai_chat"].decode_request(json.dumps({"model": "m", "messages": [USER], **body}).encode())


def messages(*history: Any) -> tuple[Message, ...]:
    return decode(messages=[USER, *history]).request.messages[1:]


def test_a_plain_request() -> None:
    ask = decode()
    assert ask.request.model == "m"
    assert ask.request.messages == (Message("user", (Text("hi"),)),)
    assert (ask.stream, ask.choices, ask.include_usage, ask.functions) == (False, 1, False, False)
    assert (ask.request.tools, ask.request.tool_choice, ask.request.parallel_tool_calls) == ((), "auto", True)
    assert (ask.request.options, ask.extra) == ({}, {})


def test_what_copilot_chat_sends() -> None:
    ask = decode(temperature=0.1, top_p=1, stream=True, tools=[TOOL], n=1, stream_options={"include_usage": True})
    assert ask.stream
    assert ask.include_usage
    assert ask.request.tools == (SPEC,)
    assert ask.request.options == {"temperature": 0.1, "top_p": 1}


def test_null_counts_as_left_out() -> None:
    keys = "tools tool_choice parallel_tool_calls functions stream stream_options n stop temperature max_tokens seed"
    assert decode(**dict.fromkeys(keys.split())) == decode()


def test_options_keep_their_names_and_the_rest_is_extra() -> None:
    ask = decode(seed=7, stop="END", max_completion_tokens=50, reasoning_effort="low", user="me", logit_bias={"1": 2})
    assert ask.request.options == {"seed": 7, "stop": ["END"], "max_tokens": 50, "reasoning_effort": "low"}
    assert ask.extra == {"user": "me", "logit_bias": {"1": 2}, "max_completion_tokens": 50}
    assert decode(stop=["a", "b"], max_tokens=3).request.options == {"stop": ["a", "b"], "max_tokens": 3}


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────

TOOLS = {
    "as specified": (TOOL, SPEC),
    "strict is null": ({"type": "function", "function": {**FUNCTION, "strict": None}}, SPEC),
    "without a type": ({"function": FUNCTION}, SPEC),
    "flat": ({"type": "function", **FUNCTION}, SPEC),
    "only a name": ({"type": "function", "function": {"name": "ping"}}, ToolSpec("ping")),
    "null parameters": ({"type": "function", "function": {"name": "ping", "parameters": None}}, ToolSpec("ping")),
}


@pytest.mark.parametrize(("tool", "spec"), TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_is_read_in_any_form(tool: Any, spec: ToolSpec) -> None:
    assert decode(tools=[tool]).request.tools == (spec,)


def test_an_empty_list_of_tools_is_none() -> None:
    assert decode(tools=[]) == decode()


def test_tools_of_other_kinds_are_kept_aside() -> None:
    search = {"type": "web_search", "depth": 2}
    ask = decode(tools=[search, TOOL])
    assert ask.request.tools == (SPEC,)
    assert ask.extra == {"tools": [search]}


def test_legacy_functions_are_tools() -> None:
    ask = decode(functions=[FUNCTION], function_call={"name": "ping"})
    assert ask.functions
    assert ask.request.tools == (SPEC,)
    assert ask.request.tool_choice == "ping"
    assert not decode(functions=[FUNCTION], tools=[TOOL]).functions


CHOICES = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
    "ping": "ping",
}


@pytest.mark.parametrize(("word", "choice"), CHOICES.items())
def test_a_tool_is_chosen_by_a_word(word: str, choice: str) -> None:
    assert decode(tools=[TOOL], tool_choice=word).request.tool_choice == choice


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        ({"type": "function", "function": {"name": "ping"}}, "ping"),
        ({"type": "function", "name": "ping"}, "ping"),
        ({"type": "auto"}, "auto"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}}, "required"),
    ],
)
def test_a_tool_is_chosen_by_an_object(value: Any, choice: str) -> None:
    assert decode(tools=[TOOL], tool_choice=value).request.tool_choice == choice


def test_without_tools_there_is_nothing_to_choose() -> None:
    assert decode(tool_choice="required").request.tool_choice == "auto"


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", ["system", "developer", "user"])
@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("text", (Text("text"),)),
        ("", ()),
        (None, ()),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": ""}, "b"], (Text("a"), Text(""), Text("b"))),
        (
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "media_type": "image/png"}}],
            (Image("data:image/png;base64,AA", "image/png"),),
        ),
        ([{"type": "image_url", "image_url": "http://x/y.png"}], (Image("http://x/y.png"),)),
    ],
)
def test_content_is_text_or_parts(role: Any, content: Any, parts: Any) -> None:
    assert messages({"role": role, "content": content}) == (Message(role, parts),)


@pytest.mark.parametrize("content", [{"content": None}, {"content": ""}, {}, {"content": None, "refusal": None}])
def test_an_answer_with_calls_may_have_no_content(content: dict[str, Any]) -> None:
    (answer,) = messages({"role": "assistant", "tool_calls": [CALL], **content})
    assert answer.parts == (ToolCall("call_1", "ping", "{}"),)


def test_a_refusal_in_history_is_text() -> None:
    (answer,) = messages({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]})
    assert answer.parts == (Text("No."),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking", "cot_summary"])
def test_reasoning_in_history_comes_first(field: str) -> None:
    (answer,) = messages({"role": "assistant", "content": "x", field: "thought", "tool_calls": [CALL]})
    assert answer.parts == (Reasoning("thought"), Text("x"), ToolCall("call_1", "ping", "{}"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"a": 1', '{"a": 1'), ("", ""), (None, "{}"), ({"a": [1]}, '{"a":[1]}'), ("no json", "no json")],
)
def test_arguments_in_history_stay_as_they_are(arguments: Any, text: str) -> None:
    call = {"id": "call_1", "function": {"name": "ping", "arguments": arguments}}
    assert messages({"role": "assistant", "tool_calls": [call]})[0].parts == (ToolCall("call_1", "ping", text),)


RESULTS = {
    "as specified": {"role": "tool", "tool_call_id": "call_1", "content": "pong"},
    "toolCallId": {"role": "tool", "toolCallId": "call_1", "content": "pong"},
    "toolId": {"role": "tool", "toolId": "call_1", "name": "ping", "content": "pong"},
    "parts": {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "pong"}]},
    "no id": {"role": "tool", "content": "pong"},
    "function": {"role": "function", "name": "ping", "content": "pong"},
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_a_result_finds_its_call(result: Any) -> None:
    assert messages(CALLING, result)[1] == Message("tool", (ToolResult("call_1", "pong", "ping"),))


def test_legacy_calls_and_their_results_are_matched_by_name() -> None:
    history = messages(
        {"role": "assistant", "content": None, "function_call": {"name": "ping", "arguments": "{}"}},
        {"role": "function", "name": "ping", "content": "1"},
        {"role": "assistant", "content": None, "function_call": {"name": "ping", "arguments": "{}"}},
        {"role": "function", "name": "ping", "content": "2"},
    )
    calls, results = [message.parts[0] for message in history[::2]], [message.parts[0] for message in history[1::2]]
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert len({call.id for call in calls}) == 2


def test_results_are_matched_by_id_and_not_by_order() -> None:
    calls = [{"id": key, "function": {"name": f"tool_{key}", "arguments": "{}"}} for key in "ab"]
    history = messages(
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "tool", "tool_call_id": "a", "content": "again"},
    )
    assert [message.parts[0] for message in history[1:]] == [
        ToolResult("b", "B", "tool_b"),
        ToolResult("a", "A", "tool_a"),
        ToolResult("a", "again", "tool_a"),
    ]


@pytest.mark.parametrize(
    ("content", "text"), [({"ok": True}, '{"ok":true}'), (5, "5"), ([1, {"a": 2}], '[1,{"a":2}]'), (None, "")]
)
def test_a_result_that_is_no_text_is_shown_as_json(content: Any, text: str) -> None:
    result = messages(CALLING, {"role": "tool", "tool_call_id": "call_1", "content": content})[1].parts[0]
    assert result == ToolResult("call_1", text, "ping")


def test_a_result_may_hold_a_picture() -> None:
    content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    result = messages(CALLING, {"role": "tool", "tool_call_id": "call_1", "content": content})[1].parts[0]
    assert result == ToolResult("call_1", "see", "ping", images=(Image("data:x"),))


# ── what cannot be served ─────────────────────────────────────────────────────────────────────────

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "model of the wrong kind": ({"model": 5}, "model"),
    "no messages": ({"messages": []}, "messages"),
    "messages of the wrong kind": ({"messages": "hi"}, "messages"),
    "a message of the wrong kind": ({"messages": [USER, 7]}, "messages[1]"),
    "no role": ({"messages": [{}]}, "messages[0].role"),
    "an unknown role": ({"messages": [{"role": "robot"}]}, "messages[0].role"),
    "content of the wrong kind": ({"messages": [USER, USER, {"role": "user", "content": 5}]}, "messages[2].content"),
    "a part of the wrong kind": ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content[0]"),
    "a part without text": ({"messages": [{"role": "user", "content": [{}]}]}, "messages[0].content[0].text"),
    "a file": ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "messages[0].content[0]"),
    "a call without a name": (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}]},
        "messages[0].tool_calls[0].function.name",
    ),
    "a result without a call": (
        {"messages": [{"role": "tool", "tool_call_id": "call_9", "content": ""}]},
        "messages[0].tool_call_id",
    ),
    "tools of the wrong kind": ({"tools": {}}, "tools"),
    "a tool without a name": ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    "parameters of the wrong kind": (
        {"tools": [TOOL, {"function": {"name": "x", "parameters": []}}]},
        "tools[1].function.parameters",
    ),
    "no function among the tools": ({"tools": [{"type": "web_search"}]}, "tools"),
    "a tool that is not there": ({"tools": [TOOL], "tool_choice": {"function": {"name": "x"}}}, "tool_choice"),
    "temperature as text": ({"temperature": "hot"}, "temperature"),
    "temperature as a boolean": ({"temperature": True}, "temperature"),
    "n of zero": ({"n": 0}, "n"),
    "n as a fraction": ({"n": 1.5}, "n"),
    "stop of the wrong kind": ({"stop": [1]}, "stop"),
    "stream of the wrong kind": ({"stream": "yes"}, "stream"),
}


@pytest.mark.parametrize(("body", "param"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_field_is_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(**body)
    assert caught.value.param == param
    assert caught.value.status == 400
    assert param in str(caught.value)


def test_a_result_without_a_call_names_its_id() -> None:
    with pytest.raises(RequestError, match="no message before this result made call 'call_9'"):
        messages({"role": "tool", "tool_call_id": "call_9", "content": "x"})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a":NaN}', b"[" * 100_000, b'{"a":' * 100_000, b'{"a":1e999}'],
)
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        SERVER_CODECS["openai_chat"].decode_request(body)


@pytest.mark.parametrize("depth", [10, 500, 900, 950, 980, 990, 1000, 5000])
def test_nesting_is_served_or_refused(depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    body = '{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":'
    with contextlib.suppress(RequestError):
        ask = SERVER_CODECS["openai_chat"].decode_request(f"{body}{nested}}}}}]}}]}}".encode())
        assert len(ask.request.messages[0].parts[0].arguments) == len(nested)
    assert depth > 10 or ask


def test_half_a_surrogate_pair_is_replaced() -> None:
    body = rb'{"model":"m","messages":[{"role":"user","content":"cut \ud83d"}]}'
    assert SERVER_CODECS["openai_chat"].decode_request(body).request.messages[0].parts == (Text("cut ?"),)


KEYS = (
    "model messages role content type text image_url url tools tool_calls function functions function_call name "
    "arguments parameters tool_choice tool_call_id id stream stream_options include_usage n stop allowed_tools "
    "temperature reasoning_content"
)
WORDS = "user assistant tool system function text image_url call_1 ping auto m"
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
keys = st.sampled_from(KEYS.split())
values: st.SearchStrategy[Any] = st.recursive(
    LEAVES | st.sampled_from(WORDS.split()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(keys, values), st.lists(values), st.lists(values))
def test_any_json_is_served_or_refused_by_a_request_error(body: Any, history: list[Any], tools: list[Any]) -> None:
    for value in (body, body | {"model": "m", "messages": [USER, CALLING, *history], "tools": tools}):
        with contextlib.suppress(RequestError):
            SERVER_CODECS["openai_chat"].decode_request(json.dumps(value).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_by_a_request_error(body: bytes) -> None:
    with contextlib.suppress(RequestError):
        SERVER_CODECS["openai_chat"].decode_request(body)
