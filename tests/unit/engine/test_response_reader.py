"""Whatever mixture of text, reasoning and native calls a backend sends, it is read as one legal turn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright import Parser, check_events, collect, get_dialect
from callwright.engine.response_reader import PassThroughReader, ResponseReader
from callwright.errors import BackendError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.ids import make_sequential_ids
from callwright.model import Reasoning, ToolSpec, Usage
from callwright.turn import Collected

TOOLS = (
    ToolSpec(
        "read_file", parameters={"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
    ),
    ToolSpec("ping"),
)
HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'


def listen(*heard: Event, name: str = "auto", finish: str = "stop", **options: bool) -> Collected:
    """The turn that the events come to, each heard by itself; what comes out is checked against the grammar."""
    listener = ResponseReader(Parser(get_dialect(name), TOOLS, ids=make_sequential_ids()), TOOLS, **options)
    events = [out for event in (*heard, Finish(finish)) for out in listener.feed([event])]
    check_events(events)
    return collect(events)


def native(index: int, name: str, arguments: str, call_id: str = "", *, end: bool = True) -> list[Event]:
    pieces = [CallDelta(index, arguments[at : at + 3]) for at in range(0, len(arguments), 3)]
    return [CallStart(index, call_id, name), *pieces, *([CallEnd(index)] if end else [])]


def names(turn: Collected) -> list[str]:
    return [call.name for call in turn.tool_calls]


def test_a_call_written_as_text_is_a_call() -> None:
    turn = listen(TextDelta("Reading. "), TextDelta(HERMES[:20]), TextDelta(HERMES[20:]))
    assert (turn.text, names(turn), turn.finish_reason) == ("Reading. ", ["read_file"], "tool_calls")


def test_a_native_call_is_typed_by_its_schema() -> None:
    turn = listen(*native(0, "read_file", '{"path": "a", "n": "3"}', "call_x"))
    assert json.loads(turn.tool_calls[0].arguments) == {"path": "a", "n": 3}
    assert turn.tool_calls[0].id == "call_x"
    assert turn.repairs


def test_interleaved_native_calls_come_one_after_the_other() -> None:
    turn = listen(
        CallStart(0, "", "read_file"),
        CallStart(1, "", "ping"),
        CallDelta(0, '{"path"'),
        CallDelta(1, "{}"),
        CallDelta(0, ': "b"}'),
        CallEnd(0),
        CallEnd(1),
    )
    assert [(call.name, json.loads(call.arguments)) for call in turn.tool_calls] == [
        ("read_file", {"path": "b"}),
        ("ping", {}),
    ]


def test_text_in_the_middle_of_a_native_call_comes_after_it() -> None:
    turn = listen(
        CallStart(0, "", "read_file"),
        CallDelta(0, '{"path": '),
        TextDelta("meanwhile"),
        CallDelta(0, '"a"}'),
        CallEnd(0),
    )
    assert turn.text == "meanwhile"
    assert json.loads(turn.tool_calls[0].arguments) == {"path": "a"}


def test_a_seal_stands_where_the_server_put_it_and_after_a_call_that_is_open() -> None:
    seals = [ReasoningSealed({"signature": str(number)}) for number in range(2)]
    heard = [TextDelta("<tool"), ReasoningDelta("hm"), seals[0], *native(0, "ping", "{}", end=False), seals[1]]
    turn = listen(*heard)
    assert turn.text == "<tool"
    assert turn.thoughts == (Reasoning("hm", {"signature": "0"}), Reasoning("", {"signature": "1"}))


def test_endless_text_in_the_middle_of_a_native_call_is_an_error() -> None:
    listener = ResponseReader(Parser(get_dialect("auto"), TOOLS), TOOLS)
    listener.feed([CallStart(0, "", "read_file"), CallDelta(0, '{"path": ')])
    with pytest.raises(BackendError, match="inside a tool call"):
        listener.feed([TextDelta("x" * 1_000_000)] * 40)


def test_half_a_marker_before_a_native_call_is_text() -> None:
    turn = listen(TextDelta("so <tool_ca"), *native(0, "ping", "{}"))
    assert (turn.text, names(turn)) == ("so <tool_ca", ["ping"])


def test_a_call_sent_as_text_and_natively_counts_once() -> None:
    turn = listen(TextDelta(HERMES), *native(0, "read_file", '{"path":"a"}'))
    assert names(turn) == ["read_file"]
    assert "repeated_call" in [repair.kind for repair in turn.repairs]


def test_a_native_call_beside_another_one_in_the_text_counts_too() -> None:
    turn = listen(TextDelta(HERMES), *native(0, "read_file", '{"path": "b"}'), *native(1, "ping", "", end=False))
    assert [json.loads(call.arguments or "{}") for call in turn.tool_calls] == [{"path": "a"}, {"path": "b"}, {}]


@pytest.mark.parametrize("said", ["Read_File", "read-file", "functions.read_file", " readFile "])
def test_an_almost_right_name_is_taken_for_the_offered_one(said: str) -> None:
    turn = listen(*native(0, said, '{"path": "a"}'))
    assert names(turn) == ["read_file"]
    assert [repair.kind for repair in turn.repairs] == ["renamed_tool"]


@pytest.mark.parametrize("said", ["{}<|channel|>commentary", "functions.{}<|channel|>json", "{} <|constrain|>json"])
@pytest.mark.parametrize("family", ["auto", "harmony", "hermes"])
def test_what_a_server_left_of_gpt_oss_headers_is_no_part_of_a_name(said: str, family: str) -> None:
    turn = listen(*native(0, said.format("read_file"), '{"path": "a"}'), name=family)
    assert names(turn) == ["read_file"]
    assert [repair.kind for repair in turn.repairs] == ["renamed_tool"]


def test_a_type_that_is_glued_to_a_name_is_none_of_it_in_harmony_alone() -> None:
    call = native(0, "read_filejson", '{"path": "a"}')
    assert names(listen(*call, name="harmony")) == ["read_file"]
    assert names(listen(*call)) == ["read_filejson"]


def test_a_name_that_no_tool_has_is_passed_on() -> None:
    # Clients answer it with an error for the model, which then recovers: every agent in reference tests did.
    assert names(listen(*native(0, "no_such_tool", "{}"))) == ["no_such_tool"]


def test_two_tools_of_the_same_sound_are_not_guessed_between() -> None:
    tools = (ToolSpec("readFile"), ToolSpec("read_file"))
    listener = ResponseReader(Parser(get_dialect("auto"), tools), tools)
    events = [out for event in (*native(0, "READFILE", "{}"), Finish("stop")) for out in listener.feed([event])]
    assert names(collect(events)) == ["READFILE"]


def test_a_call_made_while_thinking_is_recovered_when_there_is_nothing_else() -> None:
    turn = listen(ReasoningDelta("I should read it. "), ReasoningDelta(HERMES))
    assert names(turn) == ["read_file"]
    assert turn.finish_reason == "tool_calls"
    assert "call_in_reasoning" in [repair.kind for repair in turn.repairs]


def test_a_call_that_was_only_thought_about_is_none() -> None:
    assert not listen(ReasoningDelta(HERMES), TextDelta("No need for it.")).tool_calls
    assert not listen(ReasoningDelta(HERMES), reasoning_calls=False).tool_calls
    assert names(listen(ReasoningDelta(HERMES), *native(0, "ping", "{}"))) == ["ping"]


def test_a_native_call_cut_by_the_token_limit_is_incomplete() -> None:
    for cut in ("", '{"path": "a'):
        turn = listen(*native(0, "read_file", cut, end=False), finish="length")
        assert not turn.tool_calls[0].complete
        assert turn.finish_reason == "length"


def test_a_native_call_without_arguments_has_an_empty_object() -> None:
    assert listen(*native(0, "ping", "")).tool_calls[0].arguments == "{}"


def test_usage_and_what_is_malformed_already_pass() -> None:
    turn = listen(UsageSeen(Usage(3, 4)), Malformed("half", "cut"), TextDelta("ok"))
    assert turn.usage == Usage(3, 4)
    assert [one.raw for one in turn.malformed] == ["half"]


def test_without_tools_everything_passes_untouched() -> None:
    text = f"  \n{HERMES}<think>x</think>  "
    heard: list[Event] = [TextDelta(text), CallStart(0, "", "ping"), CallEnd(0), Finish("tool_calls")]
    turn = collect(PassThroughReader().feed(heard))
    assert (turn.text, turn.tool_calls, turn.finish_reason) == (text, (), "stop")


def mixtures() -> st.SearchStrategy[list[Event]]:
    words = st.sampled_from(
        [HERMES, HERMES[:17], "hello ", "<think>", "</think>", "<tool_call>", " ", '{"name": "ping"}', "`"]
    )
    index = st.integers(0, 2)
    return st.lists(
        st.one_of(
            words.map(TextDelta),
            words.map(ReasoningDelta),
            st.builds(
                CallStart, index, st.sampled_from(["", "a", "b"]), st.sampled_from(["ping", "read_file", "other"])
            ),
            st.builds(CallDelta, index, st.sampled_from(['{"path"', ': "a"}', "{}", "nonsense"])),
            st.builds(CallEnd, index),
        ),
        max_size=12,
    )


@given(heard=mixtures(), reason=st.sampled_from(["stop", "tool_calls", "length", "error"]))
def test_any_mixture_comes_out_legal_and_loses_no_word(heard: Iterable[Event], reason: str) -> None:
    heard = list(heard)
    turn = listen(*heard, finish=reason)
    if not any(isinstance(event, CallStart | CallDelta) for event in heard):
        return
    said = "".join(event.text for event in heard if isinstance(event, TextDelta))
    if "<" not in said and "{" not in said:
        assert turn.text.split() == said.split()


# ── a dialect that frames all that is said ───────────────────────────────────────────────────────

LEAKED = (
    "Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>"
    'commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a"}<|call|>'
)


@given(st.lists(st.integers(0, len(LEAKED))))
def test_the_rest_of_a_turn_that_was_left_in_the_reasoning_is_read_however_it_is_cut(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(LEAKED)]
    pieces = [ReasoningDelta(LEAKED[a:b]) for a, b in pairwise(ends) if a < b]
    turn = listen(*pieces, name="harmony")
    assert (turn.reasoning, turn.text, names(turn)) == ("Hm.", "Let me look.", ["read_file"])
    assert turn.finish_reason == "tool_calls"


def test_calls_in_framed_reasoning_can_be_left_alone() -> None:
    turn = listen(ReasoningDelta(LEAKED), name="harmony", reasoning_calls=False)
    assert (turn.reasoning, turn.text, names(turn)) == (LEAKED, "", [])


def test_reasoning_and_text_in_turns_keep_their_order_and_their_kind() -> None:
    said = [ReasoningDelta("One. "), TextDelta("Two. "), ReasoningDelta("Three. "), ReasoningSealed({"s": 1})]
    turn = listen(*said, TextDelta("<|channel|>final<|message|>Four."), name="harmony")
    assert (turn.reasoning, turn.text) == ("One. Three. ", "Two. Four.")
    assert turn.thoughts[-1].opaque == {"s": 1}


MARKERS = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>"]
FRAMED = st.sampled_from([*MARKERS, "assistant", "final", "analysis", "json", " to=functions.ping ", "Hm. ", "{}"])


@given(st.lists(st.tuples(st.booleans(), FRAMED) | st.just(None), max_size=12))
def test_any_mixture_in_a_frame_comes_out_legal(pieces: list[tuple[bool, str] | None]) -> None:
    heard: list[Event] = []
    for index, piece in enumerate(pieces):
        if piece is None:
            heard += native(index, "ping", "{}")
        else:
            heard.append((TextDelta if piece[0] else ReasoningDelta)(piece[1]))
    listen(*heard, name="harmony")
