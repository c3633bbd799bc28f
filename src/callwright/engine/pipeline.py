"""The pipeline: one turn, from a request to events, over the backends of its model.

    request ─ normalize ─▶ candidate: a backend and a strategy ─ fit to its window ─▶ backend
                           ▲                                                             │
                           │ retry within a budget when the answer is unusable:          ▼
                           └── empty, missing or invalid call ── attempt (dialect, guard, rules) ─▶ events

`candidates` chooses the backend and the strategy; this module reads the answer. A failure that quotes the model's
output is read like an answer. Closing the turn closes the backend's answer, which ends the generation.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from callwright.backends.base import Backend, EventStream, ModelInfo
from callwright.dialects import Dialect
from callwright.engine.attempt import AnswerAttempt
from callwright.engine.backend_request import CallPlan, fit_backend_request
from callwright.engine.builtin_templates import load_builtin_templates
from callwright.engine.candidates import BackendFacts, Candidate, CandidateChooser, PlanInputs
from callwright.engine.conversation_routing import ConversationRouting, ConversationSlot
from callwright.engine.normalize import normalize_request
from callwright.engine.reask import RetryReason, build_retry_request, build_unusable_error
from callwright.engine.reasoning_cache import ReasoningCache
from callwright.engine.routing import ModelRoute, check_request
from callwright.engine.settings import ToolRules
from callwright.engine.strategy import ModelCapabilities, ToolStrategy
from callwright.engine.tokens import count_prompt_tokens, count_tokens
from callwright.engine.turn_report import TurnReport, sum_usage
from callwright.errors import BackendError, RequestError
from callwright.events import Event, Finish, TextDelta, UsageSeen
from callwright.ids import make_call_id
from callwright.model import Repair, Request, Usage
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.turn import IdFactory
from callwright.wire.base import ClientRequest

__all__ = ["TurnPipeline"]

ModelInfoLookup = Callable[[str, ModelRoute], ModelInfo]
"""Returns what the backend of that name reports about a route's model."""
ContextWindowLookup = Callable[[str, ModelRoute], int]
"""Returns the context window of a route's model at the backend of that name, in tokens; 0 when unknown."""


class _PreparedCall(NamedTuple):
    """A request that is ready to be sent to a backend."""

    backend: Backend
    plan: CallPlan
    request: Request


