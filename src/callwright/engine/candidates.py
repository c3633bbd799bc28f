"""Chooses the backend and the call plan for an answer. Pure: the pipeline requests a candidate and reports the outcome.

The same backend is used again with another strategy when it refused one, and when it has lost the conversation. The
next backend of the model follows when one fails before its first event, or when its context window is too small. A
refusal by one backend says nothing about the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from callwright.backends.errors import TOOLS_REFUSED, is_context_overflow
from callwright.dialects.answer import ANSWER
from callwright.engine.backend_request import CallPlan
from callwright.engine.routing import ModelRoute
from callwright.engine.strategy import ModelCapabilities, ToolStrategy, choose_strategy
from callwright.errors import BackendError, RequestError
from callwright.grammar.constraint_builder import build_constraint, get_constraint_dialect
from callwright.model import Request
from callwright.prompt.context_window import CONTEXT_LENGTH_EXCEEDED
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.wire.constraint import GRAMMAR_FLAVOURS

__all__ = ["BackendFacts", "Candidate", "CandidateChooser", "NextStep", "PlanInputs", "build_call_plan"]

NextStep = Literal["same_backend", "other_backend", "give_up"]
"""What follows a failure: `choose_next` returns the same backend, another one, or the failure is final."""


class BackendFacts(NamedTuple):
    """What is known about a backend and the model there."""

    wire: str
    capabilities: ModelCapabilities
    window: int = 0
    """The model's context window in tokens; 0 when unknown."""
    is_available: bool = True
    """False while the circuit breaker of the backend is open."""


class PlanInputs(NamedTuple):
    """What a call plan depends on besides the backend."""

    request: Request
    route: ModelRoute
    templates: PromptTemplates
    is_retry: bool = False
    """An earlier answer in this turn was unusable."""
    allows_parallel_calls: bool = True
    is_first_turn: bool = True
    """The conversation has no answer yet."""


class Candidate(NamedTuple):
    """A backend to call, and how to call it."""

    name: str
    plan: CallPlan
    window: int


class CandidateChooser:
    """Chooses the backends of one answer, one after the other. Unavailable backends come last."""

    def __init__(self, names: Sequence[str], describe_backend: Callable[[str], BackendFacts], inputs: PlanInputs):
        self._describe_backend = describe_backend
        self._inputs = inputs
        self._waiting = deque(sorted(names, key=lambda name: not describe_backend(name).is_available))
        self._plan: CallPlan | None = None
        self.refused_strategies: frozenset[ToolStrategy] = frozenset()
        """Strategies that the current backend refused for this answer."""

    def choose_next(self) -> Candidate:
        """Return the backend to call now: the same one until its failure is reported."""
        name = self._waiting[0]
        facts = self._describe_backend(name)
        refused = facts.capabilities.refused_strategies | self.refused_strategies
        capabilities = msgspec.structs.replace(facts.capabilities, refused_strategies=refused)
        self._plan = build_call_plan(self._inputs, facts.wire, capabilities)
        return Candidate(name, self._plan, facts.window)

    def report_request_error(self, problem: RequestError) -> NextStep:
        """Report that the request cannot be built for the current backend. A backend with a larger window may help."""
        window = self._describe_backend(self._drop_current()).window
        others = [self._describe_backend(name).window for name in self._waiting]
        has_larger = any(not other or other > window for other in others)
        return "other_backend" if problem.code == CONTEXT_LENGTH_EXCEEDED and has_larger else "give_up"

    def report_failure(self, problem: BackendError, *, is_conversation_lost: bool = False) -> NextStep:
        """Report that the current backend failed before its first event."""
        if is_conversation_lost:
            return "same_backend"
        if self._plan is not None and _is_strategy_refused(self._plan, problem, self._inputs.route):
            self.refused_strategies |= {self._plan.strategy}
            return "same_backend"
        self._drop_current()
        may_differ = problem.retryable or is_context_overflow(problem)
        return "other_backend" if may_differ and self._waiting else "give_up"

    def _drop_current(self) -> str:
        self._plan = None
        self.refused_strategies = frozenset()
        return self._waiting.popleft()


def build_call_plan(inputs: PlanInputs, wire: str, capabilities: ModelCapabilities) -> CallPlan:
    """Build the plan for a backend with these capabilities."""
    request, route = inputs.request, inputs.route
    strategy, reason = choose_strategy(route.settings.tools, request, capabilities, failed=inputs.is_retry)
    answer_dialect, prompt_dialect, constraint = route.answer_dialect, route.prompt_dialect, None
    if strategy == "constrained":
        prompt_dialect = get_constraint_dialect(prompt_dialect)
        parallel = inputs.allows_parallel_calls and not route.tool_limits.terse
        constraint = build_constraint(request.tools, prompt_dialect, request.tool_choice, parallel=parallel)
        prompt_dialect = prompt_dialect if capabilities.flavour in GRAMMAR_FLAVOURS else ANSWER
        answer_dialect = prompt_dialect
    return CallPlan(
        wire=wire,
        strategy=strategy,
        strategy_reason=reason,
        answer_dialect=answer_dialect,
        prompt_dialect=prompt_dialect,
        constraint=constraint,
        templates=inputs.templates,
        is_first_turn=inputs.is_first_turn,
    )


def _is_strategy_refused(plan: CallPlan, problem: BackendError, route: ModelRoute) -> bool:
    """Whether a backend failed because of the strategy, so that another one may work."""
    if plan.strategy == "native":
        return route.settings.tools == "auto" and problem.code == TOOLS_REFUSED
    # Messages about an unsupported grammar or schema have nothing in common, but the status has: 400 of llama.cpp, vLLM
    # and OpenAI, 500 of Ollama and older llama.cpp.
    return plan.strategy == "constrained" and problem.status in (400, 422, 500, 501)
