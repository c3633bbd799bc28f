"""What a backend gets of a client's request: mended, on the model's diet, within its window; and what comes back."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from callwright import check_events, collect
from callwright.backends.base import ModelInfo
from callwright.engine import Engine, TurnReport
from callwright.engine.jobs import JobSettings
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError, RequestError
from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, TextDelta
from callwright.model import Image, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.turn import Collected
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake

LONG_NAME = "mcp__" + "server" * 12 + "__ping"
SAID: list[Event] = [TextDelta("ok"), Finish("stop")]
PICTURE = Image("data:image/png;base64,AA==")


def message(role: Any, *parts: Part) -> Message:
    return Message(role, parts)


def ask(*messages: Message, tools: tuple[str, ...] = ("ping",), **changes: Any) -> Request:
    return Request("m", messages or (message("user", Text("go")),), tuple(map(ToolSpec, tools)), **changes)


async def turn(engine: Engine, request: Request, rules: ToolRules | None = None) -> tuple[Collected, TurnReport]:
    report = TurnReport(wire="openai_chat")
    answer = engine.run_turn(
        ClientRequest(request=request), engine.get_route(request.model), rules or ToolRules(), report
    )
    async with aclosing(answer) as batches:
        events = [event async for batch in batches for event in batch]
    check_events(events)
    return collect(events), report


def run(backend: Fake, request: Request, rules: ToolRules | None = None, **model: Any) -> tuple[Collected, TurnReport]:
    engine = Engine([ModelSettings(name="m", **model)], {"one": backend}, ToolRules())
    return asyncio.run(turn(engine, request, rules))


def kinds(report: TurnReport) -> list[str]:
    return [repair.kind for repair in report.repairs]


# ── history ──────────────────────────────────────────────────────────────────────────────────────


def test_rc12_a_spoilt_session_is_mended_and_that_is_reported() -> None:
    """https://github.com/earendil-works/pi/issues/4189"""
    backend = Fake(SAID)
    leak = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    sent = (
        message("user", Text("go")),
        message("assistant", ToolCall("a", "ping", "{broken")),
        message("user", Text("?")),
    )
    _, report = run(backend, ask(*sent, message("assistant", Text(leak)), message("user", Text("??"))))
    roles = [each.role for each in backend.asked[0].messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "tool", "user"]
    assert kinds(report) == ["repaired_arguments", "recovered_call", "missing_result", "missing_result"]


def test_a_history_is_sent_as_it_is_where_that_is_set() -> None:
    backend = Fake(SAID)
    request = ask(
        message("user", Text("go")), message("assistant", ToolCall("a", "ping", "{")), message("user", Text("?"))
    )
    run(backend, request, history={"repair": False})
    assert backend.asked[0].messages == request.messages


@pytest.mark.parametrize(
    ("wire", "setting", "moved"),
    [
        ("openai_chat", "auto", True),
        ("ollama", "auto", True),
        ("anthropic", "auto", False),
        ("openai_responses", "auto", False),
        ("anthropic", "move", True),
        ("openai_chat", "keep", False),
    ],
)
def test_pictures_in_results_move_where_the_wire_has_no_place_for_them(wire: str, setting: str, moved: bool) -> None:
    backend = Fake(SAID, wire=wire)
    call = message("assistant", ToolCall("a", "ping", "{}"))
    result = message("tool", ToolResult("a", "", "ping", images=(PICTURE,)))
    run(backend, ask(message("user", Text("go")), call, result), history={"result_images": setting})
    assert (backend.asked[0].messages[-1].role == "user") == moved


def test_rc12_a_picture_in_a_result_does_not_spoil_the_session_of_a_blind_model() -> None:
    """https://github.com/ggml-org/llama.cpp/issues/23542"""
    backend = Fake(SAID)
    call = message("assistant", ToolCall("a", "ping", "{}"))
    result = message("tool", ToolResult("a", "a chart", "ping", images=(PICTURE,)))
    _, report = run(backend, ask(message("user", Text("go")), call, result), vision=False)
    (told,) = backend.asked[0].messages[-1].parts
    assert told == ToolResult("a", "a chart\n[a picture that this model cannot see]", "ping")
    assert kinds(report) == ["dropped_images"]


@pytest.mark.parametrize("tools", ["native", "taught"])
def test_rc10_roles_alternate_for_strict_templates_whatever_is_taught(tools: str) -> None:
    """https://github.com/ggml-org/llama.cpp/issues/20733"""
    backend = Fake(SAID)
    sent = (
        message("user", Text("go")),
        message("assistant", ToolCall("a", "ping", "{}"), ToolCall("b", "ping", '{"n": 1}')),
        message("tool", ToolResult("a", "1", "ping")),
        message("tool", ToolResult("b", "2", "ping")),
        message("system", Text("Hurry.")),
        message("user", Text("and?")),
    )
    run(backend, ask(*sent), tools=tools, history={"roles": "strict"})
    roles = [each.role for each in backend.asked[0].messages if each.role != "tool"]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(("setting", "kept"), [("keep", True), ("drop", False)])
