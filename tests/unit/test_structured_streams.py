"""Structured streams: every wire's form, and every combination of the keys that name a call, gives the same calls."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import chain, combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import ToolCallAggregator
from callwright.aggregator import Aggregator, ToolCallDelta, ToolCallRecord
from callwright.errors import BackendError
from callwright.ids import make_sequential_ids
from callwright.model import ToolSpec

Chunk = dict[str, Any]
Calls = list[tuple[str, str, list[str]]]
CALLS: Calls = [
    ("a", "f", ['{"x"', ": 1}"]),
    ("b", "g", ['{"y": "', "ha", "ha", 'ha"}']),
    ("c", "f", ["{", "}"]),
]
EXPECTED = [(name, "".join(parts)) for _, name, parts in CALLS]


def subsets(names: tuple[str, ...], least: int = 0) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, size) for size in range(least, len(names) + 1)))


def keep(keys: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in keys}


def chat(calls: Calls, keys: tuple[str, ...]) -> Iterator[Chunk]:
    """Chat deltas: the start has the name; index, id and name again are in every delta if `keys` says so."""
    for index, (call_id, name, parts) in enumerate(calls):
        for at, part in enumerate(parts):
            named = {"name": name} if at == 0 or "name" in keys else {}
            entry = {**keep(keys, index=index, id=call_id), "function": {**named, "arguments": part}}
            yield {"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}


def legacy(calls: Calls) -> Iterator[Chunk]:
    for _, name, parts in calls:
        for at, part in enumerate(parts):
            call = {"arguments": part} if at else {"name": name, "arguments": part}
            yield {"choices": [{"delta": {"function_call": call}}]}


def responses(calls: Calls, keys: tuple[str, ...], steps: tuple[str, ...]) -> Iterator[Chunk]:
    """Responses events with any of the three keys, and any of the steps that repeat the arguments."""
    yield {"type": "response.created", "response": {"output": []}}
    for index, (call_id, name, parts) in enumerate(calls):
        whole = "".join(parts)
        placed = keep(keys, output_index=index)
        named = keep(keys, call_id=call_id, item_id=f"fc_{call_id}") | placed
        item = {"type": "function_call", "name": name, **keep(keys, call_id=call_id)}
        if "item_id" in keys:
            item["id"] = f"fc_{call_id}"
        yield {"type": "response.output_item.added", "item": {**item, "arguments": ""}, **placed}
        for part in parts if "delta" in steps else ():
            yield {"type": "response.function_call_arguments.delta", "delta": part, **named}
        if "done" in steps:
            yield {"type": "response.function_call_arguments.done", "arguments": whole, **named}
        if "item" in steps:
            yield {"type": "response.output_item.done", "item": {**item, "arguments": whole}, **placed}


def anthropic(calls: Calls) -> Iterator[Chunk]:
    yield {"type": "message_start", "message": {"content": []}}
    for index, (call_id, name, parts) in enumerate(calls):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for part in parts:
            delta = {"type": "input_json_delta", "partial_json": part}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def read(chunks: Iterator[Chunk] | list[Chunk], calls: Aggregator | None = None) -> list[ToolCallRecord]:
    """The calls at the end; the deltas join to the same."""
    aggregator = calls or ToolCallAggregator(make_sequential_ids())
    out: list[ToolCallDelta] = []
    for chunk in chunks:
        out += aggregator.ingest_delta(chunk)
    out += aggregator.finish_turn()
    found = list(aggregator.snapshot())
    for index, call in enumerate(found):
        mine = [delta for delta in out if delta.index == index]
        assert [delta.started for delta in mine] == [True] + [False] * (len(mine) - 1)
        assert {(delta.id, delta.name) for delta in mine} == {(call.id, call.name)}
        assert "".join(delta.arguments for delta in mine) == call.arguments
    assert len({call.id for call in found}) == len(found)
    return found


def pairs(found: list[ToolCallRecord]) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in found]


# ── every form, every key ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", subsets(("index", "id", "name")))
def test_chat_deltas_with_any_keys(keys: tuple[str, ...]) -> None:
    assert pairs(read(chat(CALLS, keys))) == EXPECTED


@pytest.mark.parametrize("steps", subsets(("delta", "done", "item"), 1))
@pytest.mark.parametrize("keys", subsets(("call_id", "item_id", "output_index"), 1))
def test_responses_events_with_any_keys(keys: tuple[str, ...], steps: tuple[str, ...]) -> None:
    assert pairs(read(responses(CALLS, keys, steps))) == EXPECTED


@pytest.mark.parametrize("key", ["call_id", "item_id", "output_index"])
def test_responses_deltas_before_the_name(key: str) -> None:
    known = {key: 0 if key == "output_index" else "k"}
    item = {"type": "function_call", "name": "f", "arguments": '{"x": 1}'}
    where = known if key == "output_index" else {}
    found = {**item, **({} if where else {"call_id" if key == "call_id" else "id": "k"})}
    delta = {"type": "response.function_call_arguments.delta", "delta": '{"x"', **known}
    done = {"type": "response.output_item.done", "item": found, **where}
    assert pairs(read([delta, done])) == [("f", '{"x": 1}')]


def test_item_ids_that_change_with_every_event() -> None:
    """GitHub Copilot's items have another id in every event; their place is the same."""
    chunks = list(responses(CALLS, ("item_id", "output_index"), ("delta", "done", "item")))
    for at, chunk in enumerate(chunks):
        for owner in (chunk, chunk.get("item", {})):
            owner.update({key: f"{at}" for key in ("id", "item_id") if key in owner})
    found = read([chunk for chunk in chunks if chunk["type"] != "response.output_item.done"])
    assert pairs(found) == EXPECTED


