"""Structured upstreams: every habit of theirs gives the right calls."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import ToolCallAggregator, get_dialect, text_pattern
from callwright.aggregator import MAX_CALLS, ToolCallDelta, ToolCallRecord
from callwright.errors import BackendError
from callwright.ids import make_sequential_ids
from tests.support.harness import TOOLS


def entry(index: int | None = None, call_id: str = "", **function: Any) -> dict[str, Any]:
    return {
        **({} if index is None else {"index": index}),
        **({"id": call_id, "type": "function"} if call_id else {}),
        "function": function,
    }


def delta(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(entries)}}]}


def stream(index: int, name: str, *fragments: str) -> list[dict[str, Any]]:
    first = delta(entry(index, name=name, arguments=fragments[0]))
    return [first, *(delta(entry(index, arguments=fragment)) for fragment in fragments[1:])]


def read(*chunks: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The calls as id, name, arguments; the deltas join to the same, and inputs are left alone."""
    calls = ToolCallAggregator(make_sequential_ids())
    before = copy.deepcopy(chunks)
    out: list[ToolCallDelta] = []
    for chunk in chunks:
        out += calls.ingest_delta(chunk)
    out += calls.finish_turn()
    assert chunks == before
    snapshot = calls.snapshot()
    for index, call in enumerate(snapshot):
        mine = [one for one in out if one.index == index]
        assert "".join(one.arguments for one in mine) == call.arguments
        assert [one.started for one in mine] == [True] + [False] * (len(mine) - 1)
        assert {(one.id, one.name) for one in mine} == {(call.id, call.name)}
    return [(call.id, call.name, call.arguments) for call in snapshot]


# ── shapes ────────────────────────────────────────────────────────────────────────────────────────


def test_openai_increments() -> None:
    chunks = [delta(entry(0, "a", name="f", arguments="")), *stream(0, "", '{"x"', ": 1", "}")]
    assert read(*chunks) == [("a", "f", '{"x": 1}')]


def test_parallel_calls_may_interleave() -> None:
    assert read(
        delta(entry(0, "a", name="f", arguments="")),
        delta(entry(1, "b", name="g", arguments="")),
        delta(entry(0, arguments="{"), entry(1, arguments="{")),
        delta(entry(1, arguments="}")),
        delta(entry(0, arguments="}")),
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_legacy_function_call() -> None:
    chunks = [
        {"choices": [{"delta": {"function_call": part}}]}
        for part in ({"name": "f", "arguments": "{"}, {"arguments": "}"})
    ]
    assert read(*chunks) == [("call_1", "f", "{}")]


def test_ollama_chunks() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "f", "arguments": {}}}]
    assert read({"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": calls}}) == [
        ("call_1", "f", '{"a": 1}'),
        ("call_2", "f", "{}"),
    ]
    assert read({"message": {"tool_calls": [{"function": {"index": 3, "name": "f", "arguments": {"ü": 1}}}]}}) == [
        ("call_1", "f", '{"ü": 1}')
    ]


def responses(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def test_responses_events() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_x", "name": "f", "arguments": ""}
    chunks = [
        responses("created", response={}),
        responses("output_item.added", item={"type": "message", "id": "m"}),
        responses("output_item.added", item=item),
        responses("function_call_arguments.delta", item_id="fc_1", delta='{"a"'),
        responses("function_call_arguments.delta", item_id="fc_1", delta=": 1}"),
        responses("function_call_arguments.delta", item_id="nobody", delta="!"),
        responses("function_call_arguments.done", item_id="fc_1", arguments='{"a": 1}'),
        responses("output_item.done", item={**item, "arguments": '{"a": 1}'}),
        responses("something.else", item_id="fc_1"),
    ]
    assert read(*chunks) == [("call_x", "f", '{"a": 1}')]
    assert read(chunks[-2]) == [("call_x", "f", '{"a": 1}')]


def test_responses_custom_tools() -> None:
    item = {"type": "custom_tool_call", "id": "ct_1", "name": "apply_patch", "input": ""}
    assert read(
        responses("output_item.added", item=item),
        responses("custom_tool_call_input.delta", item_id="ct_1", delta="*** Begin"),
        responses("custom_tool_call_input.done", item_id="ct_1", input="*** Begin Patch"),
    ) == [("ct_1", "apply_patch", "*** Begin Patch")]


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": []},
        {"choices": [None, {"delta": None}, {"index": 0}]},
        {"choices": [{"delta": {"content": "x", "tool_calls": None}}]},
        {"tool_calls": [None, 5], "function_call": "x"},
        {"message": "text"},
        {"choices": [{"delta": {"beginToolCalls": {"toolCallIds": ["call1"]}}}]},
    ],
)
def test_chunks_without_calls_give_none(chunk: dict[str, Any]) -> None:
    assert read(chunk) == []