def test_rc7_reasoning_goes_where_it_is_wanted(setting: str, kept: bool) -> None:
    """https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215"""
    backend = Fake(SAID)
    thought = message("assistant", Reasoning("hm"), Text("so"))
    run(backend, ask(message("user", Text("go")), thought, message("user", Text("?"))), history={"reasoning": setting})
    told = [part for each in backend.asked[0].messages for part in each.parts if isinstance(part, Reasoning)]
    assert bool(told) == kept


# ── diet ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("native", [True, False], ids=["native", "as text"])
@pytest.mark.parametrize("mode", ["openai-json", "obsidian-xml"])
def test_rc10_a_tool_with_a_long_name_is_called_by_its_own_name(native: bool, mode: Any) -> None:
    """https://github.com/anomalyco/opencode/issues/38808"""

    class Calls(Fake):
        async def stream_response(self, request: Request, extra: dict[str, Any]) -> Any:
            self.asked.append(request)
            alias = request.tools[0].name
            if native:
                yield [CallStart(0, "1", alias), CallDelta(0, "{}"), CallEnd(0), Finish("tool_calls")]
            else:
                text = json.dumps({"name": alias, "arguments": {}})
                yield [TextDelta(f"<tool_call>{text}</tool_call>"), Finish("stop")]

    backend = Calls(SAID)
    answered, report = run(backend, ask(tools=(LONG_NAME,), tool_choice=LONG_NAME), ToolRules(output_mode=mode))
    assert len(backend.asked[0].tools[0].name) <= 64
    assert [call.name for call in answered.tool_calls] == report.call_names == [LONG_NAME]
    assert backend.asked[0].tools[0].name not in answered.text
    assert (LONG_NAME in answered.text) == (mode == "obsidian-xml")


def test_a_model_is_offered_what_its_diet_allows() -> None:
    backend = Fake(SAID)
    _, report = run(backend, ask(tools=("ping", "pong")), tool_limits={"deny": ["po*"]})
    assert [tool.name for tool in backend.asked[0].tools] == ["ping"]
    assert kinds(report) == ["left_out_tools"]


# ── window ───────────────────────────────────────────────────────────────────────────────────────

LONG = "word " * 2000
OVERFULL = ask(
    message("user", Text("go")),
    message("assistant", ToolCall("a", "ping", "{}")),
    message("tool", ToolResult("a", LONG, "ping")),
    message("assistant", Text("Well.")),
    message("user", Text("and?")),
)


def test_rc6_a_prompt_beyond_the_window_is_refused_before_it_is_sent() -> None:
    """https://github.com/anomalyco/opencode/issues/1034"""
    backend = Fake(SAID)
    with pytest.raises(RequestError, match="maximum context length is 1500 tokens") as caught:
        run(backend, OVERFULL, context=1500)
    assert caught.value.code == "context_length_exceeded"
    assert not backend.asked


@pytest.mark.parametrize("tools", ["native", "taught"])
def test_it_is_condensed_where_that_is_set(tools: str) -> None:
    backend = Fake(SAID)
    _, report = run(backend, OVERFULL, context=1500, tools=tools, tool_limits={"overflow": "condense", "reserve": 100})
    told = backend.asked[0].messages
    assert "left out" in str(told)
    assert told[-1] == OVERFULL.messages[-1]
    assert "condensed" in kinds(report)


@pytest.mark.parametrize("model", [{"context": 1500, "tool_limits": {"overflow": "send"}}, {}, {"context": 4000}])
def test_it_is_sent_where_it_fits_or_nobody_knows_or_minds(model: dict[str, Any]) -> None:
    backend = Fake(SAID)
    run(backend, OVERFULL, **model)
    assert backend.asked[0].messages == OVERFULL.messages


class Listed(Fake):
    """A backend whose list can be changed."""

    listed: tuple[ModelInfo, ...] | BackendError = ()

    async def list_models(self) -> tuple[ModelInfo, ...]:
        if isinstance(self.listed, BackendError):
            raise self.listed
        return self.listed


def test_the_window_is_the_backends_unless_it_is_set() -> None:
    backend = Listed(SAID)
    backend.listed = (ModelInfo(name="m:latest", context=1500),)
    models = [
        ModelSettings(name="m"),
        ModelSettings(name="set", model="m", context=9000),
        ModelSettings(name="asked", model="m", options={"num_ctx": 8000}),
    ]
    engine = Engine(models, {"one": backend}, ToolRules())

    async def windows() -> list[int]:
        await engine.refresh_models()
        return [engine.get_context_window("one", engine.get_route(model.name)) for model in models]

    assert asyncio.run(windows()) == [1500, 9000, 8000]
    assert [model.context for model in engine.models] == [1500, 9000, 8000]


def test_what_a_backend_said_counts_while_it_is_silent() -> None:
    backend = Listed(SAID)
    engine = Engine([], {"one": backend}, ToolRules())

    async def listings() -> list[str]:
        backend.listed = (ModelInfo(name="m"),)
        await engine.refresh_models()
        backend.listed = BackendError("gone")
        problems = await engine.refresh_models()
        return [*problems.values(), *(model.name for model in engine.models)]

    assert asyncio.run(listings()) == ["gone", "m"]