class TurnPipeline:
    """Runs turns. Remembers the strategies that servers refused, and the reasoning before calls."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        get_model_info: ModelInfoLookup,
        get_context_window: ContextWindowLookup,
        *,
        ids: IdFactory = make_call_id,
        templates: Mapping[str, PromptTemplates] = MappingProxyType({}),
    ) -> None:
        self._backends = backends
        self._get_model_info = get_model_info
        self._get_context_window = get_context_window
        self._templates = templates
        self._ids = ids
        self._reasoning_cache = ReasoningCache()
        self._refused_strategies: dict[tuple[str, str], frozenset[ToolStrategy]] = {}

    async def run_turn(
        self,
        client_request: ClientRequest,
        route: ModelRoute,
        rules: ToolRules,
        report: TurnReport,
        conversations: ConversationRouting | None = None,
    ) -> EventStream:
        """Stream the events of one turn in batches; the last batch ends in `Finish`. `conversations` are those of
        backends that store conversations.

        Raises `RequestError` when the model does not support the request, and `BackendError` when no answer is usable.
        """
        request, names = self._normalize_request(client_request.request, route, report)
        total_usage = Usage()
        attempt_request = request
        for number in itertools.count(1):
            attempt = AnswerAttempt(request, route, rules, self._ids, names, number=number)
            failure: BackendError | None = None
            try:
                async with aclosing(
                    self._stream_answer(client_request, attempt_request, route, report, attempt, conversations)
                ) as answer:
                    async for answer_events in answer:
                        if events := attempt.feed(answer_events):
                            report.record_events(events)
                            yield events
                        if attempt.is_done:
                            break
            except BackendError as problem:
                if not problem.salvage or attempt.has_calls:
                    if held_text := attempt.flush_text():
                        yield held_text
                    raise
                salvaged = AnswerAttempt(request, route, _drop_truncated(rules), self._ids, names, number=number)
                events = _read_salvage(salvaged, attempt.dialect, problem)
                if attempt.output_parts and not salvaged.limits.call_count:
                    raise  # the client has a part of this answer, and must not get another one after it
                attempt, failure = salvaged, problem
            else:
                events = attempt.finish_early() if attempt.is_done else []
            report.has_dropped_calls = attempt.limits.is_truncated
            total_usage = sum_usage((total_usage, attempt.usage or await _count_usage(attempt_request, attempt)))
            rejection = _find_rejection(attempt, failure)
            if rejection is None:
                final_events = [*events, UsageSeen(total_usage), attempt.finish or Finish("stop")]
                report.record_events(final_events)
                reasoning = attempt.reasoning_by_call
                self._reasoning_cache.store_reasoning(report.caller, route, client_request.request, reasoning)
                yield final_events
                return
            reason, shortcoming = rejection
            if number > rules.max_retries:
                report.record_retry(reason, shortcoming)
                raise failure or build_unusable_error(reason, shortcoming, number)
            attempt_request, change = build_retry_request(
                request, shortcoming, number, tool=attempt.attempted_tool, visible_text=attempt.visible_text
            )
            report.record_retry(reason, f"{shortcoming} ({change})")

    def _normalize_request(
        self, client_request: Request, route: ModelRoute, report: TurnReport
    ) -> tuple[Request, Mapping[str, str]]:
        """Normalize the request for all backends of the route. Returns it with the client's tool names by ours."""
        with_reasoning, restored = self._reasoning_cache.restore_reasoning(report.caller, route, client_request)
        request, names, repairs = normalize_request(with_reasoning, route)
        report.record_repairs((*restored, *repairs))
        check_request(request, route, (self._backends[name].wire for name in route.backends))
        report.model = route.name
        return request, names

    async def _stream_answer(
        self,
        client_request: ClientRequest,
        request: Request,
        route: ModelRoute,
        report: TurnReport,
        attempt: AnswerAttempt,
        conversations: ConversationRouting | None,
    ) -> EventStream:
        """Stream the answer of the first backend that gives one."""
        chooser = self._create_chooser(request, route, attempt)
        while True:
            candidate = chooser.choose_next()
            name, plan = candidate.name, candidate.plan
            report.backend, report.strategy, report.strategy_reason = name, plan.strategy, plan.strategy_reason
            slot = await conversations.get_slot(name) if conversations else None
            try:
                prepared = await self._prepare_call(candidate, request, route, slot, report)
            except RequestError as problem:
                if chooser.report_request_error(problem) == "give_up":
                    raise
                report.record_retry("other_backend", f"the context window of {name} is too small")
                continue
            attempt.set_dialect(plan.answer_dialect)
            asyncio.get_running_loop().call_soon(attempt.prepare_reader)
            has_started = False
            try:
                async with aclosing(self._send_request(client_request, prepared, slot, report)) as answer:
                    async for events in answer:
                        if not has_started:
                            has_started = True
                            self._remember_refusals(name, route, chooser.refused_strategies)
                        yield events
            except BackendError as problem:
                if has_started or problem.salvage:
                    raise
                is_lost = slot is not None and slot.reset_if_lost(problem)
                step = chooser.report_failure(problem, is_conversation_lost=is_lost)
                if step == "give_up":
                    raise
                if step == "other_backend":
                    report.record_retry("other_backend", f"{name} failed: {problem}")
            else:
                return

    async def _prepare_call(
        self,
        candidate: Candidate,
        request: Request,
        route: ModelRoute,
        slot: ConversationSlot | None,
        report: TurnReport,
    ) -> _PreparedCall:
        """Build the request for the candidate. Raises `RequestError` when it does not fit the candidate's window."""
        plan = candidate.plan
        if slot is not None:
            route, plan = slot.adapt_plan(route, plan)
        backend_request, notes = await fit_backend_request(candidate.window, request, route, plan)
        report.record_repairs(notes)
        if slot is not None:
            backend_request = slot.unsent_messages(backend_request, request)
        return _PreparedCall(self._backends[candidate.name], plan, backend_request)

    def _send_request(
        self, client_request: ClientRequest, call: _PreparedCall, slot: ConversationSlot | None, report: TurnReport
    ) -> EventStream:
        """Stream the backend's answer, recorded if the turn is."""
        backend, plan, request = call
        extra = client_request.extra if backend.wire == report.wire else {}
        answer = slot.stream_answer(request) if slot is not None else backend.stream_response(request, extra)
        recorder = report.recorder
        return recorder.record_attempt(backend, plan, request, extra, answer) if recorder else answer

    def _create_chooser(self, request: Request, route: ModelRoute, attempt: AnswerAttempt) -> CandidateChooser:
        inputs = PlanInputs(
            request,
            route,
            self._templates.get(route.prompt.templates) or load_builtin_templates(),
            is_retry=attempt.number > 1,
            allows_parallel_calls=attempt.allows_parallel_calls,
            is_first_turn=attempt.is_first_turn,
        )
        return CandidateChooser(route.backends, partial(self._describe_backend, route), inputs)

    def _describe_backend(self, route: ModelRoute, name: str) -> BackendFacts:
        backend = self._backends[name]
        reported = self._get_model_info(name, route).tools
        capabilities = ModelCapabilities(
            kind=backend.settings.kind,
            supports_tools=route.family.tools if reported is None else reported,
            flavour=backend.flavour,
            refused_strategies=self._refused_strategies.get((name, route.upstream), frozenset()),
        )
        return BackendFacts(
            backend.wire, capabilities, self._get_context_window(name, route), is_available=backend.is_available
        )

    def _remember_refusals(self, backend: str, route: ModelRoute, refused: frozenset[ToolStrategy]) -> None:
        """Remember refused strategies, after another one has worked."""
        if refused:
            known = self._refused_strategies.get((backend, route.upstream), frozenset())
            self._refused_strategies[backend, route.upstream] = known | refused


def _find_rejection(attempt: AnswerAttempt, failure: BackendError | None) -> tuple[RetryReason, str] | None:
    """Find why an answer is unusable. A failure counts as an answer only if it contains a call."""
    if failure is not None and not attempt.limits.call_count:
        return "error", f"the backend failed on it: {failure}"
    return attempt.rejection


def _drop_truncated(rules: ToolRules) -> ToolRules:
    """Drop incomplete calls when an error is read: half a call is no answer, and the model can be retried."""
    return msgspec.structs.replace(rules, truncated="drop")


def _read_salvage(attempt: AnswerAttempt, dialect: Dialect, problem: BackendError) -> list[Event]:
    """Read the model's output that a failure quotes, as an answer in this dialect."""
    attempt.set_dialect(dialect)
    repair = Repair("salvaged_from_error", f"the call was read from the backend's error: {problem}"[:300])
    return attempt.feed([TextDelta(problem.salvage), Finish("stop", (repair,))])


async def _count_usage(request: Request, attempt: AnswerAttempt) -> Usage:
    written = await count_tokens("".join(attempt.output_parts)) + attempt.unstored_characters // 4
    return Usage(await count_prompt_tokens(request), written)