# ── habits ────────────────────────────────────────────────────────────────────────────────────────


def test_missing_index_with_ids() -> None:
    assert read(
        delta(entry(None, "a", name="f", arguments="{")),
        delta(entry(None, "a", arguments="}")),
        delta(entry(None, "b", name="f", arguments="{}")),
    ) == [("a", "f", "{}"), ("b", "f", "{}")]


def test_missing_index_and_id() -> None:
    assert read(
        delta(entry(name="f", arguments="{")),
        delta(entry(arguments="}")),
        delta(entry(name="g", arguments='{"a"')),
        delta(entry(name="g", arguments=": 1}")),
        delta(entry(name="g", arguments="{}")),
    ) == [("call_1", "f", "{}"), ("call_2", "g", '{"a": 1}'), ("call_3", "g", "{}")]


def test_the_same_index_for_every_call() -> None:
    assert read(delta(entry(0, "a", name="f", arguments="{}")), delta(entry(0, "b", name="f", arguments="{}"))) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]
    assert read(delta(entry(0, name="f", arguments="{}")), delta(entry(0, name="g", arguments="{}"))) == [
        ("call_1", "f", "{}"),
        ("call_2", "g", "{}"),
    ]


def test_a_name_sent_with_every_delta() -> None:
    assert read(*(delta(entry(0, "a", name="f", arguments=part)) for part in ('{"a', '": ', "1}"))) == [
        ("a", "f", '{"a": 1}')
    ]


def test_an_id_that_comes_late_belongs_to_the_same_call() -> None:
    assert read(delta(entry(0, name="f", arguments="{")), delta(entry(0, "late", arguments="}"))) == [
        ("call_1", "f", "{}")
    ]


def test_several_calls_in_one_delta_without_index() -> None:
    assert read(delta(entry(name="f", arguments="{}"), entry(name="f", arguments="{}"))) == [
        ("call_1", "f", "{}"),
        ("call_2", "f", "{}"),
    ]


def test_whole_objects_as_arguments() -> None:
    assert read(delta(entry(0, name="f", arguments={"a": [1]}))) == [("call_1", "f", '{"a": [1]}')]


def test_copilots_spelling_of_the_id() -> None:
    assert read({"tool_calls": [{"toolCallId": "x", "function": {"name": "f", "arguments": "{}"}}]}) == [
        ("x", "f", "{}")
    ]


# ── increments or the whole again: decided per stream ─────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fragments", "arguments"),
    [
        (['{"a":{"b":{"c":1', "}", "}", "}"], '{"a":{"b":{"c":1}}}'),
        (["{", '"a":"', "{", '"}'], '{"a":"{"}'),
        (['{"t": "', "ha", "ha", "ha", '"}'], '{"t": "hahaha"}'),
        (['{"a"', '{"a": 1', '{"a": 1}'], '{"a": 1}'),
        (['{"query": "SSE', '{"query": "SSE parser"}'], '{"query": "SSE parser"}'),
        (['{"a": ', '{"a": 1}'], '{"a": 1}'),
        (['{"a": ', '{"a": 1}', "}"], '{"a": {"a": 1}}'),
        (['{"a": 1}', '{"a": 1}'], '{"a": 1}'),
        (["{}", "{}", "{}"], "{}"),
        (["", "{}", ""], "{}"),
        (["1", "12"], "12"),
        (['{"a": [', '{"a": [', "1]}", "]}"], '{"a": [{"a": [1]}]}'),
    ],
)
def test_what_kind_of_stream_it_is(fragments: list[str], arguments: str) -> None:
    assert read(*stream(0, "f", *fragments)) == [("call_1", "f", arguments)]


