"""A final answer reaches the client as text, as it is written, whatever the cuts."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callwright import check_events, collect
from callwright.dialects import REGISTRY
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta
from callwright.guard.final_answer import FinalAnswerAsText
from callwright.model import ToolCall, ToolSpec
from callwright.parser import Parser
from callwright.prompt.final_answer_tool import FINAL_ANSWER_TOOL, add_final_answer_tool, get_final_answer_mode
from callwright.prompt.settings import PromptSettings
from tests.unit.prompt.telling import decoded, user

TOOL = ToolSpec("read_file", parameters={"type": "object", "properties": {"path": {"type": "string"}}})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def staged(*batches: list[Event], calls: bool = True) -> list[Event]:
    stage = FinalAnswerAsText(calls=calls)
    events = [event for batch in batches for event in stage.feed(batch)]
    check_events(events)
    return events


def call(index: int, name: str, arguments: str, size: int = 1000) -> list[Event]:
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    return [
        CallStart(index, f"id_{index}", name),
        *(CallDelta(index, piece) for piece in pieces),
        CallEnd(index),
    ]


@given(TEXT, st.integers(1, 7), st.booleans())
@example('😀 \ud7ff\ue000 \\ " \n', 1, True)
def test_the_answer_of_a_call_is_the_text(answer: str, size: int, ascii_only: bool) -> None:
    arguments = json.dumps({"why": {"a": [1, "}"]}, "answer": answer, "more": "x"}, ensure_ascii=ascii_only)
    turn = collect(staged([*call(0, "final_answer", arguments, size), Finish("tool_calls")]))
    assert (turn.text, turn.tool_calls, turn.finish_reason) == (answer, (), "stop")


def test_the_answer_goes_out_while_it_is_written() -> None:
    stage = FinalAnswerAsText(calls=True)
    assert stage.feed([CallStart(0, "a", "final_answer"), CallDelta(0, '{"answer": "It is')]) == [TextDelta("It is")]
    assert stage.feed([CallDelta(0, " d\\u006f")]) == [TextDelta(" do")]
    assert stage.feed([CallDelta(0, 'ne"}'), CallEnd(0)]) == [TextDelta("ne")]


@pytest.mark.parametrize("arguments", ["{}", '{"text": "x"}', '{"answer": 3}'])
def test_arguments_without_an_answer_are_shown_as_they_are(arguments: str) -> None:
    assert collect(staged([*call(0, "final_answer", arguments), Finish("tool_calls")])).text == arguments


def test_an_answer_that_was_cut_is_shown_as_far_as_it_came() -> None:
    cut = [CallStart(0, "a", "final_answer"), CallDelta(0, '{"answer": "It is \\ud83d'), CallEnd(0, complete=False)]
    turn = collect(staged([*cut, Finish("length")]))
    assert (turn.text.rstrip("\ufffd"), turn.finish_reason) == ("It is ", "length")


def test_halves_of_characters_never_reach_a_client() -> None:
    turn = collect(staged([*call(0, "final_answer", '{"answer": "a\\ud83db\\udc00c\\ud83d\\n"}', 1), Finish("stop")]))
    assert turn.text == "a\ufffdb\ufffdc\ufffd\n"


def test_calls_beside_the_answer_are_kept_and_numbered_without_it() -> None:
    events = staged(
        [
            *call(0, "final_answer", '{"answer": "First."}'),
            *call(1, "read_file", '{"path": "a"}'),
            *call(2, "final_answer", '{"answer": "Second."}'),
            *call(3, "read_file", '{"path": "b"}'),
            Finish("tool_calls"),
        ]
    )
    turn = collect(events)
    assert [one.arguments for one in turn.tool_calls] == ['{"path": "a"}', '{"path": "b"}']
    assert (turn.text, turn.finish_reason) == ("First.Second.", "tool_calls")


def test_without_calls_a_call_of_that_name_is_the_clients() -> None:
    events = [*call(0, "final_answer", '{"answer": "x"}'), Finish("tool_calls")]
    assert staged(events, calls=False) == events


@given(st.lists(st.integers(1, 5), max_size=30))
def test_tags_are_taken_off_under_any_cuts(sizes: list[int]) -> None:
    text = "Well, a <b> and <final_\n<final_answer>\nIt is <i>done</i>.\n</final_answer> Bye <final_answe"
    pieces, at = [], 0
    for size in [*sizes, len(text)]:
        pieces.append(text[at : at + size])
        at += size
    turn = collect(staged(*([TextDelta(piece)] for piece in pieces if piece), [Finish("stop")]))
    assert turn.text == "Well, a <b> and <final_\nIt is <i>done</i>. Bye <final_answe"


def test_what_is_held_back_comes_before_what_follows() -> None:
    events = staged([TextDelta("a <final"), ReasoningDelta("hm"), TextDelta("_answer>"), Finish("stop")])
    assert events == [TextDelta("a "), TextDelta("<final"), ReasoningDelta("hm"), TextDelta("_answer>"), Finish("stop")]


@pytest.mark.parametrize("name", ["invoke", "hermes", "harmony", "qwen3_coder", "use_tool"])
def test_in_a_dialect_the_answer_is_read_like_any_call(name: str) -> None:
    dialect = REGISTRY[name]
    parser = Parser(dialect, [TOOL, FINAL_ANSWER_TOOL])
    text = dialect.render_call(ToolCall("call_1", "final_answer", json.dumps({"answer": "All\nis <done>."})))
    turn = collect(staged(parser.feed(text), parser.close()))
    assert (turn.text, turn.tool_calls, turn.finish_reason) == ("All\nis <done>.", (), "stop")


@pytest.mark.parametrize(
    ("setting", "body", "offered", "way"),
    [
        ("call", {}, True, "call"),
        ("tag", {}, False, "tag"),
        ("off", {}, False, "off"),
        ("call", {"tools": []}, False, "off"),
        ("tag", {"tools": []}, False, "off"),
        ("call", {"tool_choice": "required"}, False, "off"),
        ("call", {"tools": [{"type": "function", "function": {"name": "final_answer"}}]}, False, "off"),
    ],
)
def test_the_tool_is_offered_where_it_makes_sense(
    setting: str, body: dict[str, object], offered: bool, way: str
) -> None:
    settings = PromptSettings(final_answer=setting)
    request = add_final_answer_tool(decoded(user("Hi"), **body), settings)
    assert (FINAL_ANSWER_TOOL in request.tools) is offered
    assert get_final_answer_mode(request, settings) == way
    assert add_final_answer_tool(request, settings) == request
