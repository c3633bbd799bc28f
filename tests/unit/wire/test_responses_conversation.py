"""One request after the other: `previous_response_id` and references to items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright import collect
from callwright.errors import RequestError
from callwright.events import CallDelta, CallEnd, CallStart, Finish, ReasoningDelta, TextDelta
from callwright.model import Message, Reasoning, Text, ToolCall, ToolResult
from callwright.wire.base import ClientRequest, ResponseHead, StreamStyle
from callwright.wire.openai_responses import (
    OpenAIResponsesServerCodec,
    build_stored_messages,
    find_referenced_ids,
    resolve_references,
)

EVENTS = [
    ReasoningDelta("why"),
    TextDelta("let me "),
    CallStart(0, "c1", "ping"),
    CallDelta(0, "{}"),
    CallEnd(0),
    TextDelta("see"),
    CallStart(1, "c2", "pong"),
    CallDelta(1, '{"a": 1}'),
    CallEnd(1),
    Finish("tool_calls"),
]
TURN = collect(EVENTS)
ANSWER = Message(
    "assistant",
    (Reasoning("why"), Text("let me see"), ToolCall("c1", "ping", "{}"), ToolCall("c2", "pong", '{"a": 1}')),
)
RESULTS = [
    {"type": "function_call_output", "call_id": "c1", "output": "one"},
    {"type": "function_call_output", "call_id": "c2", "output": "two"},
]


def decode(**body: Any) -> ClientRequest:
    return OpenAIResponsesServerCodec().decode_request(json.dumps({"model": "m"} | body).encode())


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def test_what_is_kept_is_the_conversation_with_the_answer_and_without_the_instructions() -> None:
    assert build_stored_messages(decode(input="hi", instructions="old"), TURN) == (user("hi"), ANSWER)


def test_a_call_that_was_cut_is_not_kept() -> None:
    turn = collect([TextDelta("x"), CallStart(0, "c1", "ping"), CallEnd(0, complete=False), Finish("length")])
    assert build_stored_messages(decode(input="hi"), turn)[-1] == Message("assistant", (Text("x"),))


def test_a_request_goes_on_where_the_previous_answer_ended() -> None:
    kept = {"abc": build_stored_messages(decode(input="hi", instructions="old"), TURN)}
    ask = decode(input=RESULTS, instructions="new", previous_response_id="resp_abc")
    assert find_referenced_ids(ask) == {"abc"}
    whole = resolve_references(ask, kept)
    assert whole.request.messages == (
        Message("system", (Text("new"),)),
        user("hi"),
        ANSWER,
        Message("tool", (ToolResult("c1", "one"),)),
        Message("tool", (ToolResult("c2", "two"),)),
    )
    longer = build_stored_messages(whole, collect([TextDelta("done"), Finish("stop")]))
    assert longer == (*whole.request.messages[1:], Message("assistant", (Text("done"),)))


def test_a_previous_answer_that_nobody_kept_is_refused_so_that_copilot_tries_again() -> None:
    with pytest.raises(RequestError) as caught:
        resolve_references(decode(input="hi", previous_response_id="resp_gone"), {})
    assert (caught.value.status, caught.value.code) == (400, "previous_response_not_found")
    assert "resp_gone" in str(caught.value)


def test_a_result_that_no_kept_call_explains_is_refused() -> None:
    ask = decode(
        input=[{"type": "function_call_output", "call_id": "c9", "output": "x"}], previous_response_id="resp_a"
    )
    with pytest.raises(RequestError, match="c9"):
        resolve_references(ask, {"a": (user("hi"),)})


def test_items_may_be_named_by_the_ids_that_we_gave_them() -> None:
    # The AI SDK (@ai-sdk/openai) sends references for what it knows an id of, unless `store` is false.
    first = decode(input="hi")
    response = json.loads(
        OpenAIResponsesServerCodec().encode_response(first, ResponseHead("a_b", 1, "m"), StreamStyle(), [TURN])
    )
    references = [{"type": "item_reference", "id": item["id"]} for item in response["output"]]
    ask = decode(input=[{"role": "user", "content": "hi"}, *references, *RESULTS])
    assert find_referenced_ids(ask) == {"a_b"}
    whole = resolve_references(ask, {"a_b": build_stored_messages(first, TURN)})
    assert whole.request.messages[:2] == (user("hi"), ANSWER)


def test_streamed_items_lead_back_too() -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(decode(input="hi"), ResponseHead("a", 1, "m"), StreamStyle())
    encoder.begin_stream()
    encoder.encode_events(EVENTS)
    encoder.end_stream()
    named = [item.id for item in encoder.response.items]  # type: ignore[attr-defined]
    ask = decode(input=[*({"type": "item_reference", "id": name} for name in named), *RESULTS])
    assert resolve_references(ask, {"a": (user("hi"), ANSWER)}).request.messages[0] == ANSWER


@pytest.mark.parametrize("name", ["msg_gone_0", "nonsense", "_", "msg_a_9", "msg_a_" + "9" * 5000, "msg_a_²"])
def test_references_to_what_is_not_there_are_dropped(name: str) -> None:
    ask = decode(input=[{"type": "item_reference", "id": name}, {"role": "user", "content": "hi"}])
    assert resolve_references(ask, {"a": (user("x"), ANSWER)}).request.messages == (user("hi"),)


def test_a_reference_may_stand_beside_what_is_sent_in_full() -> None:
    calls = [{"type": "function_call", "call_id": "c2", "name": "pong", "arguments": '{"a": 1}'}]
    ask = decode(input=[{"type": "item_reference", "id": "fc_a_0"}, *calls, *RESULTS])
    assert resolve_references(ask, {"a": (user("hi"), ANSWER)}).request.messages[0].parts == ANSWER.parts[2:]


def test_an_answer_of_nothing_leaves_no_message() -> None:
    assert build_stored_messages(decode(input="hi"), collect([Finish("stop")])) == (user("hi"),)


def test_a_request_that_names_nothing_stays_as_it_is() -> None:
    ask = decode(input="hi", instructions="x")
    assert find_referenced_ids(ask) == frozenset()
    assert resolve_references(ask, {}) == ask