def test_the_decision_holds_for_later_calls() -> None:
    first = stream(0, "f", '{"a": 1', "}")
    assert read(*first, *stream(1, "g", '{"a": ', '{"a": 1}', "}"))[1] == ("call_2", "g", '{"a": {"a": 1}}')
    whole = stream(0, "f", "{", '{"a": 1}')
    assert read(*whole, *stream(1, "g", '{"a": ', '{"a": 1}'))[1] == ("call_2", "g", '{"a": 1}')


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=4), st.lists(st.integers(1, 60), max_size=6))
def test_increments_and_wholes_give_the_same(value: Any, places: list[int]) -> None:
    text = json.dumps(value)
    ends = [*sorted({min(place, len(text)) for place in places}), len(text)]
    increments = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    wholes = [text[:end] for end in ends]
    assert read(*stream(0, "f", *increments)) == [("call_1", "f", text)]
    assert read(*stream(0, "f", *wholes)) == [("call_1", "f", text)]


# ── messages, choices, bounds ─────────────────────────────────────────────────────────────────────


def test_a_message_adds_what_is_missing_and_completes_what_was_begun() -> None:
    calls = ToolCallAggregator(make_sequential_ids())
    calls.ingest_delta(delta(entry(0, "a", name="f", arguments='{"x"')))
    message = {
        "tool_calls": [entry(None, "a", name="f", arguments='{"x": 1}'), entry(None, "b", name="g", arguments={})]
    }
    out = calls.ingest_message(message)
    assert out == [ToolCallDelta(0, 0, "a", "f", ": 1}"), ToolCallDelta(0, 1, "b", "g", "{}", True)]
    assert calls.ingest_message(message) == []
    assert calls.snapshot() == (ToolCallRecord("a", "f", '{"x": 1}'), ToolCallRecord("b", "g", "{}"))


def test_a_message_without_ids_is_matched_by_order() -> None:
    calls = ToolCallAggregator(make_sequential_ids())
    calls.ingest_delta(delta(entry(0, name="f", arguments="{")))
    assert [one.arguments for one in calls.ingest_message({"tool_calls": [entry(name="f", arguments="{}")]})] == ["}"]


def test_a_message_that_contradicts_what_was_said_does_not_win() -> None:
    calls = ToolCallAggregator(make_sequential_ids())
    calls.ingest_delta(delta(entry(0, "a", name="f", arguments='{"x": 1}')))
    assert calls.ingest_message({"tool_calls": [entry(None, "a", name="f", arguments='{"y": 2}')]}) == []
    assert calls.snapshot()[0].arguments == '{"x": 1}'
    assert calls.ingest_message({"tool_calls": [entry(None, "c", name="f", arguments=None)]})[0].arguments == "{}"


def test_text_patterns_find_calls_that_were_left_as_text() -> None:
    text = 'Hm. <tool_call>{"name": "ping", "arguments": {}}</tool_call> <tool_call>{"name": "ping", "argu'
    calls = ToolCallAggregator(make_sequential_ids(), patterns=[lambda text: []])
    calls.register_text_pattern(text_pattern(get_dialect("hermes"), TOOLS))
    calls.register_text_pattern(lambda text: [("never", "asked")])
    assert calls.ingest_message({"content": text}) == []
    assert calls.ingest_message({"content": text}, emit_if_missing=True) == [
        ToolCallDelta(0, 0, "call_1", "ping", "{}", True)
    ]
    assert calls.ingest_message({"content": text}, emit_if_missing=True) == []
    assert ToolCallAggregator().ingest_message({"content": [1]}, emit_if_missing=True) == []
    blind = ToolCallAggregator(patterns=[lambda text: []])
    assert blind.ingest_message({"content": text}, emit_if_missing=True) == []


