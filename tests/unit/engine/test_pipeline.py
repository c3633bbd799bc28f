"""A turn over backends that answer, fail, leave calls in errors, refuse tools, or say nothing at all."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from callwright import check_events, collect
from callwright.backends.base import EventStream
from callwright.engine import Engine, TurnReport
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError, RequestError
from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec, Usage
from callwright.prompt.settings import PromptSettings
from callwright.turn import Collected
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake

PING = ToolSpec("ping", parameters={"type": "object", "properties": {}})
PONG = ToolSpec("pong", parameters={"type": "object", "properties": {}})
CALL = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
OTHER = '<tool_call>{"name": "pong", "arguments": {}}</tool_call>'


def said(*texts: str, reason: str = "stop") -> list[Event]:
    return [*map(TextDelta, texts), Finish(reason)]


def request(*tools: ToolSpec, **changes: Any) -> Request:
    return Request("m", (Message("user", (Text("go"),)),), tools, **changes)


def run(
    *backends: Fake, asked: Request | None = None, rules: ToolRules | None = None, **model: Any
) -> tuple[Collected, TurnReport]:
    """One turn to its end."""
    rules = rules or ToolRules()
    names = tuple(backend.settings.name for backend in backends)
    engine = Engine([ModelSettings(name="m", backend=names, **model)], {b.settings.name: b for b in backends}, rules)
    report = TurnReport(wire="openai_chat")
    ask = ClientRequest(request=asked or request(PING), extra={"metadata": {"a": 1}})

    async def collected() -> list[Event]:
        async with aclosing(engine.run_turn(ask, engine.get_route("m"), rules, report)) as turn:
            return [event async for batch in turn for event in batch]

    events = asyncio.run(collected())
    check_events(events)
    return collect(events), report


def names(turn: Collected) -> list[str]:
    return [call.name for call in turn.tool_calls]


def test_a_call_in_the_text_reaches_the_client_as_a_call() -> None:
    turn, report = run(Fake(said("So: ", CALL)))
    assert (turn.text, names(turn), turn.finish_reason) == ("So: ", ["ping"], "tool_calls")
    assert (report.call_names, report.dialect, report.strategy, report.backend) == (["ping"], "hermes", "native", "one")


def test_a_request_without_tools_passes_untouched() -> None:
    turn, report = run(Fake(said(f" {CALL} ")), asked=request())
    assert (turn.text, report.strategy) == (f" {CALL} ", "none")


def test_the_backend_gets_its_own_name_of_the_model_and_the_options() -> None:
    backend = Fake(said("hi"))
    run(backend, asked=request(options={"top_p": 1}), model="real", options={"temperature": 0, "top_p": 0})
    assert backend.asked[0].model == "real"
    assert backend.asked[0].options == {"temperature": 0, "top_p": 1}


def test_fields_of_the_clients_wire_reach_only_a_backend_that_speaks_it() -> None:
    same, other = Fake(said("hi")), Fake(said("hi"), wire="anthropic")
    run(same)
    run(other)
    assert (same.extras, other.extras) == ([{"metadata": {"a": 1}}], [{}])


# ── the choice of the client ─────────────────────────────────────────────────────────────────────


def test_with_tool_choice_none_no_call_goes_out() -> None:
    turn, _ = run(Fake(said("Well. ", CALL)), asked=request(PING, tool_choice="none"))
    assert (turn.text, names(turn), turn.finish_reason) == ("Well. ", [], "stop")


def test_a_named_tool_is_the_only_one_that_is_called() -> None:
    turn, _ = run(Fake(said(CALL, OTHER)), asked=request(PING, PONG, tool_choice="pong"))
    assert names(turn) == ["pong"]


def test_a_required_call_is_asked_for_again_and_the_refused_words_stay_back() -> None:
    backend = Fake(said("I would rather talk."), said(CALL))
    turn, report = run(backend, asked=request(PING, tool_choice="required"))
    assert (turn.text, names(turn)) == ("", ["ping"])
    assert len(report.retries) == 1
    assert "one was required" in backend.asked[1].messages[-1].parts[0].text  # type: ignore[union-attr]


def test_a_required_call_that_never_comes_is_an_error() -> None:
    with pytest.raises(BackendError, match=r"3 attempts.*required"):
        run(Fake(said("No.")), asked=request(PING, tool_choice="required"))


def test_one_call_at_a_time_ends_the_generation_for_real() -> None:
    backend = Fake([TextDelta(CALL), TextDelta(CALL), TextDelta("tail"), Finish("stop")])
    turn, _ = run(backend, asked=request(PING, parallel_tool_calls=False))
    assert (names(turn), turn.finish_reason) == (["ping"], "tool_calls")
    assert backend.closed_early == 1


@pytest.mark.parametrize(
    ("rules", "count", "text"),
    [
        (ToolRules(stop_after_tools=True, stop_after_tools_mode="first"), 1, ""),
        (ToolRules(stop_after_tools=True), 2, ""),
        (ToolRules(suppress_tail_after_tools=True), 3, ""),
        (ToolRules(tool_block_max=2), 2, ""),
        (ToolRules(tool_block_dedup=True), 1, "tail"),
        (ToolRules(enable_parallel_tool_calls=False), 1, ""),
        (ToolRules(), 3, "tail"),
    ],
)
def test_the_stop_rules_hold(rules: ToolRules, count: int, text: str) -> None:
    turn, _ = run(
        Fake([TextDelta(CALL), TextDelta(CALL), TextDelta("tail"), TextDelta(CALL), Finish("stop")]), rules=rules
    )
    assert (len(turn.tool_calls), turn.text, turn.finish_reason) == (count, text, "tool_calls")


def test_calls_are_written_into_the_text_for_clients_that_read_them_there() -> None:
    turn, _ = run(Fake(said(CALL)), rules=ToolRules(output_mode="obsidian-xml"))
    assert names(turn) == ["ping"]
    assert "<use_tool>" in turn.text


# ── answers that will not do ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("empty", [[Finish("stop")], said(" \n"), [ReasoningDelta("Hm."), Finish("stop")]])
@pytest.mark.parametrize("tools", [(), (PING,)])
def test_an_empty_turn_is_asked_for_again(empty: list[Event], tools: tuple[ToolSpec, ...]) -> None:
    turn, report = run(Fake(empty, said("Here.")), asked=request(*tools))
    assert turn.text.strip() == "Here."
    assert len(report.retries) == 1


def test_an_endlessly_empty_model_is_an_error() -> None:
    backend = Fake([Finish("stop")])
    with pytest.raises(BackendError, match="empty"):
        run(backend)
    assert len(backend.asked) == 3


def test_a_turn_cut_by_its_limit_is_not_asked_for_again() -> None:
    turn, report = run(Fake([ReasoningDelta("Hm"), Finish("length")]))
    assert (turn.finish_reason, report.retries) == ("length", [])


def test_a_call_that_cannot_be_read_is_asked_for_again_where_that_is_set() -> None:
    broken = said('<tool_call>{"name": "ping", "arguments": {"a": <<<', reason="stop")
    turn, report = run(Fake(broken, said(CALL)), rules=ToolRules(malformed="retry"))
    assert names(turn) == ["ping"]
    assert report.retries
    assert all(call.complete for call in turn.tool_calls)


def test_a_call_that_cannot_be_read_is_shown_where_that_is_set() -> None:
    turn, _ = run(Fake(said('<tool_call>{"name": "pi')), rules=ToolRules(malformed="show"))
    assert turn.text.endswith('{"name": "pi')


def test_tokens_are_counted_where_the_backend_does_not() -> None:
    counted, _ = run(Fake(said("one two three")))
    reported, _ = run(Fake([TextDelta("x"), UsageSeen(Usage(7, 8)), Finish("stop")]))
    assert counted.usage is not None
    assert 0 < counted.usage.completion_tokens < 10 < counted.usage.prompt_tokens
    assert reported.usage == Usage(7, 8)


def test_tokens_of_every_try_are_counted() -> None:
    empty = [UsageSeen(Usage(10, 0)), Finish("stop")]
    turn, _ = run(Fake(empty, [TextDelta("x"), UsageSeen(Usage(12, 3)), Finish("stop")]))
    assert turn.usage == Usage(22, 3)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────

DOWN = BackendError("connection refused", kind="unavailable", retryable=True)


def test_the_next_backend_answers_when_one_is_down() -> None:
    turn, report = run(Fake(DOWN), Fake(said("Here."), name="two"))
    assert (turn.text, report.backend) == ("Here.", "two")


def test_a_backend_that_is_left_alone_is_tried_last() -> None:
    alone, other = Fake(said("alone")), Fake(said("other"), name="two")
    alone.is_available = False
    assert run(alone, other)[0].text == "other"
    assert run(alone)[0].text == "alone"


def test_a_failure_after_the_first_event_is_not_hidden_by_another_backend() -> None:
    class Dies(Fake):
        async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
            yield [TextDelta("half")]
            raise DOWN

    with pytest.raises(BackendError, match="connection refused"):
        run(Dies(said("")), Fake(said("Here."), name="two"))


def test_a_refused_request_is_not_sent_elsewhere() -> None:
    second = Fake(said("Here."), name="two")
    with pytest.raises(BackendError, match="bad"):
        run(Fake(BackendError("bad request", kind="refused")), second)
    assert not second.asked


def test_a_call_in_a_backends_error_is_recovered() -> None:
    problem = BackendError("Failed to parse input", retryable=True, salvage=f"I will. {CALL}")
    turn, report = run(Fake(problem))
    assert (turn.text, names(turn)) == ("I will. ", ["ping"])
    assert "salvaged_from_error" in [repair.kind for repair in report.repairs]


@pytest.mark.parametrize("half", ['<tool_call>{"name": "pi', '<tool_call>{"name": "ping", "arguments": {"ti'])
def test_an_error_that_quotes_half_a_call_is_asked_again_then_told(half: str) -> None:
    problem = BackendError("Failed to parse input", salvage=half)
    turn, _ = run(Fake(problem, said(CALL)))
    assert names(turn) == ["ping"]
    with pytest.raises(BackendError, match="Failed to parse input"):
        run(Fake(problem))


class Breaking(Fake):
    """A backend that says something and then fails."""

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        self.asked.append(request)
        *events, problem = self._answers
        yield [event for event in events if not isinstance(event, BackendError)]
        raise problem


QUOTING = BackendError("Failed to parse input at pos 9", retryable=True, salvage=CALL)


@pytest.mark.parametrize("before", [TextDelta("I will."), ReasoningDelta("Hm.")])
def test_a_call_in_an_error_is_recovered_after_words_that_the_client_has_heard(before: Event) -> None:
    """llama.cpp quotes from the place where it could not go on: github.com/ggml-org/llama.cpp/issues/24644."""
    turn, report = run(Breaking(before, QUOTING))
    assert (turn.text or turn.reasoning, names(turn), turn.finish_reason) == (before.text, ["ping"], "tool_calls")
    assert "salvaged_from_error" in [repair.kind for repair in report.repairs]


def test_an_error_after_words_that_quotes_no_call_is_told_and_nothing_is_asked_again() -> None:
    backend = Breaking(TextDelta("I will."), BackendError("Failed to parse input", salvage="and more words"))
    with pytest.raises(BackendError, match="Failed to parse input"):
        run(backend)
    assert len(backend.asked) == 1


def test_an_error_after_a_call_has_begun_is_told() -> None:
    backend = Breaking(CallStart(0, "a", "ping"), CallDelta(0, "{"), QUOTING)
    with pytest.raises(BackendError, match="Failed to parse input"):
        run(backend)
    assert len(backend.asked) == 1


# ── what was thought ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("caller", "back"), [("me", True), ("another", False)])
def test_what_was_thought_before_a_call_is_told_with_it_again(caller: str, back: bool) -> None:
    sealed = [ReasoningDelta("Hm."), ReasoningSealed({"signature": "s"})]
    backend = Fake(
        [*sealed, CallStart(0, "a", "ping"), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")], said("x")
    )
    engine = Engine([ModelSettings(name="m")], {"one": backend}, ToolRules())
    first = request(PING)
    answered = (Message("assistant", (ToolCall("a", "ping", "{}"),)), Message("tool", (ToolResult("a", "pong"),)))
    second = Request("m", (*first.messages, *answered), (PING,))

    async def turn(asked: Request, report: TurnReport) -> None:
        async with aclosing(
            engine.run_turn(ClientRequest(request=asked), engine.get_route("m"), ToolRules(), report)
        ) as answer:
            assert [batch async for batch in answer]

    async def turns() -> TurnReport:
        await turn(first, TurnReport(caller="me"))
        report = TurnReport(caller=caller)
        await turn(second, report)
        return report

    report = asyncio.run(turns())
    thought = (Reasoning("Hm.", {"signature": "s"}),) if back else ()
    assert backend.asked[1].messages[1].parts == (*thought, ToolCall("a", "ping", "{}"))
    assert ("restored_reasoning" in [repair.kind for repair in report.repairs]) is back


# ── tools taught ─────────────────────────────────────────────────────────────────────────────────


def test_a_server_without_tools_has_them_taught_and_that_is_remembered() -> None:
    backend = Fake(BackendError("this model does not support tools", kind="refused", code="tools_refused"), said(CALL))
    engine = Engine([ModelSettings(name="m")], {"one": backend}, ToolRules())

    async def turns() -> list[Collected]:
        out = []
        for _ in range(2):
            ask = ClientRequest(request=request(PING))
            async with aclosing(engine.run_turn(ask, engine.get_route("m"), ToolRules(), TurnReport())) as turn:
                out.append(collect([event async for batch in turn for event in batch]))
        return out

    assert [names(turn) for turn in asyncio.run(turns())] == [["ping"], ["ping"]]
    native, *taught = backend.asked
    assert native.tools
    assert len(taught) == 2
    for told in taught:
        assert not told.tools
        assert "ping" in told.messages[0].parts[0].text  # type: ignore[union-attr]


def test_tools_are_not_taught_where_only_native_ones_are_wanted() -> None:
    with pytest.raises(BackendError, match="does not support tools"):
        run(Fake(BackendError("it does not support tools", kind="refused", code="tools_refused")), tools="native")


def test_native_deltas_and_text_calls_make_one_turn() -> None:
    native: list[Event] = [CallStart(0, "call_9", "pong"), CallDelta(0, "{}"), CallEnd(0)]
    turn, _ = run(Fake([TextDelta(CALL), *native, Finish("stop")]), asked=request(PING, PONG))
    assert names(turn) == ["ping", "pong"]
    assert turn.tool_calls[1].id == "call_9"


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_model_is_a_404_that_names_the_nearest() -> None:
    engine = Engine([ModelSettings(name="coder", aliases=("gpt-4o",))], {"one": Fake(said(""))}, ToolRules())
    with pytest.raises(RequestError, match="coder") as caught:
        engine.get_route("codr")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    assert engine.get_route("gpt-4o").upstream == "coder"


def test_a_pattern_takes_every_name_and_passes_it_on() -> None:
    engine = Engine(
        [ModelSettings(name="claude-*"), ModelSettings(name="x", aliases=("gpt-*",))],
        {"one": Fake(said(""))},
        ToolRules(),
    )
    assert engine.get_route("claude-fable").upstream == "claude-fable"
    assert engine.get_route("gpt-9").upstream == "x"
    assert [model.name for model in engine.models] == ["x"]


def test_without_settings_the_backends_models_are_served() -> None:
    engine = Engine([], {"one": Fake(said(""))}, ToolRules())
    route = asyncio.run(engine.find_route("found"))
    assert (route.upstream, route.backends) == ("found", ("one",))
    assert [(model.name, model.context) for model in engine.models] == [("found", 4096)]


def test_pictures_for_a_blind_model_are_refused() -> None:
    picture = Request("m", (Message("user", (Image("data:image/png;base64,AA=="),)),))
    with pytest.raises(RequestError, match="does not accept images"):
        run(Fake(said("")), asked=picture, vision=False)


def test_a_response_format_that_the_wire_lacks_is_refused() -> None:
    with pytest.raises(RequestError, match="response_format"):
        run(Fake(said(""), wire="anthropic"), asked=request(options={"response_format": {"type": "json_object"}}))


def test_rules_of_a_model_come_before_those_of_all() -> None:
    engine = Engine(
        [ModelSettings(name="m", rules={"tool_block_max": 3})], {"one": Fake(said(""))}, ToolRules(max_retries=5)
    )
    assert engine.get_route("m").rules == ToolRules(max_retries=5, tool_block_max=3)


def test_the_taught_prompt_shows_earlier_calls_in_the_same_dialect() -> None:
    backend = Fake(said("ok"))
    run(backend, tools="taught", dialect="hermes")
    text = backend.asked[0].messages[0].parts[0].text  # type: ignore[union-attr]
    assert json.dumps("ping") in text


# ── what the model is told ───────────────────────────────────────────────────────────────────────


def test_what_was_mended_in_the_request_is_reported_once_however_often_the_model_is_asked() -> None:
    call = ToolCall("a", "ping", "{}")
    history = (Message("user", (Text("go"),)), Message("assistant", (call,)), Message("user", (Text("and?"),)))
    backend = Fake(said(""), said("Here."))
    _, report = run(backend, asked=Request("m", history, (PING,)))
    assert [repair.kind for repair in report.repairs] == ["missing_result"]
    assert [message.role for message in backend.asked[0].messages] == ["user", "assistant", "tool", "user"]


def test_a_final_answer_is_text_natively_too() -> None:
    native = [CallStart(0, "x", "final_answer"), CallDelta(0, '{"answer": "Done."}'), CallEnd(0), Finish("tool_calls")]
    backend = Fake(native)
    turn, report = run(backend, prompt={"final_answer": "call"})
    assert (turn.text, turn.tool_calls, turn.finish_reason, report.call_names) == ("Done.", (), "stop", [])
    assert [tool.name for tool in backend.asked[0].tools] == ["ping", "final_answer"]


def test_settings_of_a_model_come_before_those_of_all_in_the_prompt() -> None:
    backend = Fake(said("Hi"))
    engine = Engine(
        [ModelSettings(name="m", prompt={"system": "fold"})],
        {"one": backend},
        ToolRules(),
        prompt=PromptSettings(house_rules="Be kind."),
    )
    prompt = engine.get_route("m").prompt
    assert (prompt.system, prompt.house_rules) == ("fold", "Be kind.")
    assert engine.get_route("m").with_client_prompt({"system": "native"}).prompt.system == "native"
