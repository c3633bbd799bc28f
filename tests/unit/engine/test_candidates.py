"""Which backend is asked next, and how, after each thing that can happen. Nothing is sent anywhere here."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.engine.builtin_templates import load_builtin_templates
from callwright.engine.candidates import BackendFacts, CandidateChooser, PlanInputs, build_call_plan
from callwright.engine.routing import ModelRoute, RouteTable
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.strategy import ModelCapabilities
from callwright.errors import BackendError, RequestError
from callwright.model import Message, Request, Text, ToolSpec
from callwright.prompt.context_window import CONTEXT_LENGTH_EXCEEDED
from callwright.prompt.settings import PromptSettings

PING = ToolSpec("ping", parameters={"type": "object", "properties": {}})
REQUEST = Request("m", (Message("user", (Text("go"),)),), (PING,))
DOWN = BackendError("connection refused", kind="unreachable", retryable=True)
BAD_REQUEST = BackendError("bad request", kind="refused", status=400)
NO_TOOLS = BackendError("no tools here", kind="refused", code="tools_refused", status=400)
TOO_LONG = BackendError("the prompt exceeds the available context size", kind="refused", status=400)
TOO_LARGE = RequestError("too long", code=CONTEXT_LENGTH_EXCEEDED)


def build_route(*names: str, **model: Any) -> ModelRoute:
    table = RouteTable([ModelSettings(name="m", backend=names, **model)], names, ToolRules(), PromptSettings())
    return table.find_route("m")


def build_chooser(facts: dict[str, BackendFacts], request: Request = REQUEST, **model: Any) -> CandidateChooser:
    route = build_route(*facts, **model)
    return CandidateChooser(route.backends, facts.__getitem__, PlanInputs(request, route, load_builtin_templates()))


def facts(window: int = 0, *, is_available: bool = True, **able: Any) -> BackendFacts:
    return BackendFacts("openai_chat", ModelCapabilities(**able), window, is_available)


def test_backends_are_asked_in_their_order_and_those_left_alone_last() -> None:
    chooser = build_chooser({"one": facts(is_available=False), "two": facts(), "three": facts(8192)})
    names = []
    for _ in range(3):
        candidate = chooser.choose_next()
        names.append((candidate.name, candidate.window))
        step = chooser.report_failure(DOWN)
    assert names == [("two", 0), ("three", 8192), ("one", 0)]
    assert step == "give_up", "no backend is left"


def test_the_same_backend_is_named_until_something_happened() -> None:
    chooser = build_chooser({"one": facts(), "two": facts()})
    assert chooser.choose_next() == chooser.choose_next()


@pytest.mark.parametrize(
    ("problem", "step"), [(DOWN, "other_backend"), (TOO_LONG, "other_backend"), (BAD_REQUEST, "give_up")]
)
def test_another_backend_is_asked_only_if_it_may_answer_differently(problem: BackendError, step: str) -> None:
    chooser = build_chooser({"one": facts(), "two": facts()})
    chooser.choose_next()
    assert chooser.report_failure(problem) == step


@pytest.mark.parametrize(
    ("second", "step"), [(4096, "give_up"), (8192, "give_up"), (16384, "other_backend"), (0, "other_backend")]
)
def test_too_small_a_window_is_followed_by_one_that_may_be_larger(second: int, step: str) -> None:
    chooser = build_chooser({"one": facts(8192), "two": facts(second)})
    chooser.choose_next()
    assert chooser.report_request_error(TOO_LARGE) == step


def test_the_windows_of_all_that_are_left_count() -> None:
    chooser = build_chooser({"one": facts(8192), "two": facts(4096), "three": facts(16384)})
    chooser.choose_next()
    assert chooser.report_request_error(TOO_LARGE) == "other_backend"
    assert chooser.choose_next().name == "two"
    assert chooser.report_request_error(TOO_LARGE) == "other_backend"
    assert chooser.choose_next().name == "three"
    assert chooser.report_request_error(TOO_LARGE) == "give_up"


def test_another_fault_of_the_request_is_one_everywhere() -> None:
    chooser = build_chooser({"one": facts(8192), "two": facts(16384)})
    chooser.choose_next()
    assert chooser.report_request_error(RequestError("a picture")) == "give_up"


def test_a_backend_that_refuses_tools_is_asked_in_every_other_way_before_the_next_one() -> None:
    chooser = build_chooser({"one": facts(flavour="vllm"), "two": facts(flavour="vllm")})
    assert chooser.choose_next().plan.strategy == "native"
    assert chooser.report_failure(NO_TOOLS) == "same_backend"
    assert chooser.choose_next().plan.strategy == "constrained"
    assert chooser.report_failure(BAD_REQUEST) == "same_backend"
    candidate = chooser.choose_next()
    assert (candidate.name, candidate.plan.strategy) == ("one", "taught")
    assert chooser.refused_strategies == {"native", "constrained"}
    assert chooser.report_failure(DOWN) == "other_backend"
    assert chooser.choose_next().name == "two"


@pytest.mark.parametrize("leaves", ["failure", "window"])
def test_what_one_backend_refused_says_nothing_of_the_next(leaves: str) -> None:
    chooser = build_chooser({"one": facts(8192), "two": facts(16384)})
    chooser.choose_next()
    assert chooser.report_failure(NO_TOOLS) == "same_backend"
    assert chooser.choose_next().plan.strategy == "taught"
    step = chooser.report_failure(DOWN) if leaves == "failure" else chooser.report_request_error(TOO_LARGE)
    assert step == "other_backend"
    assert chooser.refused_strategies == frozenset()
    candidate = chooser.choose_next()
    assert (candidate.name, candidate.plan.strategy) == ("two", "native")


def test_what_was_refused_in_earlier_turns_is_not_tried_again() -> None:
    chooser = build_chooser({"one": facts(refused_strategies=frozenset({"native"}))})
    assert chooser.choose_next().plan.strategy == "taught"
    assert chooser.refused_strategies == frozenset(), "nothing new was refused"


def test_refused_tools_are_final_where_the_settings_want_native_ones() -> None:
    chooser = build_chooser({"one": facts(), "two": facts()}, tools="native")
    chooser.choose_next()
    assert chooser.report_failure(NO_TOOLS) == "give_up"


@pytest.mark.parametrize(("status", "step"), [(400, "same_backend"), (500, "same_backend"), (503, "give_up")])
def test_a_refused_form_is_known_by_its_status(status: int, step: str) -> None:
    chooser = build_chooser({"one": facts(flavour="llamacpp")}, tools="constrained")
    assert chooser.choose_next().plan.strategy == "constrained"
    assert chooser.report_failure(BackendError("no", kind="refused", status=status)) == step


def test_a_lost_conversation_is_begun_again_at_the_same_backend_in_the_same_way() -> None:
    chooser = build_chooser({"one": facts(), "two": facts()})
    first = chooser.choose_next()
    assert chooser.report_failure(BAD_REQUEST, is_conversation_lost=True) == "same_backend"
    assert chooser.choose_next() == first


@pytest.mark.parametrize(("flavour", "answer"), [("llamacpp", "hermes"), ("ollama", "answer")])
def test_a_constrained_answer_is_read_in_the_dialect_that_it_is_held_to(flavour: Any, answer: str) -> None:
    route = build_route("one", tools="constrained")
    inputs = PlanInputs(REQUEST, route, load_builtin_templates())
    plan = build_call_plan(inputs, "openai_chat", ModelCapabilities(flavour=flavour))
    assert plan.constraint is not None
    assert plan.answer_dialect is plan.prompt_dialect
    assert plan.answer_dialect.name == answer


def test_a_plan_for_a_retry_holds_a_required_call_to_a_form() -> None:
    required = Request("m", REQUEST.messages, (PING,), tool_choice="required")
    inputs = PlanInputs(required, build_route("one"), load_builtin_templates())
    able = ModelCapabilities(supports_tools=True, flavour="ollama")
    assert build_call_plan(inputs, "ollama", able).strategy == "native"
    assert build_call_plan(inputs._replace(is_retry=True), "ollama", able).strategy == "constrained"
