"""The pipeline: one turn, from a request to events, over the backends of its model.

    request ─ mended, dieted ─▶ strategy: native, constrained, taught ─ told, within the window ─▶ backend
                                ▲                                                                    │
                                │ asked again, in a budget, when the answer will not do:             ▼
                                └─── empty, a call missing or not fitting ─── attempt (dialect, guard, rules) ─▶ events

A backend that fails before its first event, or has too small a window, is followed by the model's next one. A failure
that quotes the model's output is read like an answer. Closing the turn closes the backend's answer, which ends the
generation.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType

import msgspec

from callwright.backends.base import Backend, EventStream, ModelInfo
from callwright.backends.context_overflow import is_context_overflow
from callwright.backends.errors import TOOLS_REFUSED
from callwright.dialects.answer import ANSWER
from callwright.engine.attempt import AnswerAttempt
from callwright.engine.backend_request import CallPlan, fit_backend_request
from callwright.engine.builtin_templates import load_builtin_templates
from callwright.engine.conversation_routing import ConversationRouting
from callwright.engine.normalize import normalize_request
from callwright.engine.reask import RetryReason, build_retry_request, build_unusable_error
from callwright.engine.reasoning_cache import ReasoningCache
from callwright.engine.routing import ModelRoute, check_request
from callwright.engine.settings import ToolRules
from callwright.engine.strategy import ModelCapabilities, ToolStrategy, choose_strategy
from callwright.engine.tokens import count_prompt_tokens, count_tokens
from callwright.engine.turn_report import TurnReport, sum_usage
from callwright.errors import BackendError, RequestError
from callwright.events import Finish, TextDelta, UsageSeen
from callwright.grammar.constraint_builder import build_constraint, get_constraint_dialect
from callwright.ids import make_call_id
from callwright.model import Repair, Request, Usage
from callwright.prompt.context_window import CONTEXT_LENGTH_EXCEEDED
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.turn import IdFactory
from callwright.wire.base import ClientRequest
from callwright.wire.constraint import GRAMMAR_FLAVOURS

__all__ = ["TurnPipeline"]

ModelInfoLookup = Callable[[str, ModelRoute], ModelInfo]
"""What the backend of that name says of a route's model."""
ContextWindowLookup = Callable[[str, ModelRoute], int]
"""How much a route's model takes at the backend of that name, in tokens; 0 when nobody knows."""


