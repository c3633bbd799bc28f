"""The Responses stream: its laws, and the cases that clients depend on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import collect
from callwright.events import CallDelta, CallEnd, CallStart, Finish, Malformed, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Usage
from callwright.wire.base import ErrorResponse, StreamStyle
from callwright.wire.openai_responses import OpenAIResponsesClientCodec, OpenAIResponsesServerCodec
from tests.support.responses import ASK, CUSTOM, HEAD, check_response, check_stream, last, told, written
from tests.support.streams import calls, places, said, sliced, turns

styles = st.builds(
    StreamStyle,
    arguments=st.sampled_from(("generated", "whole", 1, 3, 50)),
    heartbeat=st.sampled_from(("comment", "event", "none")),
)
BROKEN = ErrorResponse(status=502, message="it \u2028broke", fault="backend", kind="server_error")


def read(data: bytes, cuts: list[int]) -> list[Any]:
    reader = OpenAIResponsesClientCodec().create_reader()
    return [event for piece in sliced(data, cuts) for event in reader.feed(piece)] + reader.close()


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────


@given(turns(), styles, places, places)
def test_a_turn_comes_back_from_our_own_reader_under_any_cuts(events, style, batches, cuts) -> None:
    data = written(events, style=style, batches=sliced(events, batches))
    check_stream(data)
    got, want = said(read(data, cuts)), said(events)
    assert (got.calls, got.outline) == (want.calls, want.outline)
    assert got.usage == (want.usage or Usage())
    assert got.finish == want.finish


@given(turns(), styles)
def test_the_whole_answer_says_what_the_stream_says(events, style) -> None:
    turn = collect(events)
    whole = OpenAIResponsesServerCodec().encode_response(ASK, HEAD, style, [turn])
    check_response(json.loads(whole))
    reader = OpenAIResponsesClientCodec().create_reader()
    again = collect(reader.feed(whole) + reader.close())
    streamed = collect(read(written(events, style=style), []))
    for each in (again, streamed):
        assert (each.text, each.finish_reason, each.usage) == (turn.text, turn.finish_reason, turn.usage or Usage())
    assert streamed.tool_calls == turn.tool_calls
    assert again.tool_calls == tuple(call for call in turn.tool_calls if call.complete)
    assert again.reasoning == streamed.reasoning == turn.reasoning


@given(st.booleans(), st.booleans(), st.integers(0, 3), st.booleans(), st.data())
def test_the_whole_answer_is_the_streams_last_response(thinks, speaks, count, whole, data) -> None:
    events: list[Any] = [ReasoningDelta("why")] * thinks + [TextDelta("so"), TextDelta(" it is")] * speaks
    for index in range(count):
        events += data.draw(calls(index, complete=whole or index < count - 1))
    events.append(Finish(("tool_calls" if count else "stop") if whole else "length"))
    if not whole and not count and events[:-1]:
        return  # the stream was cut inside its text, and says so of that item
    body = OpenAIResponsesServerCodec().encode_response(ASK, HEAD, StreamStyle(), [collect(events)])
    assert json.loads(body) == last(written(events))


@given(turns(), st.integers(0, 40), styles, st.sampled_from(("end", "fail", "end, then fail", "fail, then end")))
def test_every_stream_ends_once_whatever_came_before(events, kept, style, ending) -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(CUSTOM, HEAD, style)
    data = encoder.begin_stream() + encoder.encode_events(events[:kept])
    for way in ending.split(", then "):
        data += encoder.end_stream("done") if way == "end" else encoder.fail_stream(BROKEN)
    assert encoder.encode_events(events) + encoder.flush() + encoder.encode_heartbeat() + encoder.end_stream("x") == b""
    assert not encoder.has_pending
    final = check_stream(data)[-1]
    if ending.startswith("fail") or kept < len(events):
        assert final["type"] == "response.failed"
        assert final["response"]["error"]["message"]


@given(turns(), styles, st.data())
def test_flushes_and_signs_of_life_change_nothing_that_is_said(events, style, data) -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(ASK, HEAD, style)
    out = encoder.begin_stream()
    for event in events:
        out += encoder.encode_events([event])
        out += {"none": bytes, "flush": encoder.flush, "beat": encoder.encode_heartbeat}[
            data.draw(st.sampled_from(("none", "flush", "beat")))
        ]()
    out += encoder.end_stream()
    assert last(out) == last(written(events, style=style))
    assert [event["sequence_number"] for event in told(out)] == list(range(len(told(out))))


inputs = st.text(max_size=40) | st.sampled_from(('*** Begin Patch\n\\ "q"\t\u2028😀\r\n*** End Patch', "\\u0041", ""))


@given(inputs, st.booleans(), st.sampled_from((None, 1)), places, st.sampled_from(("apply_patch", "code__run")))
def test_free_text_comes_out_as_it_was_meant_under_any_cuts(text, ascii_only, indent, cuts, name) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only, indent=indent)
    fragments = [CallDelta(0, piece) for piece in sliced(arguments, cuts) if piece]
    events = [CallStart(0, "call_1", name), *fragments, CallEnd(0), Finish("tool_calls")]
    (item,) = check_stream(written(events, CUSTOM))[-1]["response"]["output"]
    assert (item["type"], item["input"], item["call_id"]) == ("custom_tool_call", text, "call_1")


@given(inputs, st.integers(0, 200))
def test_free_text_that_was_cut_is_a_prefix_of_it(text, size) -> None:
    arguments = json.dumps({"input": text})[:size]
    events = [CallStart(0, "call_1", "apply_patch"), CallEnd(0, complete=False), Finish("length")]
    events[1:1] = [CallDelta(0, char) for char in arguments]
    stream = check_stream(written(events, CUSTOM))
    assert stream[-1]["response"]["output"] == []
    assert text.startswith("".join(event.get("delta", "") for event in stream))


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)), places)
def test_arguments_of_another_shape_lose_nothing(value, cuts) -> None:
    arguments = json.dumps({"other": value})
    fragments = [CallDelta(0, piece) for piece in sliced(arguments, cuts) if piece]
    events = [CallStart(0, "call_1", "apply_patch"), *fragments, CallEnd(0), Finish("tool_calls")]
    assert last(written(events, CUSTOM))["output"][0]["input"] == arguments


# ── cases ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"reason": "r", "input": "late"}', "late"),
        ('{"input": 3}', '{"input": 3}'),
        ('{"input": "first", "more": 1}', "first"),
        ("{}", "{}"),
        ("not JSON", "not JSON"),
        ("[" * 5000, "[" * 5000),
        (r'{"input": "\ud83d\ude00 \ud83d alone \ude00"}', "😀 \ufffd alone \ufffd"),
        (r'{"a": 1, "input": "\ud83d"}', "\ufffd"),
    ],
)
def test_what_counts_as_free_text(arguments, expected) -> None:
    for size in (1, 2, 5, 100_000):
        fragments = [CallDelta(0, arguments[at : at + size]) for at in range(0, len(arguments), size)]
        events = [CallStart(0, "call_1", "apply_patch"), *fragments, CallEnd(0), Finish("tool_calls")]
        assert last(written(events, CUSTOM))["output"][0]["input"] == expected


def test_free_text_streams_while_it_is_written() -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(CUSTOM, HEAD, StreamStyle())
    encoder.begin_stream()
    encoder.encode_events([CallStart(0, "call_1", "apply_patch")])
    deltas = []
    for fragment in ('{"inp', 'ut": "*** B', "egin\\", "nP", 'atch"', "}"):
        deltas.append("".join(event["delta"] for event in told(encoder.encode_events([CallDelta(0, fragment)]))))
    assert deltas == ["", "*** B", "egin", "\nP", "atch", ""]


def test_a_namespaced_call_goes_back_under_the_names_that_the_client_gave() -> None:
    events = [CallStart(0, "call_1", "mcp__notes__add"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]
    for event in check_stream(written(events, CUSTOM)):
        if "item" in event:
            assert (event["item"]["name"], event["item"]["namespace"]) == ("add", "mcp__notes")
    plain = last(written([CallStart(0, "call_1", "ping"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]))
    assert "namespace" not in plain["output"][0]


def test_items_come_in_the_order_in_which_they_were_said() -> None:
    events = [
        ReasoningDelta("hm"),
        TextDelta("let me"),
        CallStart(0, "call_1", "ping"),
        CallDelta(0, "{}"),
        CallEnd(0),
        Malformed("<x", "no call"),
        TextDelta("and"),
        CallStart(1, "call_2", "ping"),
        CallDelta(1, "{}"),
        CallEnd(1),
        UsageSeen(Usage(7, 5, 3, 2)),
        Finish("tool_calls"),
    ]
    response = last(written(events))
    assert [item["id"] for item in response["output"]] == [
        "rs_abc_0",
        "msg_abc_0",
        "fc_abc_0",
        "msg_abc_1",
        "fc_abc_1",
    ]
    assert [item["call_id"] for item in response["output"] if item["type"] == "function_call"] == ["call_1", "call_2"]
    assert response["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 12,
    }
    assert (response["id"], response["created_at"], response["model"]) == ("resp_abc", 1_700_000_000, "some-model")


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("error", "failed", None),
    ],
)
def test_how_a_turn_ends_is_how_the_response_ends(reason, status, details) -> None:
    response = check_stream(written([TextDelta("half a sen"), Finish(reason)]))[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert response["output"][0]["status"] == ("completed" if status == "completed" else "incomplete")
    assert (response["error"] is not None) == (status == "failed")


def test_an_empty_turn_has_no_items_and_usage_all_the_same() -> None:
    # opencode 1.18.33 loops without end where usage is missing.
    response = check_stream(written([Finish("stop")]))[-1]["response"]
    assert (response["output"], response["usage"]["total_tokens"]) == ([], 0)


@pytest.mark.parametrize("name", ["ping", "apply_patch"])
@pytest.mark.parametrize("ending", ["length", "stop", "nothing", "failure"])
def test_a_call_that_was_cut_is_never_done(name: str, ending: str) -> None:
    # Codex 0.166 ran a cut `exec` whose status was "incomplete": it takes every item that is done for a whole one.
    encoder = OpenAIResponsesServerCodec().create_encoder(CUSTOM, HEAD, StreamStyle())
    data = encoder.begin_stream() + encoder.encode_events([CallStart(0, "call_1", name), CallDelta(0, '{"input": "rm')])
    if ending in ("length", "stop"):
        data += encoder.encode_events([CallEnd(0, complete=False), Finish(ending)])
    data += encoder.fail_stream(BROKEN) if ending == "failure" else encoder.end_stream()
    events = check_stream(data)
    assert events[-1]["type"] == ("response.incomplete" if ending in ("length", "stop") else "response.failed")
    assert events[-1]["response"]["output"] == []
    assert not [event for event in events if event["type"].endswith(".done")]


def test_text_after_a_cut_call_has_a_place_of_its_own() -> None:
    events = [CallStart(0, "c", "ping"), CallEnd(0, complete=False), TextDelta("so"), Finish("length")]
    assert [item["id"] for item in check_stream(written(events))[-1]["response"]["output"]] == ["msg_abc_0"]


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (BROKEN, "server_error"),
        (ErrorResponse(status=504, message="late", fault="backend", code="backend_timeout"), "server_error"),
        (
            ErrorResponse(status=429, message="slow down", fault="backend", code="backend_rate_limit"),
            "rate_limit_exceeded",
        ),
        (ErrorResponse(status=429, message="slow", fault="backend"), "rate_limit_exceeded"),
        (ErrorResponse(status=400, message="bad", fault="client"), "invalid_prompt"),
        (
            ErrorResponse(status=400, message="long", fault="client", code="context_length_exceeded"),
            "context_length_exceeded",
        ),
    ],
)
def test_a_failure_has_a_code_that_codex_knows(problem, code) -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(ASK, HEAD, StreamStyle())
    event = told(encoder.begin_stream() + encoder.fail_stream(problem))[-1]
    assert (event["type"], event["response"]["error"]["code"]) == ("response.failed", code)


def test_a_sign_of_life_is_what_the_style_says() -> None:
    beats = {}
    for kind in ("comment", "event", "none"):
        encoder = OpenAIResponsesServerCodec().create_encoder(ASK, HEAD, StreamStyle(heartbeat=kind))
        encoder.begin_stream()
        beats[kind] = encoder.encode_heartbeat()
    assert beats["comment"].startswith(b": ")
    assert beats["none"] == b""
    (event,) = told(beats["event"])
    assert (event["type"], event["sequence_number"]) == ("response.in_progress", 2)


def test_the_comment_stands_before_the_last_event() -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(ASK, HEAD, StreamStyle())
    encoder.begin_stream()
    encoder.encode_events([Finish("stop")])
    assert encoder.end_stream("tool_call_count=0").startswith(b": tool_call_count=0\n\nevent: response.completed\n")


@pytest.mark.parametrize(
    ("style", "deltas"),
    [("generated", ['{"a', '": 1', "}"]), ("whole", ['{"a": 1}']), (3, ['{"a', '": ', "1}"])],
)
def test_arguments_are_cut_as_the_style_says(style, deltas) -> None:
    events = [CallStart(0, "call_1", "ping"), *(CallDelta(0, text) for text in ('{"a', '": 1', "}")), CallEnd(0)]
    stream = told(written([*events, Finish("tool_calls")], style=StreamStyle(arguments=style)))
    assert [event["delta"] for event in stream if event["type"].endswith("arguments.delta")] == deltas


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("required", "required"),
        ("ping", {"type": "function", "name": "ping"}),
        ("code__run", {"type": "custom", "name": "run"}),
    ],
)
def test_the_response_repeats_what_was_asked(choice, told) -> None:
    options = {"temperature": 0.5, "max_tokens": 9, "reasoning_effort": "low"}
    request = msgspec.structs.replace(CUSTOM.request, tool_choice=choice, options=options)
    ask = msgspec.structs.replace(
        CUSTOM, request=request, previous="old", extra={"store": False, "metadata": {"a": "b"}}
    )
    response = last(written([Finish("stop")], ask))
    check_response(response)
    assert (response["tool_choice"], response["previous_response_id"]) == (told, "resp_old")
    assert (response["temperature"], response["max_output_tokens"]) == (0.5, 9)
    assert (response["store"], response["metadata"]) == (False, {"a": "b"})


def test_other_choices_than_the_first_are_not_told() -> None:
    encoder = OpenAIResponsesServerCodec().create_encoder(ASK, HEAD, StreamStyle())
    encoder.begin_stream()
    assert encoder.encode_events([TextDelta("x")], 1) == b""


def test_an_error_before_the_first_byte_is_openais() -> None:
    body = json.loads(OpenAIResponsesServerCodec().encode_error(BROKEN))
    assert body["error"]["type"] == "server_error"
    assert "broke" in body["error"]["message"]
