"""Deep, large and hostile input: malformed data with a reason, never an exception, and work that stays bounded.

Nothing is timed here. Either work is counted, or the input is such that an exponential reader would never end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import callwright.arguments
from callwright import Parser, check_events, collect, get_dialect
from callwright.dialects import REGISTRY
from callwright.engine.normalize import normalize_request
from callwright.engine.routing import RouteTable
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.turn_report import TurnReport
from callwright.errors import RequestError
from callwright.grammar.constraint_builder import build_constraint
from callwright.guard.native_calls import NativeCallWriter
from callwright.ids import make_sequential_ids
from callwright.input_limits import (
    MAX_BODY_DEPTH,
    MAX_CALL_OBJECT_DEPTH,
    MAX_JSON_DEPTH,
    MAX_NAME_COMPARISONS,
    MAX_NUMBER_LENGTH,
    MAX_SPACE_LENGTH,
    WorkBudget,
)
from callwright.model import Repair, ToolCall, ToolSpec
from callwright.prompt.schema_trim import trim_tool
from callwright.prompt.settings import PromptSettings, ToolLimitSettings
from callwright.prompt.tool_prompt import render_tool_prompt
from callwright.prompt.tool_signatures import format_signature
from callwright.schema import Schema, Toolbox, is_similar_name
from callwright.text.nesting import is_deeper_than
from callwright.turn import Collected, Turn
from callwright.wire import SERVER_CODECS
from tests.support import hostile
from tests.support.effort import count_calls
from tests.support.sampling import sample_rows

DEEP = 100_000
ROUTE = RouteTable([ModelSettings(name="m")], ("b",), ToolRules(), PromptSettings()).find_route("m")
TOOL = ToolSpec("act", "", {"type": "object", "properties": {"value": {}, "items": {"type": "array"}}})


def parse(name: str, text: str, size: int = 4_096) -> Collected:
    parser = Parser(get_dialect(name), (TOOL,), ids=make_sequential_ids())
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    events += parser.close()
    check_events(events)
    return collect(events)


def call_natively(arguments: str, tool: ToolSpec = TOOL) -> Collected:
    turn = Turn(Toolbox([tool]), make_sequential_ids())
    native = NativeCallWriter(turn)
    native.start_call(0, "act")
    native.feed(0, arguments)
    native.end_calls()
    turn.finish()
    events = turn.drain_events()
    check_events(events)
    return collect(events)


def writable_dialects() -> list[str]:
    return [name for name in REGISTRY if hasattr(REGISTRY[name], "render_call") and name not in ("answer", "auto")]


def at_depth(frames: int, work: Callable[[], object]) -> object:
    """Do something while the stack is as full as in a server with middleware."""
    return work() if not frames else at_depth(frames - 1, work)


# ── model output ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "nesting"), sample_rows(list(writable_dialects()), list(hostile.NESTINGS)))
def test_no_dialect_fails_on_nested_arguments(name: str, nesting: str) -> None:
    try:
        text = hostile.write_call(name, hostile.NESTINGS[nesting](DEEP // 10))
    except ValueError:
        pytest.skip("its calls cannot be written with an argument of any text")
    turn = parse(name, text)
    assert len(turn.tool_calls) <= 1
    for call in turn.tool_calls:
        assert not call.complete or not is_deeper_than(json.loads(call.arguments), MAX_JSON_DEPTH)


@pytest.mark.parametrize(("name", "run"), sample_rows(sorted(REGISTRY), list(hostile.list_runs("hermes"))))
def test_no_dialect_fails_on_a_long_run(name: str, run: str) -> None:
    text = hostile.list_runs(name)[run] * 1_500
    turn = parse(name, text)
    assert not any(call.complete for call in turn.tool_calls)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "pythonic"])
def test_arguments_that_are_too_deep_are_text_with_a_reason(name: str) -> None:
    nested = "[" * DEEP + "]" * DEEP
    turn = parse(name, hostile.write_call(name, nested), DEEP)
    [call] = turn.tool_calls
    assert json.loads(call.arguments) == {"items": nested}
    assert [repair.kind for repair in turn.repairs] == ["quoted_value"]
    assert turn.repairs[0].detail == "items: the value is nested too deeply and was passed on as a string"


def test_a_native_call_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    """Also with the object around it, so that it is still valid where a client sends it back."""
    nested = "[" * (MAX_JSON_DEPTH - 1) + "]" * (MAX_JSON_DEPTH - 1)
    turn = call_natively('{"items": ' + nested + "}")
    assert not turn.repairs
    history = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "act", "arguments": "@"}}]}
    body = {"model": "m", **hostile.ask(history)}
    for arguments in (json.dumps(turn.tool_calls[0].arguments), turn.tool_calls[0].arguments):
        sent = json.dumps(body).replace('"@"', arguments).encode()
        request = normalize_request(SERVER_CODECS["openai_chat"].decode_request(sent).request, ROUTE).request
        [call] = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
        assert json.loads(call.arguments) == json.loads(turn.tool_calls[0].arguments)
    assert [repair.kind for repair in call_natively('{"items": [' + nested + "]}").repairs] == ["quoted_value"]


def test_a_number_that_python_does_not_convert_is_text() -> None:
    digits = "1" * (MAX_NUMBER_LENGTH + 1)
    turn = call_natively('{"value": ' + digits + "}")
    assert json.loads(turn.tool_calls[0].arguments) == {"value": digits}
    assert [repair.kind for repair in turn.repairs] == ["quoted_value"]


@pytest.mark.parametrize("begin", ['{"function":', '{"tool_calls":['])
@pytest.mark.parametrize("name", ["llama3_json", "hermes", "auto"])
def test_call_objects_inside_each_other_have_a_limit(name: str, begin: str) -> None:
    wrapper = "<tool_call>" if name == "hermes" else ""
    assert not parse(name, wrapper + begin * 5_000).tool_calls
    end = begin.replace('{"function":', "}").replace('{"tool_calls":[', "]}")
    call = '{"name": "act", "arguments": {"value": 1}}'
    few = MAX_CALL_OBJECT_DEPTH
    assert len(parse(name, wrapper + begin * few + call + end * few).tool_calls) == 1
    assert not parse(name, wrapper + begin * (few + 1) + call + end * (few + 1)).tool_calls


def test_unknown_keys_are_compared_a_limited_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def compare(one: str, other: str) -> bool:
        nonlocal count
        count += 1
        return is_similar_name(one, other)

    monkeypatch.setattr(callwright.arguments, "is_similar_name", compare)
    names = {f"name_{at}": {"type": "string"} for at in range(50)}
    keys = {f"other{at}": at for at in range(8_000)}
    turn = call_natively(json.dumps(keys), ToolSpec("act", "", {"properties": names}))
    assert json.loads(turn.tool_calls[0].arguments) == keys
    assert MAX_NAME_COMPARISONS <= count <= MAX_NAME_COMPARISONS + len(names)


def test_long_names_are_not_compared_letter_by_letter() -> None:
    assert is_similar_name("a" * 10_000 + "_b", "A" * 10_000 + "B")
    assert not is_similar_name("a" * 10_000 + "b", "c" + "a" * 10_000)
    assert is_similar_name("filepaht", "file_path")
    assert not is_similar_name("file_path", "contents")


def test_dropped_text_is_recorded_in_full_however_much_it_is() -> None:
    turn = call_natively('{"items": [' + "".join(f"/* c{at} */ {at}," for at in range(3_000)) + "]}")
    assert json.loads(turn.tool_calls[0].arguments)["items"] == list(range(3_000))
    [comments] = [repair.detail for repair in turn.repairs if repair.kind == "dropped_comment"]
    assert comments.count("/* c") == 3_000


def test_white_space_before_a_marker_has_a_limit_that_chunks_do_not_change() -> None:
    for spaces in (MAX_SPACE_LENGTH - 2, MAX_SPACE_LENGTH, MAX_SPACE_LENGTH + 2):
        text = "Hi" + " " * spaces + '{"name": "act", "arguments": {"value": "a"' + " " * spaces + "}}"
        for name in ("llama3_json", "fenced", "react", "pythonic", "auto"):
            whole, cut = parse(name, text, 100_000), parse(name, text, 997)
            assert (whole.text, whole.tool_calls, whole.repairs) == (cut.text, cut.tool_calls, cut.repairs)


@pytest.mark.parametrize("run", ["</parameter>", "</parameter>\n", "\n", " "])
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45", "pythonic"])
def test_the_work_for_a_run_inside_a_call_grows_with_its_length(name: str, run: str) -> None:
    def count(n: int) -> int:
        return count_calls(lambda: parse(name, hostile.write_call(name, run * n), 16))

    count(10)
    assert count(800) < 2.3 * count(400)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "pythonic", "llama3_json"])
def test_white_space_inside_a_call_has_a_limit_that_chunks_do_not_change(name: str) -> None:
    call = hostile.write_call(name, '["a"]')
    places = [at for at in range(call.index("act") + 3, len(call) + 1) if call[at - 1] in "\"'>]})\n,:="]
    for spaces in (MAX_SPACE_LENGTH - 1, MAX_SPACE_LENGTH, MAX_SPACE_LENGTH + 1):
        for at in places:
            text = call[:at] + " " * spaces + call[at:]
            whole, cut = parse(name, text, 100_000), parse(name, text, 997)
            assert (whole.text, whole.tool_calls, whole.repairs) == (cut.text, cut.tool_calls, cut.repairs)


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────


def walk(body: dict[str, Any]) -> None:
    for member in Schema(body).properties.values():
        assert member.types is not None
        assert member.items.types is not None
        assert member.properties is not None


def trim(body: dict[str, Any]) -> None:
    settings = ToolLimitSettings(inline_refs=True, terse=True, trim_schemas=True, drop_null=True)
    trimmed = trim_tool(ToolSpec("act", "", body), settings).parameters
    size = len(json.dumps(body))
    assert len(json.dumps(trimmed)) < 30_000 + 30 * size


def describe(body: dict[str, Any]) -> None:
    tools = (ToolSpec("act", "", body),)
    for name in ("hermes", "harmony", "pythonic"):
        assert len(render_tool_prompt(tools, REGISTRY[name], "full")) < 500_000 + 10 * len(json.dumps(body))
    assert len(format_signature(tools[0])) < 500_000


def constrain(body: dict[str, Any]) -> None:
    constraint = build_constraint([ToolSpec("act", "", body)], REGISTRY["hermes"])
    assert len(constraint.grammar) < 5_000_000


CONSUMERS: dict[str, Callable[[dict[str, Any]], None]] = {
    "types": walk,
    "trimming": trim,
    "prompt": describe,
    "grammar": constrain,
}


@pytest.mark.parametrize("label", hostile.SCHEMAS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_no_schema_exhausts_its_reader(consumer: str, label: str) -> None:
    """Four times the ordinary size: references that double at every level would never end."""
    body = hostile.build_schema(label, 4 * hostile.SCHEMAS[label][0])
    at_depth(150, lambda: CONSUMERS[consumer](body))


MALFORMED: list[dict[str, Any]] = [
    {"properties": 5, "required": 5, "patternProperties": "x"},
    {"type": "object", "properties": [], "patternProperties": [1]},
    {"anyOf": 7, "enum": 5, "items": 3, "minimum": "a", "maxLength": {}},
    {"allOf": [{"maxItems": "a", "enum": 5}, {"maxItems": 3, "enum": [[1], {"a": 1}]}, {"enum": [[1]]}]},
    {"allOf": [{"required": [[], {}]}, {"required": ["a"]}], "properties": {"a": {"$ref": "#/allOf/" + "9" * 5_000}}},
    {"type": "array", "items": {"patternProperties": 1, "properties": "#", "type": "object"}},
]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_keywords_of_a_wrong_type_are_ignored(consumer: str, body: dict[str, Any]) -> None:
    CONSUMERS[consumer](body)


def test_references_that_fan_out_share_their_schemas() -> None:
    schema = Schema(hostile.fan_out(30, "anyOf"))
    assert schema.properties["a"].types == {"object"}
    assert list(schema.properties["a"].properties) == ["x"]
    assert len(schema._shared) < 70


def test_members_of_branches_keep_their_order_and_their_precedence() -> None:
    branches = [{"properties": {"a": {"type": "string"}, "b": {}}}, {"properties": {"c": {}, "a": {"type": "null"}}}]
    schema = Schema({"properties": {"b": {"type": "integer"}, "d": {}}, "anyOf": branches})
    assert list(schema.properties) == ["c", "a", "b", "d"]
    assert schema.properties["a"].types == {"string"}
    assert schema.properties["b"].types == {"integer"}


def test_enums_are_merged_by_value() -> None:
    parts = [{"enum": [1, "a", [1], {"b": 1}]}, {"enum": ["a", {"b": 1}, [2], [1]]}]
    body = {"properties": {"v": {"allOf": parts}}, "required": ["v"]}
    grammar = build_constraint([ToolSpec("act", "", body)], REGISTRY["hermes"]).grammar
    assert '"\\"a\\"" | "[1]" | "{\\"b\\": 1}"' in grammar


@pytest.mark.parametrize("label", ["optional properties", "required properties", "enums that are merged"])
def test_the_work_for_a_grammar_grows_with_the_schema(label: str) -> None:
    def count(n: int) -> int:
        body = hostile.build_schema(label, n)
        return count_calls(lambda: build_constraint([ToolSpec(f"act_{label}", "", body)], REGISTRY["hermes"]))

    assert count(400) < 2.2 * count(200)


def test_a_budget_ends() -> None:
    budget = WorkBudget(3)
    assert [budget.take_amount(), budget.take_amount(2), budget.take_amount()] == [True, True, False]


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def serve(wire: str, body: bytes) -> tuple[Any, list[Repair]]:
    normalized = normalize_request(SERVER_CODECS[wire].decode_request(body).request, ROUTE)
    report = TurnReport()
    report.record_repairs(normalized.repairs)
    report.record_repairs(normalized.repairs)
    return normalized.request, report.repairs


@pytest.mark.parametrize("where", ["schema", "call", "other"])
@pytest.mark.parametrize("wire", hostile.WIRES)
def test_a_body_that_is_too_deep_is_refused_with_a_sentence(wire: str, where: str) -> None:
    for depth in (MAX_BODY_DEPTH, 300, 500, 950, 1_000, DEEP):
        with pytest.raises(RequestError, match=r"nested too deeply: .* at most 128 times") as refused:
            serve(wire, hostile.build_deep_body(wire, depth, where))
        assert refused.value.status == 400


@pytest.mark.parametrize("where", ["schema", "call", "other"])
@pytest.mark.parametrize("wire", hostile.WIRES)
def test_a_body_just_below_the_limit_is_served(wire: str, where: str) -> None:
    body = hostile.build_deep_body(wire, MAX_BODY_DEPTH - 9, where)
    request, _ = at_depth(150, lambda: serve(wire, body))  # type: ignore[misc]
    for consumer in CONSUMERS.values():
        for tool in request.tools:
            at_depth(150, lambda consumer=consumer, tool=tool: consumer(tool.parameters))  # type: ignore[misc]


@pytest.mark.parametrize("label", hostile.REQUESTS)
def test_the_work_for_a_request_grows_with_its_size(label: str) -> None:
    wire = hostile.REQUESTS[label][0]
    bodies = {n: hostile.build_body(label, n) for n in (200, 400)}
    serve(wire, bodies[200])
    work = {n: count_calls(lambda body=body: serve(wire, body)) for n, body in bodies.items()}  # type: ignore[misc]
    assert work[400] < 2.2 * work[200]


def test_each_of_many_results_finds_its_call() -> None:
    request, repairs = serve("openai_chat", hostile.build_body("tool results, the last first", 3_000))
    results = [part for message in request.messages for part in message.parts if hasattr(part, "call_id")]
    assert [(part.call_id, part.content) for part in results] == [
        (f"c{at}", f"result {2_999 - at}") for at in range(3_000)
    ]
    assert not repairs
    joined, _ = serve("openai_chat", hostile.build_body("results of one call", 3_000))
    assert joined.messages[-1].parts[0].content == "\n".join(f"result {at}" for at in range(3_000))