def test_choices_are_kept_apart() -> None:
    calls = ToolCallAggregator(make_sequential_ids())
    calls.ingest_delta({"choices": [{"index": 1, "delta": {"tool_calls": [entry(0, "b", name="g", arguments="{}")]}}]})
    calls.ingest_delta({"tool_calls": [entry(0, "a", name="f", arguments="{}")]}, 0)
    assert [call.name for call in calls.snapshot(0)] == ["f"]
    assert [call.name for call in calls.snapshot(1)] == ["g"]
    assert calls.has_calls() is True
    assert calls.has_calls(1) is True
    assert not calls.has_calls(2)
    calls.reset_turn(1)
    assert not calls.has_calls(1)
    assert calls.has_calls(0) is True
    calls.reset_turn()
    assert not calls.has_calls()
    calls.reset_turn(7)


def test_ids_are_fresh_in_every_turn() -> None:
    calls = ToolCallAggregator()
    seen = set()
    for _ in range(3):
        calls.ingest_delta(delta(entry(0, name="f", arguments="{}")))
        seen |= {call.id for call in calls.snapshot()}
        calls.reset_turn()
    assert len(seen) == 3


def test_bounds_are_errors() -> None:
    calls = ToolCallAggregator(limit=10)
    with pytest.raises(BackendError, match="more than 10 characters"):
        calls.ingest_delta(delta(entry(0, name="f", arguments="x" * 11)))
    calls = ToolCallAggregator()
    with pytest.raises(BackendError, match=f"more than {MAX_CALLS} tool calls"):
        calls.ingest_delta(delta(*(entry(at, name="f") for at in range(MAX_CALLS + 1))))


def test_deep_nesting_is_no_crash() -> None:
    deep = '{"a":' * 50_000
    assert read(*stream(0, "f", deep, deep + "1"))[0][2].startswith(deep)


def test_an_id_made_up_for_every_chunk_is_no_new_call() -> None:
    for index in (0, None):
        first = delta(entry(index, "a", name="f", arguments='{"x"'))
        rest = [delta(entry(index, f"b{at}", arguments=part)) for at, part in enumerate((": 1", "}"))]
        assert read(first, *rest) == [("a", "f", '{"x": 1}')]


def test_a_name_that_comes_late() -> None:
    nameless = {"index": 0, "id": "a", "type": "function"}
    assert read(delta(nameless), delta(entry(0, name="f")), delta(entry(0, arguments="{}"))) == [("a", "f", "{}")]
    assert read(delta(entry(0, "a", arguments='{"x"')), delta(entry(0, name="f", arguments=": 1}"))) == [
        ("a", "f", '{"x": 1}')
    ]
    assert read(delta(entry(0, "a", arguments={"x": 1})), delta(entry(0, name="f"))) == [("a", "f", '{"x": 1}')]
    calls = ToolCallAggregator()
    assert calls.ingest_delta(delta(nameless)) == []
    assert not calls.has_calls()
    assert not calls.has_calls(0)
    assert calls.snapshot() == ()


def test_a_response_that_comes_whole() -> None:
    output = [
        {"type": "message", "content": []},
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
        "noise",
    ]
    done = {"type": "response.completed", "response": {"output": output}}
    assert read(done) == read(done, done) == [("c", "f", "{}")]
    calls = ToolCallAggregator()
    assert len(calls.ingest_message({"output": output})) == 1
    assert calls.ingest_message({"output": output}) == []


def test_a_final_message_with_other_ids_brings_the_same_calls() -> None:
    calls = ToolCallAggregator()
    calls.ingest_delta(delta(entry(0, "a", name="f", arguments='{"x": 1}')))
    same = {"tool_calls": [entry(None, "z", name="f", arguments='{"x": 1}')]}
    assert calls.ingest_message(same) == []
    other = {"tool_calls": [entry(None, "y", name="f", arguments='{"x": 2}')]}
    assert len(calls.ingest_message(other)) == 1
    assert [call.arguments for call in calls.snapshot()] == ['{"x": 1}', '{"x": 2}']