class TurnPipeline:
    """Runs turns. Remembers what models' servers refused, tools or to hold an answer to a form, and what models thought
    before their calls."""

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
        """The events of one turn, in batches as they come; the last batch ends in `Finish`. `continuing` has the
        conversations of backends that keep them.

        Raises `RequestError` when the model cannot do what is asked, and `BackendError` when no answer will do.
        """
        thought, restored = self._reasoning_cache.restore_reasoning(report.caller, route, client_request.request)
        request, names, repairs = normalize_request(thought, route)
        report.record_repairs((*restored, *repairs))
        check_request(request, route, (self._backends[name].wire for name in route.backends))
        report.model = route.name
        spent = Usage()
        told = request
        for times in itertools.count(1):
            attempt = AnswerAttempt(request, route, rules, self._ids, names, number=times)
            failure: BackendError | None = None
            try:
                async with aclosing(
                    self._stream_answer(client_request, told, route, report, attempt, conversations)
                ) as answer:
                    async for heard in answer:
                        if events := attempt.feed(heard):
                            report.record_events(events)
                            yield events
                        if attempt.is_done:
                            break
            except BackendError as problem:
                if not problem.salvage or attempt.has_calls:
                    if words := attempt.flush_text():
                        yield words
                    raise
                # Half a call in an error is no answer, and the model can be asked again for a whole one.
                whole = msgspec.structs.replace(rules, truncated="drop")
                salvaged, failure = AnswerAttempt(request, route, whole, self._ids, names, number=times), problem
                salvaged.set_dialect(attempt.dialect)
                events = salvaged.feed([TextDelta(problem.salvage), Finish("stop", (_build_salvage_repair(problem),))])
                if attempt.output_parts and not salvaged.limits.call_count:
                    raise  # the client has heard a part of it, and would hear another answer after it
                attempt = salvaged
            else:
                events = attempt.finish_early() if attempt.is_done else []
            report.has_dropped_calls = attempt.limits.is_truncated
            spent = sum_usage((spent, attempt.usage or await _count_usage(told, attempt)))
            verdict = _find_rejection(attempt, failure)
            if verdict is None:
                last = [*events, UsageSeen(spent), attempt.finish or Finish("stop")]
                report.record_events(last)
                self._reasoning_cache.store_reasoning(
                    report.caller, route, client_request.request, attempt.reasoning_by_call
                )
                yield last
                return
            reason, shortcoming = verdict
            if times > rules.max_retries:
                report.record_retry(reason, shortcoming)
                raise failure or build_unusable_error(reason, shortcoming, times)
            told, how = build_retry_request(
                request, shortcoming, times, tool=attempt.attempted_tool, visible_text=attempt.visible_text
            )
            report.record_retry(reason, f"{shortcoming} ({how})")

    async def _stream_answer(
        self,
        client_request: ClientRequest,
        request: Request,
        route: ModelRoute,
        report: TurnReport,
        attempt: AnswerAttempt,
        conversations: ConversationRouting | None,
    ) -> EventStream:
        """What the first backend that answers says."""
        waiting = deque(self._order_backends(route))
        refused: frozenset[ToolStrategy] = frozenset()
        while waiting:
            backend = waiting[0]
            name = report.backend = backend.settings.name
            way = self._plan_call(backend, request, route, attempt, refused)
            report.strategy, report.strategy_reason = way.strategy, way.strategy_reason
            place = await conversations.get_slot(name) if conversations else None
            here = route
            if place is not None:
                here, way = place.adapt_plan(route, way)
            try:
                whole, notes = await fit_backend_request(self._get_context_window(name, route), request, here, way)
            except RequestError as problem:
                waiting.popleft()
                if problem.code != CONTEXT_LENGTH_EXCEEDED or not self._has_larger_window(waiting, name, route):
                    raise
                report.record_retry("other_backend", f"{name} has too small a window")
                continue
            report.record_repairs(notes)
            attempt.set_dialect(way.answer_dialect)
            asyncio.get_running_loop().call_soon(attempt.prepare_reader)
            begun = False
            try:
                extra = client_request.extra if backend.wire == report.wire else {}
                if place is not None:
                    whole = place.unsent_messages(whole, request)
                asking = place.stream_answer(whole) if place is not None else backend.stream_response(whole, extra)
                taped = report.recorder
                async with aclosing(
                    taped.record_attempt(backend, way, whole, extra, asking) if taped else asking
                ) as answer:
                    async for heard in answer:
                        begun = True
                        self._remember_refusals(name, route, refused)
                        yield heard
            except BackendError as problem:
                if begun or problem.salvage:
                    raise
                if place is not None and place.reset_if_lost(problem):
                    continue
                if _is_strategy_refused(way, problem, route):
                    refused |= {way.strategy}
                    continue
                waiting.popleft()
                refused = frozenset()
                if not ((problem.retryable or is_context_overflow(problem)) and waiting):
                    raise
                report.record_retry("other_backend", f"{name} failed: {problem}")
            else:
                return

    def _has_larger_window(self, others: Iterable[Backend], name: str, route: ModelRoute) -> bool:
        """Whether another backend has a larger window than this one, or nobody knows how large its window is."""
        windows = [self._get_context_window(other.settings.name, route) for other in others]
        return any(not window or window > self._get_context_window(name, route) for window in windows)

    def _remember_refusals(self, backend: str, route: ModelRoute, refused: frozenset[ToolStrategy]) -> None:
        """Another way has worked: what was refused before it need not be tried again."""
        if refused:
            known = self._refused_strategies.get((backend, route.upstream), frozenset())
            self._refused_strategies[backend, route.upstream] = known | refused

    def _order_backends(self, route: ModelRoute) -> list[Backend]:
        """The model's backends; one that is left alone after failures is tried only when there is no other."""
        backends = [self._backends[name] for name in route.backends]
        return sorted(backends, key=lambda backend: not backend.is_available)

    def _plan_call(
        self,
        backend: Backend,
        request: Request,
        route: ModelRoute,
        attempt: AnswerAttempt,
        refused: frozenset[ToolStrategy],
    ) -> CallPlan:
        name = backend.settings.name
        says = self._get_model_info(name, route).tools
        able = ModelCapabilities(
            kind=backend.settings.kind,
            supports_tools=route.family.tools if says is None else says,
            flavour=backend.flavour,
            refused_strategies=self._refused_strategies.get((name, route.upstream), frozenset()) | refused,
        )
        strategy, why = choose_strategy(route.settings.tools, request, able, failed=attempt.number > 1)
        reads, teaches, held = route.answer_dialect, route.prompt_dialect, None
        if strategy == "constrained":
            teaches = get_constraint_dialect(teaches)
            several = attempt.allows_parallel_calls and not route.tool_limits.terse
            held = build_constraint(request.tools, teaches, request.tool_choice, parallel=several)
            reads = teaches = teaches if backend.flavour in GRAMMAR_FLAVOURS else ANSWER
        return CallPlan(
            wire=backend.wire,
            strategy=strategy,
            strategy_reason=why,
            answer_dialect=reads,
            prompt_dialect=teaches,
            constraint=held,
            templates=self._templates.get(route.prompt.templates) or load_builtin_templates(),
            is_first_turn=attempt.is_first_turn,
        )


def _is_strategy_refused(plan: CallPlan, problem: BackendError, route: ModelRoute) -> bool:
    """Whether a backend failed because of the way that the tools were given, so that another way may do."""
    if plan.strategy == "native":
        return route.settings.tools == "auto" and problem.code == TOOLS_REFUSED
    # What servers say of a grammar or schema that they do not take has no words in common. The status has: 400 of
    # llama.cpp, vLLM and OpenAI, 500 of Ollama and of older llama.cpp.
    return plan.strategy == "constrained" and problem.status in (400, 422, 500, 501)


def _find_rejection(attempt: AnswerAttempt, failure: BackendError | None) -> tuple[RetryReason, str] | None:
    """Why an answer will not do. A failure counts as an answer only if it holds a call."""
    if failure is not None and not attempt.limits.call_count:
        return "error", f"the backend failed on it: {failure}"
    return attempt.rejection


def _build_salvage_repair(problem: BackendError) -> Repair:
    return Repair("salvaged_from_error", f"the call was read from the backend's error: {problem}"[:300])


async def _count_usage(request: Request, attempt: AnswerAttempt) -> Usage:
    written = await count_tokens("".join(attempt.output_parts)) + attempt.unstored_characters // 4
    return Usage(await count_prompt_tokens(request), written)