def test_the_other_wires() -> None:
    assert pairs(read(legacy(CALLS[:2]))) == EXPECTED[:2]
    assert pairs(read(anthropic(CALLS))) == EXPECTED
    ollama = [
        {"message": {"tool_calls": [{"function": {"name": name, "arguments": json.loads(text)}}]}}
        for name, text in EXPECTED
    ]
    assert pairs(read(ollama)) == EXPECTED


@pytest.mark.parametrize("mode", ["increments", "resent"])
@pytest.mark.parametrize("make", [lambda calls: chat(calls, ("index", "id", "name")), anthropic])
def test_resent_arguments_are_the_same_on_every_wire(make: Callable[[Calls], Iterator[Chunk]], mode: str) -> None:
    calls = [
        (call_id, name, ["".join(parts[: at + 1]) if mode == "resent" else part for at, part in enumerate(parts)])
        for call_id, name, parts in CALLS
    ]
    assert pairs(read(make(calls))) == EXPECTED


def part_lists() -> list[list[Chunk]]:
    arguments = {"x": 1}
    return [
        [{"type": "text", "text": "Hm."}, {"type": "tool_use", "id": "a", "name": "f", "input": arguments}],
        [{"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'}],
        [{"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": arguments}],
        [{"type": "tool-call", "toolCallId": "a", "toolName": "f", "args": arguments}],
        [{"type": "tool_call", "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        [{"functionCall": {"id": "a", "name": "f", "args": arguments}}],
    ]


def wrap_message(message: Chunk) -> list[Any]:
    return [
        message,
        {"message": message},
        {"choices": [{"index": 0, "message": message}]},
        {"choices": [{"delta": {}, "message": message}]},
        [message],
    ]


@pytest.mark.parametrize("parts", part_lists())
def test_part_lists_and_wrapped_messages(parts: list[Chunk]) -> None:
    for payload in [*wrap_message({"role": "assistant", "content": parts}), parts, {"parts": parts}]:
        calls = ToolCallAggregator()
        assert len(calls.ingest_message(payload)) == 1
        assert calls.snapshot() == (ToolCallRecord("a", "f", '{"x": 1}'),)
        assert calls.ingest_message(payload) == []
        assert pairs(read([payload])) == [("f", '{"x": 1}')]


def test_messages_in_every_wrapper() -> None:
    message = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]}
    output = [{"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'}]
    for payload in [*wrap_message(message), {"output": output}, {"response": {"output": output}}]:
        calls = ToolCallAggregator()
        calls.ingest_message(payload)
        assert calls.snapshot() == (ToolCallRecord("a", "f", '{"x":1}'),)


@pytest.mark.parametrize("payload", [[1, None], [{}], [{"type": "text"}], {"content": [None, 5]}, {"parts": "x"}, []])
def test_payloads_without_calls(payload: Any) -> None:
    calls = ToolCallAggregator()
    assert calls.ingest_delta(payload) == calls.ingest_message(payload, emit_if_missing=True) == []


# ── one id for two calls ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("index", ["same", "other", "none"])
@pytest.mark.parametrize("name", ["same", "other", "none"])
def test_an_id_that_two_entries_share(index: str, name: str) -> None:
    """A named entry with another index or another name is another call, with a fresh id; any other continues."""
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": '}}
    second: Chunk = {"id": "a", "function": {"arguments": "1}"}}
    if index != "none":
        second["index"] = 0 if index == "same" else 1
    if name != "none":
        second["function"]["name"] = "f" if name == "same" else "g"
    is_another = name == "other" or (name == "same" and index == "other")
    if is_another:
        second["function"]["arguments"] = "{}"
    found = read([{"tool_calls": [first]}, {"tool_calls": [second]}])
    if not is_another:
        assert found == [ToolCallRecord("a", "f", '{"x": 1}')]
    else:
        assert found == [
            ToolCallRecord("a", "f", '{"x": '),
            ToolCallRecord("call_1", second["function"]["name"], "{}"),
        ]


@pytest.mark.parametrize("keys", subsets(("index", "name")))
def test_one_id_for_all_calls_of_a_stream(keys: tuple[str, ...]) -> None:
    calls = [("same", name, parts) for _, name, parts in CALLS]
    found = read(chat(calls, ("id", *keys)))
    assert pairs(found) == EXPECTED
    assert found[0].id == "same"


@pytest.mark.parametrize("steps", subsets(("delta", "done", "item"), 1))
def test_one_call_id_for_all_items(steps: tuple[str, ...]) -> None:
    calls = [("same", name, parts) for _, name, parts in CALLS]
    assert pairs(read(responses(calls, ("call_id", "output_index"), steps))) == EXPECTED


def test_one_id_for_interleaved_calls() -> None:
    def entry(index: int, **function: str) -> Chunk:
        return {"index": index, "id": "same", "function": function}

    found = read(
        [
            {"tool_calls": [entry(0, name="f", arguments='{"x"'), entry(1, name="f", arguments='{"y"')]},
            {"tool_calls": [entry(1, arguments=": 2}"), entry(0, arguments=": 1}")]},
        ]
    )
    assert found == [ToolCallRecord("same", "f", '{"x": 1}'), ToolCallRecord("call_1", "f", '{"y": 2}')]


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("as_object", [True, False])
def test_one_id_in_one_list(indexed: bool, as_object: bool) -> None:
    """Whether in a delta or a message, entries of one list are different calls."""
    values = [{"x": 1}, {"x": 2}, {"x": 2}]
    entries = [
        {
            **({"index": at} if indexed else {}),
            "id": "same",
            "function": {"name": "f", "arguments": value if as_object else json.dumps(value)},
        }
        for at, value in enumerate(values)
    ]
    expected = [("f", json.dumps(value)) for value in values]
    assert pairs(read([{"tool_calls": entries}])) == expected
    calls = ToolCallAggregator()
    calls.ingest_message({"tool_calls": entries})
    assert pairs(list(calls.snapshot())) == expected
    assert calls.ingest_message({"tool_calls": entries}) == []


@pytest.mark.parametrize("fields", [{"index": 0}, {"id": "a"}, {"index": 0, "id": "a"}])
@pytest.mark.parametrize("as_object", [True, False])
def test_an_object_after_a_complete_one_is_another_call(fields: Chunk, as_object: bool) -> None:
    def chunk(value: Any) -> Chunk:
        text = value if as_object else json.dumps(value)
        return {"tool_calls": [{**fields, "function": {"name": "f", "arguments": text}}]}

    found = read([chunk({"x": 1}), chunk({"x": 2})])
    assert pairs(found) == [("f", '{"x": 1}'), ("f", '{"x": 2}')]
    assert len(read([chunk({"x": 1}), chunk({"x": 1})])) == 1


def test_an_object_after_the_name() -> None:
    start = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}
    for rest in ({"index": 0}, {"id": "a"}, {}):
        chunk = {"tool_calls": [{**rest, "function": {"arguments": {"x": 1}}}]}
        assert read([start, chunk]) == [ToolCallRecord("a", "f", '{"x": 1}')]


# ── a second message ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "a"), ("", "")])
@pytest.mark.parametrize(("name", "arguments"), [("g", '{"x": 1}'), ("f", '{"x": 2}'), ("g", "{}")])
def test_a_second_message_adds_its_calls(ids: tuple[str, str], name: str, arguments: str) -> None:
    def message(call_id: str, called: str, text: str) -> Chunk:
        entry = {"function": {"name": called, "arguments": text}}
        return {"tool_calls": [{"id": call_id, **entry} if call_id else entry]}

    calls = ToolCallAggregator()
    calls.ingest_message(message(ids[0], "f", '{"x": 1}'))
    assert len(calls.ingest_message(message(ids[1], name, arguments))) == 1
    assert pairs(list(calls.snapshot())) == [("f", '{"x": 1}'), (name, arguments)]
    assert len({call.id for call in calls.snapshot()}) == 2
    for again in (message(ids[0], "f", '{"x":1}'), message(ids[1], name, arguments)):
        assert calls.ingest_message(again) == []


def test_a_second_stream_after_the_first_ended() -> None:
    calls = ToolCallAggregator(make_sequential_ids())
    read(chat(CALLS[:1], ("index",)), calls)
    for chunk in chat([("", "f", ["", '{"x"', ": 2}"])], ("index",)):
        calls.ingest_delta(chunk)
    calls.finish_turn()
    assert pairs(list(calls.snapshot())) == [("f", '{"x": 1}'), ("f", '{"x": 2}')]
    for events in (anthropic, lambda calls: responses(calls, ("output_index",), ("delta",))):
        calls = ToolCallAggregator(make_sequential_ids())
        for chunk in [*events(CALLS[:1]), *events(CALLS[1:2])]:
            calls.ingest_delta(chunk)
        calls.finish_turn()
        assert pairs(list(calls.snapshot())) == EXPECTED[:2]


# ── resent arguments ──────────────────────────────────────────────────────────────────────────────


def test_resent_arguments_cost_their_own_length() -> None:
    """13,000 characters, resent after each of them: 84 million in all, and the limit counts 13,040."""
    text = json.dumps({"path": "a.txt", "content": "0123456789abc" * 1000})
    for named in (False, True):
        calls = ToolCallAggregator(limit=len(text) + 8)
        out: list[str] = []
        tracemalloc.start()
        started = time.process_time()
        for end in range(1, len(text) + 1):
            name = {"name": "write_file"} if named or end == 1 else {}
            function = {**name, "arguments": text[:end]}
            out += [
                delta.arguments for delta in calls.ingest_delta({"tool_calls": [{"index": 0, "function": function}]})
            ]
        seconds = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "".join(out) == calls.snapshot()[0].arguments == text
        assert peak < 5_000_000
        assert seconds < 20


def test_undecided_fragments_are_counted_and_given_back() -> None:
    text = '{"a": '
    calls = ToolCallAggregator(limit=40)
    chunk = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": text}}]}
    for _ in range(6):
        calls.ingest_delta(chunk)
    with pytest.raises(BackendError):
        calls.ingest_delta(chunk)
    calls = ToolCallAggregator(limit=80)
    for end in range(1, 4):
        calls.ingest_delta({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": text * end}}]})
    for end in range(1, 40):
        part = text * 3 + '"' + "x" * end
        calls.ingest_delta({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": part}}]})
    assert calls.snapshot()[0].arguments == text * 3 + '"' + "x" * 39


def test_a_resent_object_with_mistakes_is_resent() -> None:
    text = "{'a': 1, 'b': 'x'}"
    parts = [text[:end] for end in (3, 8, len(text))]
    assert pairs(read(chat([("a", "f", parts)], ("index",)))) == [("f", text)]


def test_a_fragment_that_is_not_resent_is_appended() -> None:
    """After a stream has proved that it resends, text that does not contain the text so far is not lost."""
    resent = [("a", "f", ["{", '{"x"', '{"x": 1}']), ("b", "g", ['{"y": ', "2", "}"]), ("c", "h", ["a", "bc", "bcd"])]
    assert pairs(read(chat(resent, ("index", "id")))) == [("f", '{"x": 1}'), ("g", '{"y": 2}'), ("h", "abcbcd")]
    stale = [("a", "f", ["{", '{"x"', "{", '{"x": 1}'])]
    assert pairs(read(chat(stale, ("index", "id")))) == [("f", '{"x": 1}')]


# ── freeform input ────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.sampled_from(["ha", "h", "1", '"', "{", "{}", "null", "\n", "[]", "*** Begin"]), max_size=6))
def test_freeform_fragments_are_data(parts: list[str]) -> None:
    item = {"type": "custom_tool_call", "id": "ct", "call_id": "a", "name": "run", "input": ""}
    events: list[Chunk] = [{"type": "response.output_item.added", "item": item}]
    events += [{"type": "response.custom_tool_call_input.delta", "item_id": "ct", "delta": part} for part in parts]
    text = "".join(parts)
    expected = [ToolCallRecord("a", "run", text, "custom")]
    assert read(events) == expected
    done = {"type": "response.custom_tool_call_input.done", "item_id": "ct", "input": text}
    assert read([*events, done, {"type": "response.output_item.done", "item": {**item, "input": text}}]) == expected
    chunks: list[Chunk] = [
        {"tool_calls": [{"index": 0, "type": "custom", "custom": {"input": part}}]} for part in parts
    ]
    start = {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": ""}}]}
    assert read([start, *chunks]) == expected


@pytest.mark.parametrize("parts", [["ha", "ha", "ha"], ["ha", "haha", "ha"], ["ls", "ls"], ["- a", "- a\n- b"]])
def test_text_that_is_no_json_is_data_on_every_wire(parts: list[str]) -> None:
    for chunks in (chat([("a", "f", parts)], ("index", "id")), anthropic([("a", "f", parts)])):
        assert pairs(read(chunks)) == [("f", "".join(parts))]


def test_repeated_fragments_inside_a_string_are_data() -> None:
    for parts in product(["ha", "h", "hah"], repeat=3):
        text = ['{"t": "', *parts, '"}']
        assert pairs(read(chat([("a", "f", text)], ("index",)))) == [("f", "".join(text))]


# ── calls without arguments ───────────────────────────────────────────────────────────────────────

REQUIRED = ToolSpec("needy", "", {"type": "object", "properties": {"x": {}}, "required": ["x"]})
EMPTY_TEXTS = ["", " ", "null", "None", "[]", '""', " null\n"]


@pytest.mark.parametrize("sent", [*EMPTY_TEXTS, None, [], {}, "{}"])
def test_no_arguments_are_an_empty_object(sent: Any) -> None:
    entry = {"id": "a", "function": {"name": "f", "arguments": sent}}
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": sent}
    payloads: list[Chunk] = [
        {"tool_calls": [{"index": 0, **entry}]},
        {"function_call": entry["function"]},
        {"message": {"tool_calls": [entry]}},
        {"type": "response.output_item.done", "item": item},
        {"content": [{"type": "tool_use", "id": "a", "name": "f", "input": sent}]},
    ]
    for payload in payloads:
        (call,) = read([payload])
        assert call.arguments.strip() == "{}"
        calls = ToolCallAggregator()
        calls.ingest_message(payload)
        assert [record.arguments.strip() for record in calls.snapshot()] == ["{}"]


@pytest.mark.parametrize("text", [*EMPTY_TEXTS, "nullx", "[1]", "Nonesuch", '"x"'])
def test_no_arguments_in_pieces(text: str) -> None:
    expected = "{}" if text in EMPTY_TEXTS else text
    for size in (1, 2, 9):
        parts = [text[at : at + size] for at in range(0, len(text), size)] or [""]
        assert pairs(read(chat([("a", "f", parts)], ("index",)))) == [("f", expected)]


@pytest.mark.parametrize("sent", EMPTY_TEXTS)
def test_no_arguments_of_a_tool_that_needs_some_stay_as_they_were(sent: str) -> None:
    chunk = {"tool_calls": [{"index": 0, "function": {"name": "needy", "arguments": sent}}]}
    assert pairs(read([chunk], ToolCallAggregator(tools=[REQUIRED]))) == [("needy", sent)]
    assert pairs(read([chunk], Aggregator(make_sequential_ids()))) == [("needy", sent)]


# ── text patterns, budgets, halves ────────────────────────────────────────────────────────────────


def raise_error(text: str) -> list[tuple[str, str]]:
    raise RuntimeError("broken")


def find_some(text: str) -> Iterator[tuple[str, str]]:
    yield "f", "{}"
    raise ValueError("broken later")


def find_ping(text: str) -> list[tuple[str, str]]:
    return [("ping", "{}")] * text.count("PING")


@pytest.mark.parametrize("broken", [raise_error, lambda text: None, lambda text: [1], lambda text: [("f", 5)]])
def test_a_pattern_that_raises_costs_only_what_it_finds(broken: Any) -> None:
    calls = ToolCallAggregator(patterns=[broken, find_ping])
    assert [delta.name for delta in calls.ingest_message({"content": "PING"}, emit_if_missing=True)] == ["ping"]
    assert len(calls.pattern_errors) == 1
    structured = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}], "content": "PING"}
    calls.reset_turn()
    assert not calls.pattern_errors
    assert [delta.name for delta in calls.ingest_message(structured, emit_if_missing=True)] == ["f"]


def test_what_a_pattern_found_before_it_raised_is_kept() -> None:
    calls = ToolCallAggregator()
    calls.register_text_pattern(find_some)  # type: ignore[arg-type]
    assert [delta.name for delta in calls.ingest_message({"content": "x"}, emit_if_missing=True)] == ["f"]
    for _ in range(100):
        calls.ingest_message({"content": "x"}, emit_if_missing=True)
    assert len(calls.pattern_errors) == 16


@pytest.mark.parametrize(
    "content", ["PING", [{"type": "text", "text": "PI"}, {"type": "text", "text": "NG"}], ["PING"]]
)
def test_patterns_read_text_and_parts(content: Any) -> None:
    for payload in wrap_message({"role": "assistant", "content": content}):
        calls = ToolCallAggregator(patterns=[find_ping])
        assert len(calls.ingest_message(payload, emit_if_missing=True)) == 1
        assert calls.ingest_message(payload, emit_if_missing=True) == []
        more = {"output": [{"type": "message", "content": [{"type": "output_text", "text": "PING PING"}]}]}
        assert len(calls.ingest_message(more, emit_if_missing=True)) == 1


def test_a_choice_gives_its_budget_back() -> None:
    def chunk(choice: int, size: int) -> Chunk:
        entry = {"index": 0, "function": {"name": "f", "arguments": "x" * size}}
        return {"choices": [{"index": choice, "delta": {"tool_calls": [entry]}}]}

    calls = ToolCallAggregator(limit=100)
    calls.ingest_delta(chunk(0, 40))
    for _ in range(5):
        calls.ingest_delta(chunk(1, 60))
        with pytest.raises(BackendError):
            calls.ingest_delta(chunk(2, 1))
        calls.reset_turn(2)
        calls.reset_turn(1)
    calls.reset_turn(7)
    assert calls.snapshot()[0].arguments == "x" * 40
    with pytest.raises(BackendError):
        calls.ingest_delta(chunk(1, 61))


def test_a_whole_text_after_its_fragments_counts_once() -> None:
    calls = ToolCallAggregator(limit=10)
    calls.ingest_delta({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}]})
    calls.ingest_message({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}]})
    calls.finish_turn()
    assert calls.snapshot()[0].arguments == '{"x": 1}'


EMOJI = '{"t": "a\ud83d\ude00b\ud83d\ude01"}'
JOINED = '{"t": "a😀b😁"}'


@pytest.mark.parametrize("size", range(1, len(EMOJI) + 1))
@pytest.mark.parametrize("resent", [True, False])
def test_halves_of_a_pair_join(size: int, resent: bool) -> None:
    ends = [*range(size, len(EMOJI), size), len(EMOJI)]
    starts = [0, *ends]
    parts = [EMOJI[0 if resent else start : end] for start, end in zip(starts, ends, strict=False)]
    for chunks in (
        chat([("a", "f", parts)], ("index",)),
        responses([("a", "f", parts)], ("call_id",), ("delta",)),
        anthropic([("a", "f", parts)]),
    ):
        assert pairs(read(chunks)) == [("f", JOINED)]
    for record in read(chat([("a", "f", parts)], ("index",))):
        record.arguments.encode()


def test_a_half_that_stays_alone_is_kept() -> None:
    assert pairs(read(chat([("a", "f", ['{"t": "\ud83d', '"}'])], ("index",)))) == [("f", '{"t": "\ud83d"}')]
    assert pairs(read(chat([("a", "f", ['{"t": "\ud83d'])], ("index",)))) == [("f", '{"t": "\ud83d')]
