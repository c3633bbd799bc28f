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
from callwright.engine.again import Reason, asked_again, unusable
from callwright.engine.attempt import Attempt
from callwright.engine.continuing import Continuing
from callwright.engine.mend import mended
from callwright.engine.prompts import built_in_templates
from callwright.engine.reasoning import ThoughtMemory
from callwright.engine.report import TurnReport, total
from callwright.engine.routing import Route, check_request
from callwright.engine.settings import ToolRules
from callwright.engine.strategy import Abilities, ToolStrategy, decide
from callwright.engine.telling import Way, told_within
from callwright.engine.tokens import count, prompt_tokens
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

__all__ = ["Pipeline"]

Known = Callable[[str, Route], ModelInfo]
"""What the backend of that name says of a route's model."""
Window = Callable[[str, Route], int]
"""How much a route's model takes at the backend of that name, in tokens; 0 when nobody knows."""


class Pipeline:
    """Runs turns. Remembers what models' servers refused, tools or to hold an answer to a form, and what models thought
    before their calls."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        known: Known,
        window: Window,
        *,
        ids: IdFactory = make_call_id,
        templates: Mapping[str, PromptTemplates] = MappingProxyType({}),
    ) -> None:
        self._backends = backends
        self._known = known
        self._window = window
        self._templates = templates
        self._ids = ids
        self._thoughts = ThoughtMemory()
        self._refused: dict[tuple[str, str], frozenset[ToolStrategy]] = {}

    async def turn(
        self,
        ask: ClientRequest,
        route: Route,
        rules: ToolRules,
        report: TurnReport,
        continuing: Continuing | None = None,
    ) -> EventStream:
        """The events of one turn, in batches as they come; the last batch ends in `Finish`. `continuing` has the
        conversations of backends that keep them.

        Raises `RequestError` when the model cannot do what is asked, and `BackendError` when no answer will do.
        """
        thought, restored = self._thoughts.restored(report.caller, route, ask.request)
        request, names, repairs = mended(thought, route)
        report.mend((*restored, *repairs))
        check_request(request, route, (self._backends[name].wire for name in route.backends))
        report.model = route.name
        spent = Usage()
        told = request
        for times in itertools.count(1):
            attempt = Attempt(request, route, rules, self._ids, names, number=times)
            failure: BackendError | None = None
            try:
                async with aclosing(self._heard(ask, told, route, report, attempt, continuing)) as answer:
                    async for heard in answer:
                        if events := attempt.take(heard):
                            report.see(events)
                            yield events
                        if attempt.over:
                            break
            except BackendError as problem:
                if not problem.salvage or attempt.called:
                    if words := attempt.break_off():
                        yield words
                    raise
                # Half a call in an error is no answer, and the model can be asked again for a whole one.
                whole = msgspec.structs.replace(rules, truncated="drop")
                salvaged, failure = Attempt(request, route, whole, self._ids, names, number=times), problem
                salvaged.read_in(attempt.dialect)
                events = salvaged.take([TextDelta(problem.salvage), Finish("stop", (_salvaged(problem),))])
                if attempt.written and not salvaged.limits.call_count:
                    raise  # the client has heard a part of it, and would hear another answer after it
                attempt = salvaged
            else:
                events = attempt.stop() if attempt.over else []
            report.truncated = attempt.limits.is_truncated
            spent = total((spent, attempt.usage or await _counted(told, attempt)))
            verdict = _verdict(attempt, failure)
            if verdict is None:
                last = [*events, UsageSeen(spent), attempt.finish or Finish("stop")]
                report.see(last)
                self._thoughts.keep(report.caller, route, ask.request, attempt.thoughts)
                yield last
                return
            reason, shortcoming = verdict
            if times > rules.ask_again:
                report.again(reason, shortcoming)
                raise failure or unusable(reason, shortcoming, times)
            told, how = asked_again(request, shortcoming, times, tool=attempt.tried, said=attempt.said)
            report.again(reason, f"{shortcoming} ({how})")

    async def _heard(
        self,
        ask: ClientRequest,
        request: Request,
        route: Route,
        report: TurnReport,
        attempt: Attempt,
        continuing: Continuing | None,
    ) -> EventStream:
        """What the first backend that answers says."""
        waiting = deque(self._in_order(route))
        refused: frozenset[ToolStrategy] = frozenset()
        while waiting:
            backend = waiting[0]
            name = report.backend = backend.settings.name
            way = self._way(backend, request, route, attempt, refused)
            report.strategy, report.strategy_why = way.strategy, way.why
            place = await continuing.at(name) if continuing else None
            here = route
            if place is not None:
                here, way = place.told(route, way)
            try:
                whole, notes = await told_within(self._window(name, route), request, here, way)
            except RequestError as problem:
                waiting.popleft()
                if problem.code != CONTEXT_LENGTH_EXCEEDED or not self._has_larger(waiting, name, route):
                    raise
                report.again("other_backend", f"{name} has too small a window")
                continue
            report.mend(notes)
            attempt.read_in(way.reads)
            asyncio.get_running_loop().call_soon(attempt.prepare)
            begun = False
            try:
                extra = ask.extra if backend.wire == report.wire else {}
                if place is not None:
                    whole = place.unheard(whole, request)
                asking = place.answer(whole) if place is not None else backend.stream_response(whole, extra)
                taped = report.tape
                async with aclosing(taped.asking(backend, way, whole, extra, asking) if taped else asking) as answer:
                    async for heard in answer:
                        begun = True
                        self._remember(name, route, refused)
                        yield heard
            except BackendError as problem:
                if begun or problem.salvage:
                    raise
                if place is not None and place.is_lost(problem):
                    continue
                if _is_refused(way, problem, route):
                    refused |= {way.strategy}
                    continue
                waiting.popleft()
                refused = frozenset()
                if not ((problem.retryable or is_context_overflow(problem)) and waiting):
                    raise
                report.again("other_backend", f"{name} failed: {problem}")
            else:
                return

    def _has_larger(self, others: Iterable[Backend], name: str, route: Route) -> bool:
        """Whether another backend has a larger window than this one, or nobody knows how large its window is."""
        windows = [self._window(other.settings.name, route) for other in others]
        return any(not window or window > self._window(name, route) for window in windows)

    def _remember(self, backend: str, route: Route, refused: frozenset[ToolStrategy]) -> None:
        """Another way has worked: what was refused before it need not be tried again."""
        if refused:
            known = self._refused.get((backend, route.upstream), frozenset())
            self._refused[backend, route.upstream] = known | refused

    def _in_order(self, route: Route) -> list[Backend]:
        """The model's backends; one that is left alone after failures is tried only when there is no other."""
        backends = [self._backends[name] for name in route.backends]
        return sorted(backends, key=lambda backend: not backend.is_available)

    def _way(
        self, backend: Backend, request: Request, route: Route, attempt: Attempt, refused: frozenset[ToolStrategy]
    ) -> Way:
        name = backend.settings.name
        says = self._known(name, route).tools
        able = Abilities(
            kind=backend.settings.kind,
            tools=route.facts.tools if says is None else says,
            flavour=backend.flavour,
            refused=self._refused.get((name, route.upstream), frozenset()) | refused,
        )
        strategy, why = decide(route.settings.tools, request, able, failed=attempt.number > 1)
        reads, teaches, held = route.reads, route.teaches, None
        if strategy == "constrained":
            teaches = get_constraint_dialect(teaches)
            several = attempt.parallel and not route.diet.terse
            held = build_constraint(request.tools, teaches, request.tool_choice, parallel=several)
            reads = teaches = teaches if backend.flavour in GRAMMAR_FLAVOURS else ANSWER
        return Way(
            wire=backend.wire,
            strategy=strategy,
            why=why,
            reads=reads,
            teaches=teaches,
            held=held,
            templates=self._templates.get(route.prompt.templates) or built_in_templates(),
            first=attempt.first,
        )


def _is_refused(way: Way, problem: BackendError, route: Route) -> bool:
    """Whether a backend failed because of the way that the tools were given, so that another way may do."""
    if way.strategy == "native":
        return route.settings.tools == "auto" and problem.code == TOOLS_REFUSED
    # What servers say of a grammar or schema that they do not take has no words in common. The status has: 400 of
    # llama.cpp, vLLM and OpenAI, 500 of Ollama and of older llama.cpp.
    return way.strategy == "constrained" and problem.status in (400, 422, 500, 501)


def _verdict(attempt: Attempt, failure: BackendError | None) -> tuple[Reason, str] | None:
    """Why an answer will not do. A failure counts as an answer only if it holds a call."""
    if failure is not None and not attempt.limits.call_count:
        return "error", f"the backend failed on it: {failure}"
    return attempt.shortcoming


def _salvaged(problem: BackendError) -> Repair:
    return Repair("salvaged_from_error", f"the call was read from the backend's error: {problem}"[:300])


async def _counted(request: Request, attempt: Attempt) -> Usage:
    written = await count("".join(attempt.written)) + attempt.unkept // 4
    return Usage(await prompt_tokens(request), written)