def test_old_answers_are_asked_for_again_behind_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.engine._REFRESH_SECONDS", -1.0)
    backend = Listed(SAID)
    engine = Engine([ModelSettings(name="m")], {"one": backend}, ToolRules())

    async def windows() -> list[int]:
        await engine.refresh_models()
        backend.listed = (ModelInfo(name="m", context=4096),)
        before = engine.get_context_window("one", engine.get_route("m"))
        await turn(engine, ask())
        while not engine.get_context_window("one", engine.get_route("m")):
            await asyncio.sleep(0)
        await engine.close()
        return [before, engine.get_context_window("one", engine.get_route("m"))]

    assert asyncio.run(windows()) == [0, 4096]


def test_a_backend_that_did_not_answer_is_asked_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.engine._RETRY_SECONDS", -1.0)
    backend = Listed(SAID)
    engine = Engine([ModelSettings(name="m")], {"one": backend}, ToolRules())

    async def window() -> int:
        backend.listed = BackendError("not started yet")
        await engine.refresh_models()
        backend.listed = (ModelInfo(name="m", context=4096),)
        await turn(engine, ask())
        async with asyncio.timeout(5):
            while not engine.get_context_window("one", engine.get_route("m")):
                await asyncio.sleep(0)
        await engine.close()
        return engine.get_context_window("one", engine.get_route("m"))

    assert asyncio.run(window()) == 4096


# ── all of it together ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tools", ["native", "taught"])
def test_a_blind_model_is_shown_no_picture_of_a_result_whatever_its_tools(tools: str) -> None:
    backend = Fake(SAID)
    call = message("assistant", ToolCall("a", "ping", "{}"))
    result = message("tool", ToolResult("a", "a chart", "ping", images=(PICTURE,)))
    run(backend, ask(message("user", Text("go")), call, result), vision=False, tools=tools)
    told = str(backend.asked[0].messages)
    assert "cannot see" in told
    assert PICTURE.url not in told


def test_pictures_that_move_are_not_taken_for_a_new_request_of_the_user() -> None:
    rounds = [
        each
        for number in range(3)
        for each in (
            message("assistant", ToolCall(f"c{number}", "ping", "{}")),
            message("tool", ToolResult(f"c{number}", "a chart", "ping", images=(PICTURE,))),
        )
    ]
    with pytest.raises(RequestError, match="3 rounds"):
        run(Fake(SAID), ask(message("user", Text("go")), *rounds), prompt={"max_rounds": 3})


def test_the_way_to_close_is_offered_beside_whatever_the_diet_leaves() -> None:
    backend = Fake(SAID)
    run(
        backend,
        ask(tools=("ping", "pong")),
        tool_limits={"allow": ["ping"], "max_tools": 1},
        prompt={"final_answer": "call"},
    )
    assert [tool.name for tool in backend.asked[0].tools] == ["ping", "final_answer"]


def test_a_prompt_is_measured_with_all_that_is_told_beside_it() -> None:
    with pytest.raises(RequestError, match="too long"):
        run(Fake(SAID), ask(), context=1500, prompt={"house_rules": LONG})


# ── small jobs ───────────────────────────────────────────────────────────────────────────────────


def test_a_small_job_goes_to_the_model_of_its_rule() -> None:
    big, small = Fake(SAID), Fake(SAID, name="two")
    models = [ModelSettings(name="m"), ModelSettings(name="small", backend="two")]
    jobs = [JobSettings(name="titles", model="small", keywords=("title",))]
    engine = Engine(models, {"one": big, "two": small}, ToolRules(), jobs)
    title = ask(message("user", Text("A title, please.")), tools=())
    _, report = asyncio.run(turn(engine, title))
    assert (len(big.asked), small.asked[0].model, report.backend) == (0, "small", "two")
    assert kinds(report) == ["routed_job"]
    asyncio.run(turn(engine, ask(message("user", Text("A title, please.")))))
    assert len(big.asked) == 1


def test_a_small_job_is_told_as_its_client_needs_it() -> None:
    small = Fake(SAID, name="two")
    models = [ModelSettings(name="m", backend="one"), ModelSettings(name="small", backend="two")]
    jobs = [JobSettings(name="titles", model="small", keywords=("title for",))]
    engine = Engine(models, {"one": Fake(SAID), "two": small}, ToolRules(), jobs)
    request = ask(message("system", Text("cost: 1\nBe brief.")), message("user", Text("A title for this.")), tools=())

    async def told() -> None:
        route = engine.get_route("m").with_client_prompt({"volatile": ("cost:",)})
        async with aclosing(
            engine.run_turn(ClientRequest(request=request), route, ToolRules(), TurnReport())
        ) as batches:
            [batch async for batch in batches]

    asyncio.run(told())
    assert [each.parts for each in small.asked[0].messages] == [
        (Text("Be brief."),),
        (Text("A title for this.\n\ncost: 1"),),
    ]
