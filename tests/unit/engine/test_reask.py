"""Asking again: what the model is told, step by step, and which answers are worth it."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from callwright import check_events, collect
from callwright.engine import Engine, TurnReport
from callwright.engine.reask import build_retry_request
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, TextDelta
from callwright.model import Message, Request, Text, ToolSpec
from callwright.turn import Collected
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake

WEATHER = ToolSpec(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
        "required": ["city"],
    },
)
PING = ToolSpec("ping")
ASK = ToolRules(malformed="retry", max_retries=3)
GOOD = '{"city": "Oslo"}'


def request(*tools: ToolSpec, **changes: Any) -> Request:
    return Request("m", (Message("user", (Text("go"),)),), tools or (WEATHER, PING), **changes)


def called(name: str, arguments: str) -> list[Event]:
    return [CallStart(0, "call_1", name), CallDelta(0, arguments), CallEnd(0), Finish("tool_calls")]


def in_text(name: str, arguments: str) -> list[Event]:
    return [TextDelta(f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'), Finish("stop")]


def run(
    backend: Fake, rules: ToolRules = ASK, dialect: str = "hermes", **changes: Any
) -> tuple[list[list[Event]], Collected, TurnReport]:
    engine = Engine([ModelSettings(name="m", dialect=dialect)], {"one": backend}, rules)
    report = TurnReport()

    async def batches() -> list[list[Event]]:
        ask = ClientRequest(request=msgspec.structs.replace(request(), **changes))
        async with aclosing(engine.run_turn(ask, engine.get_route("m"), rules, report)) as turn:
            return [batch async for batch in turn]

    out = asyncio.run(batches())
    events = [event for batch in out for event in batch]
    check_events(events)
    return out, collect(events), report


@pytest.mark.parametrize("say", [called, in_text])
@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("get_weather", "{}", '"city" is a required property'),
        ("get_weather", '{"city": "Oslo", "days": 9}', "days: 9 is greater than the maximum of 7"),
        ("get_wether_forecast", GOOD, "there is no tool 'get_wether_forecast'; the tools are: get_weather, ping"),
    ],
)
def test_a_call_that_does_not_fit_is_asked_for_again_and_nothing_of_it_goes_out(
    say: Any, name: str, arguments: str, complaint: str
) -> None:
    backend = Fake(say(name, arguments), say("get_weather", GOOD))
    _, turn, report = run(backend)
    assert [(call.name, json.loads(call.arguments)) for call in turn.tool_calls] == [("get_weather", {"city": "Oslo"})]
    assert turn.text == ""
    assert complaint in backend.asked[1].messages[-1].parts[0].text  # type: ignore[union-attr]
    [why] = report.retries
    assert complaint in why
    assert "a message about the problem" in why


def test_what_can_be_mended_is_not_asked_for_again() -> None:
    _, turn, report = run(Fake(called("get_weather", '{"city": "Oslo", "days": "3"}')))
    assert json.loads(turn.tool_calls[0].arguments) == {"city": "Oslo", "days": 3}
    assert not report.retries


def test_without_the_setting_calls_stream_and_go_out_as_they_are() -> None:
    pieces: list[Event] = [CallStart(0, "call_1", "get_weather"), CallDelta(0, '{"city": "Os'), CallDelta(0, 'lo"}')]
    batches, turn, report = run(Fake([*pieces, CallEnd(0), Finish("tool_calls")]), ToolRules())
    assert len([batch for batch in batches if any(isinstance(event, CallDelta) for event in batch)]) > 1
    _, turn, report = run(Fake(called("get_weather", "{}")), ToolRules())
    assert (turn.tool_calls[0].arguments, report.retries) == ("{}", [])


def test_a_call_that_went_out_is_never_asked_for_again() -> None:
    both = [*called("get_weather", GOOD)[:-1], CallStart(1, "call_2", "ping"), CallDelta(1, "[1"), CallEnd(1)]
    backend = Fake([*both, Finish("tool_calls")])
    _, turn, report = run(backend)
    assert [call.name for call in turn.tool_calls] == ["get_weather"]
    assert (len(backend.asked), report.retries) == (1, [])


def test_a_model_that_never_gets_it_right_is_told_ever_more_and_then_it_is_an_error() -> None:
    backend = Fake(called("get_weather", "{}"))
    with pytest.raises(BackendError, match=r"4 attempts.*required property"):
        run(backend, options={"temperature": 0, "seed": 5})
    choices = [each.tool_choice for each in backend.asked]
    assert choices == ["auto", "auto", "get_weather", "get_weather"]
    assert [each.options["temperature"] for each in backend.asked] == [0, 0, 0, 0.8]
    assert [each.options["seed"] for each in backend.asked] == [5, 5, 5, 8]
    assert [len(each.messages) for each in backend.asked] == [1, 2, 2, 2]


def test_a_model_that_then_answers_in_words_may_where_no_call_is_required() -> None:
    words: list[Event] = [TextDelta("I cannot."), Finish("stop")]
    _, turn, report = run(Fake(called("get_weather", "{}"), called("get_weather", "{}"), words))
    assert (turn.text, turn.finish_reason, len(report.retries)) == ("I cannot.", "stop", 2)


def test_no_more_is_asked_than_the_budget_allows() -> None:
    backend = Fake(called("get_weather", "{}"))
    with pytest.raises(BackendError, match="in one attempt"):
        run(backend, ToolRules(malformed="retry", max_retries=0))
    assert len(backend.asked) == 1


# ── without the setting ──────────────────────────────────────────────────────────────────────────

UNREADABLE: list[Event] = [
    TextDelta('<tool_call>{"name": "get_weather", "arguments": Oslo}</tool_call>'),
    Finish("stop"),
]
STRANGER = called("forecast", GOOD)
WELL = called("get_weather", GOOD)


@pytest.mark.parametrize("dialect", ["hermes", "auto"])
@pytest.mark.parametrize("bad", [UNREADABLE, STRANGER], ids=["unreadable", "unknown tool"])
def test_a_call_of_which_nothing_went_out_is_asked_for_again(bad: list[Event], dialect: str) -> None:
    backend = Fake(bad, WELL)
    _, turn, report = run(backend, ToolRules(), dialect=dialect)
    assert ([call.name for call in turn.tool_calls], turn.text) == (["get_weather"], "")
    assert len(report.retries) == 1
    assert "cannot be used" in backend.asked[1].messages[-1].parts[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", [UNREADABLE, STRANGER], ids=["unreadable", "unknown tool"])
def test_words_before_it_went_out_once_and_the_model_is_told_what_was_read(bad: list[Event]) -> None:
    backend = Fake([TextDelta("Let me look. "), *bad], [TextDelta("Once more."), *WELL])
    _, turn, _ = run(backend, ToolRules())
    assert (turn.text, [call.name for call in turn.tool_calls]) == ("Let me look. Once more.", ["get_weather"])
    *_, said, word = backend.asked[1].messages
    assert said == Message("assistant", (Text("Let me look. "),))
    assert "repeat nothing" in word.parts[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("bad", "text", "calls"),
    [(UNREADABLE, UNREADABLE[0].text, []), (STRANGER, "", ["forecast"])],  # type: ignore[union-attr]
    ids=["unreadable", "unknown tool"],
)
def test_the_last_answer_of_the_budget_is_taken_as_it_is(bad: list[Event], text: str, calls: list[str]) -> None:
    for budget in (0, 2):
        backend = Fake(bad)
        _, turn, report = run(backend, ToolRules(max_retries=budget))
        assert (turn.text, [call.name for call in turn.tool_calls]) == (text, calls)
        assert len(backend.asked) == len(report.retries) + 1 == budget + 1


def test_an_answer_that_will_not_do_is_not_heard_to_its_end() -> None:
    backend = Fake([*STRANGER[:1], *([TextDelta("and so on ")] * 50), Finish("stop")], WELL)
    _, turn, _ = run(backend, ToolRules())
    assert (turn.text, backend.closed_early) == ("", 1)


@pytest.mark.parametrize(
    ("answer", "rules", "changes"),
    [
        ([TextDelta("The tag <tool_call> opens a call."), Finish("stop")], {}, {}),
        ([TextDelta('Hm. <tool_call>{"name": "get_weather"'), Finish("length")], {"truncated": "drop"}, {}),
        (UNREADABLE, {"malformed": "show"}, {}),
        (STRANGER, {"unknown_tool": "pass"}, {}),
        ([*WELL[:-1], CallStart(1, "b", "forecast"), CallDelta(1, "{}"), CallEnd(1), Finish("tool_calls")], {}, {}),
        ([TextDelta("No call."), *STRANGER], {}, {"tool_choice": "none"}),
        (UNREADABLE, {}, {"tools": ()}),
    ],
    ids=["prose", "cut by a limit", "shown", "passed on", "after a call", "no call allowed", "no tools"],
)
def test_what_cannot_be_had_better_is_not_asked_for_again(
    answer: list[Event], rules: dict[str, Any], changes: dict[str, Any]
) -> None:
    backend = Fake(answer)
    run(backend, ToolRules(**rules), **changes)
    assert len(backend.asked) == 1


# ── the steps ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tools", "choice", "tried", "pinned"),
    [
        ((WEATHER, PING), "auto", "ping", "ping"),
        ((WEATHER, PING), "auto", "nobody", "required"),
        ((WEATHER, PING), "auto", "", "required"),
        ((WEATHER,), "required", "", "get_weather"),
        ((WEATHER, PING), "ping", "get_weather", "ping"),
        ((WEATHER, PING), "none", "ping", "none"),
        ((WEATHER, PING), "auto", None, "auto"),
    ],
)
def test_the_second_time_a_call_is_pinned(
    tools: tuple[ToolSpec, ...], choice: str, tried: str | None, pinned: str
) -> None:
    asked = request(*tools, tool_choice=choice)
    assert build_retry_request(asked, "it is wrong", 1, tool=tried)[0].tool_choice == choice
    assert build_retry_request(asked, "it is wrong", 2, tool=tried)[0].tool_choice == pinned


@pytest.mark.parametrize(("before", "after"), [({}, 0.2), ({"temperature": 1}, 0.2), ({"temperature": 0.1}, 0.8)])
def test_what_was_empty_twice_is_sampled_in_another_way(before: dict[str, Any], after: float) -> None:
    asked = request(options=before)
    assert build_retry_request(asked, "it is empty", 1)[0].options == before
    told, how = build_retry_request(asked, "it is empty", 2)
    assert told.options["temperature"] == after
    assert how == f"with a message about the problem, temperature {after}"
