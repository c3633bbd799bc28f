"""Which way a model gets its tools, what a backend is told then, and what is remembered of its refusals."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from callwright import check_events, collect
from callwright.backends.base import ModelInfo
from callwright.engine import Engine, TurnReport
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.strategy import ModelCapabilities, choose_strategy
from callwright.errors import BackendError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Message, Request, Text, ToolCall, ToolSpec
from callwright.turn import Collected
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake
from tests.support.gbnf import Grammar

PING = ToolSpec("ping", parameters={"type": "object", "properties": {}})
PONG = ToolSpec("pong", parameters={"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]})
CALL = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
NO_TOOLS = BackendError("this model does not support tools", kind="refused", code="tools_refused", status=400)
NO_FORM = BackendError("failed to parse grammar", kind="refused", status=400)


def request(*tools: ToolSpec, **changes: Any) -> Request:
    return Request("m", (Message("user", (Text("go"),)),), tools, **changes)


@pytest.mark.parametrize(
    ("wanted", "able", "strategy"),
    [
        ("auto", ModelCapabilities(supports_tools=True), "none"),
        ("auto", ModelCapabilities(supports_tools=False), "taught"),
        ("auto", ModelCapabilities(kind="conversation"), "taught"),
        ("auto", ModelCapabilities(kind="harmony"), "none"),
        ("native", ModelCapabilities(supports_tools=False), "none"),
        ("taught", ModelCapabilities(supports_tools=True), "taught"),
        ("constrained", ModelCapabilities(supports_tools=True), "taught"),
    ],
)
def test_without_tools_earlier_calls_are_told_as_they_were_with_them(
    wanted: Any, able: ModelCapabilities, strategy: str
) -> None:
    called = Message("assistant", (ToolCall("call_1", "ping", "{}"),))
    assert choose_strategy(wanted, Request("m", (called,)), able)[0] == strategy
    assert choose_strategy(wanted, request(), able)[0] == "none", "nothing was called"


def said(*texts: str) -> list[Event]:
    return [*map(TextDelta, texts), Finish("stop")]


def turns(backend: Fake, count: int = 1, *, tools: str = "auto", **changes: Any) -> list[tuple[Collected, TurnReport]]:
    """Turns of one engine, one after the other."""
    engine = Engine([ModelSettings(name="m", tools=tools)], {"one": backend}, ToolRules())  # type: ignore[arg-type]

    async def run() -> list[tuple[Collected, TurnReport]]:
        await engine.refresh_models()
        out = []
        for _ in range(count):
            report = TurnReport()
            ask = ClientRequest(request=request(PING, PONG, **changes))
            async with aclosing(engine.run_turn(ask, engine.get_route("m"), ToolRules(), report)) as turn:
                events = [event async for batch in turn for event in batch]
            check_events(events)
            out.append((collect(events), report))
        return out

    return asyncio.run(run())


can = ModelCapabilities


@pytest.mark.parametrize(
    ("wanted", "able", "changes", "strategy", "why"),
    [
        ("auto", can(), {}, "native", "not known to lack"),
        ("auto", can(supports_tools=True, flavour="llamacpp"), {}, "native", "supports tools"),
        ("auto", can(supports_tools=False), {}, "taught", "does not support tools, and the backend is not known"),
        ("auto", can(supports_tools=False, flavour="ollama"), {}, "constrained", "does not support tools"),
        ("auto", can(kind="completions", flavour="vllm"), {}, "constrained", "only continues text"),
        ("auto", can(flavour="vllm", refused_strategies=frozenset({"native"})), {}, "constrained", "refused tools"),
        ("auto", can(flavour="vllm", refused_strategies=frozenset({"native", "constrained"})), {}, "taught", "refused"),
        ("auto", can(supports_tools=False, flavour="vllm"), {"tool_choice": "none"}, "taught", "tool_choice is none"),
        ("auto", can(supports_tools=False, flavour="vllm"), {"options": {"response_format": {}}}, "taught", "its own"),
        ("constrained", can(supports_tools=True, flavour="vllm"), {}, "constrained", "settings"),
        ("constrained", can(supports_tools=True), {}, "taught", "settings select constrained, but the backend is not"),
        ("native", can(supports_tools=False), {}, "native", "settings"),
        ("taught", can(supports_tools=True), {}, "taught", "settings"),
    ],
)  # fmt: skip
def test_the_best_way_that_is_open_is_taken_and_explained(
    wanted: Any, able: ModelCapabilities, changes: dict[str, Any], strategy: str, why: str
) -> None:
    chosen, reason = choose_strategy(wanted, request(PING, **changes), able)
    assert chosen == strategy
    assert why in reason


def test_a_call_that_did_not_come_is_constrained_the_next_time() -> None:
    able = ModelCapabilities(supports_tools=True, flavour="ollama")
    assert choose_strategy("auto", request(PING, tool_choice="required"), able, failed=True)[0] == "constrained"
    assert choose_strategy("auto", request(PING), able, failed=True)[0] == "native"
    assert (
        choose_strategy("auto", request(PING, tool_choice="required"), ModelCapabilities(), failed=True)[0] == "native"
    )


@pytest.mark.parametrize("wanted", ["auto", "native", "constrained", "taught"])
def test_harmony_has_one_way(wanted: Any) -> None:
    able = ModelCapabilities(kind="harmony", supports_tools=False, flavour="vllm")
    assert choose_strategy(wanted, request(PING), able, failed=True)[0] == "native"


def test_a_request_without_tools_needs_no_way() -> None:
    assert choose_strategy("constrained", request(), ModelCapabilities(flavour="vllm"))[0] == "none"


def test_a_server_with_grammars_gets_one_in_the_dialect_that_the_model_was_taught() -> None:
    backend = Fake(said("So: ", CALL), flavour="llamacpp")
    [(turn, report)] = turns(backend, tools="constrained")
    assert (turn.text, [call.name for call in turn.tool_calls]) == ("So: ", ["ping"])
    assert (report.strategy, report.strategy_reason) == ("constrained", "the settings select it")
    [told] = backend.asked
    assert not told.tools
    assert "<tool_call>" in told.messages[0].parts[0].text  # type: ignore[union-attr]
    assert told.constraint is not None
    assert Grammar.of(told.constraint.grammar).accepts(f"So: {CALL}")


def test_a_server_with_schemas_answers_in_one_object_and_its_words_reach_the_client() -> None:
    backend = Fake(
        said('{"answer": "It is ', 'sunny."}'), said('{"name": "pong", "arguments": {"to": "me"}}'), flavour="ollama"
    )
    (words, _), (call, _) = turns(backend, 2, tools="constrained")
    assert (words.text, words.tool_calls, words.finish_reason) == ("It is sunny.", (), "stop")
    assert [(each.name, json.loads(each.arguments)) for each in call.tool_calls] == [("pong", {"to": "me"})]
    assert (call.text, call.finish_reason) == ("", "tool_calls")
    assert '{"answer": "..."}' in backend.asked[0].messages[0].parts[0].text  # type: ignore[union-attr]


def test_one_call_at_a_time_is_one_call_in_the_grammar() -> None:
    backend = Fake(said(CALL), flavour="vllm")
    turns(backend, tools="constrained", parallel_tool_calls=False, tool_choice="required")
    assert backend.asked[0].constraint is not None
    grammar = Grammar.of(backend.asked[0].constraint.grammar)
    assert grammar.accepts(CALL)
    assert not grammar.accepts(f"{CALL}\n{CALL}")


def test_a_server_that_refuses_tools_is_asked_in_a_form_and_that_is_remembered() -> None:
    backend = Fake(NO_TOOLS, said(CALL), flavour="llamacpp")
    reports = [report for _, report in turns(backend, 2)]
    assert [report.strategy for report in reports] == ["constrained", "constrained"]
    assert [bool(each.tools) for each in backend.asked] == [True, False, False]


def test_a_server_that_refuses_the_form_is_taught_and_that_is_remembered() -> None:
    backend = Fake(NO_FORM, said(CALL), flavour="openai")
    reports = [report for _, report in turns(backend, 2, tools="constrained")]
    assert [report.strategy for report in reports] == ["taught", "taught"]
    assert "refused the constraint" in reports[1].strategy_reason
    assert [each.constraint is not None for each in backend.asked] == [True, False, False]


def test_a_refusal_that_has_nothing_to_do_with_the_form_is_told_and_not_remembered() -> None:
    too_long = BackendError("the prompt is too long", kind="refused", status=400)
    backend = Fake(too_long, too_long, said(CALL), flavour="vllm")
    engine = Engine([ModelSettings(name="m", tools="constrained")], {"one": backend}, ToolRules())

    async def run(report: TurnReport) -> None:
        async with aclosing(
            engine.run_turn(ClientRequest(request=request(PING)), engine.get_route("m"), ToolRules(), report)
        ) as turn:
            async for _ in turn:
                pass

    with pytest.raises(BackendError, match="too long"):
        asyncio.run(run(TurnReport()))
    asyncio.run(run(report := TurnReport()))
    assert report.strategy == "constrained"


def test_what_the_backend_says_of_the_model_decides() -> None:
    class Blind(Fake):
        async def list_models(self) -> tuple[ModelInfo, ...]:
            return (ModelInfo(name="m", tools=False),)

    [(_, report)] = turns(Blind(said(CALL), flavour="llamacpp"))
    assert report.strategy == "constrained"
    assert report.strategy_reason == "the model does not support tools"


@pytest.mark.parametrize(("diet", "strings"), [({}, 120), ({"terse": False}, None)])
def test_a_family_that_finds_no_end_is_held_to_one_unless_the_settings_say_otherwise(
    diet: dict[str, Any], strings: int | None
) -> None:
    backend = Fake(said(CALL), flavour="llamacpp")
    settings = ModelSettings(name="small", model="SmolLM2-135M-Instruct.Q4_1", tool_limits=diet)
    engine = Engine([settings], {"one": backend}, ToolRules())

    async def run() -> TurnReport:
        report = TurnReport()
        ask = ClientRequest(request=request(PING, PONG, tool_choice="required"))
        async with aclosing(engine.run_turn(ask, engine.get_route("small"), ToolRules(), report)) as turn:
            async for _ in turn:
                pass
        return report

    report = asyncio.run(run())
    assert (report.strategy, report.strategy_reason) == ("constrained", "the model does not support tools")
    constraint = backend.asked[0].constraint
    assert constraint is not None
    grammar = Grammar.of(constraint.grammar)
    long = CALL.replace("ping", "pong").replace("{}", '{"to": "' + 121 * "x" + '"}')
    assert grammar.accepts(CALL)
    assert [grammar.accepts(long), grammar.accepts(f"{CALL}\n{CALL}")] == [strings is None] * 2
    assert (f'"maxLength": {strings}' in backend.asked[0].messages[0].parts[0].text) == bool(strings)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("server", "given", "upstream"),
    [("llamacpp", {}, "Qwen2.5-7B"), ("llamacpp", {"model": "other"}, "other"), ("vllm", {}, "m"), (None, {}, "m")],
)
def test_a_model_goes_by_the_name_that_llama_cpp_has_for_it(server: Any, given: dict[str, str], upstream: str) -> None:
    """It has one model and answers with it whatever the name; what is known of a family is found by its own name."""

    class One(Fake):
        async def list_models(self) -> tuple[ModelInfo, ...]:
            return (ModelInfo(name="Qwen2.5-7B", server=server),)

    engine = Engine([ModelSettings(name="m", **given)], {"one": One()}, ToolRules())
    asyncio.run(engine.refresh_models())
    assert engine.get_route("m").upstream == upstream
