"""The pipeline: one turn, from a request to events, over the backends of its model.

    request ─ prepared: told ─▶ backend ─▶ attempt (dialect, guard, rules) ─▶ events
                  ▲                        │ will not do: empty, no call where one was required
                  └───── asked again ◀─────┘ within a budget

A backend that fails before its first event is followed by the model's next one. A failure that quotes the model's
output is read like an answer. Closing the turn closes the backend's answer, which ends the generation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from callwright.backends.base import Answer, Backend
from callwright.backends.faults import TOOLS_REFUSED
from callwright.engine.attempt import Attempt
from callwright.engine.prompts import built_in_templates
from callwright.engine.report import TurnReport, total
from callwright.engine.routing import Route, check_request
from callwright.engine.settings import ToolRules
from callwright.engine.tokens import count, prompt_tokens
from callwright.errors import BackendError
from callwright.events import Finish, TextDelta, UsageSeen
from callwright.ids import random_id
from callwright.model import Message, Repair, Request, Text, Usage
from callwright.prompt.final import with_final_answer
from callwright.prompt.prepare import Strategy, prepare
from callwright.prompt.templates import Templates
from callwright.turn import IdSource
from callwright.wire.base import Ask

__all__ = ["Pipeline"]

_NUDGE = "Your last answer cannot be used: {problem}. Answer again."


class _Way(NamedTuple):
    """One thing to try: a backend, and the request as it is told."""

    backend: Backend
    request: Request
    strategy: Strategy
    notes: tuple[Repair, ...]


class Pipeline:
    """Runs turns. Remembers which models' servers refused tools."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        *,
        ids: IdSource = random_id,
        templates: Mapping[str, Templates] = MappingProxyType({}),
    ) -> None:
        self._backends = backends
        self._templates = templates
        self._ids = ids
        self._untooled: set[tuple[str, str]] = set()

    async def turn(self, ask: Ask, route: Route, rules: ToolRules, report: TurnReport) -> Answer:
        """The events of one turn, in batches as they come; the last batch ends in `Finish`.

        Raises `RequestError` when the model cannot do what is asked, and `BackendError` when no answer will do.
        """
        request = with_final_answer(self._addressed(ask.request, route), route.prompt)
        check_request(request, route, (self._backends[name].wire for name in route.backends))
        report.model = route.name
        spent = Usage()
        shortcoming, failure = "", None
        for _ in range(rules.ask_again + 1):
            attempt = Attempt(request, route, rules, self._ids)
            failure = None
            try:
                async with aclosing(self._heard(ask, request, route, report)) as answer:
                    async for heard in answer:
                        if events := attempt.take(heard):
                            report.see(events)
                            yield events
                        if attempt.limits.done:
                            break
            except BackendError as problem:
                if not problem.salvage or attempt.written:
                    raise
                # Half a call in an error is no answer, and the model can be asked again for a whole one.
                whole = msgspec.structs.replace(rules, truncated="drop")
                attempt, failure = Attempt(request, route, whole, self._ids), problem
                events = attempt.take([TextDelta(problem.salvage), Finish("stop", (_salvaged(problem),))])
            else:
                events = attempt.stop() if attempt.limits.done else []
            report.truncated = attempt.limits.truncated
            spent = total((spent, attempt.usage or await _counted(request, attempt)))
            shortcoming = _verdict(attempt, failure)
            if not shortcoming:
                last = [*events, UsageSeen(spent), attempt.finish or Finish("stop")]
                report.see(last)
                yield last
                return
            report.asked_again.append(shortcoming)
            request = _nudged(request, shortcoming)
        raise failure or BackendError(
            f"the model gave no usable answer in {rules.ask_again + 1} tries: {shortcoming}; "
            "ask again, or try another model",
            kind="protocol",
        )

    async def _heard(self, ask: Ask, request: Request, route: Route, report: TurnReport) -> Answer:
        """What the first backend that answers says."""
        ways = deque(self._way(backend, request, route) for backend in self._in_order(route))
        while ways:
            way = ways.popleft()
            name = report.backend = way.backend.settings.name
            report.strategy = way.strategy
            report.told(way.notes)
            begun = False
            try:
                extra = ask.extra if way.backend.wire == report.wire else {}
                async with aclosing(way.backend.answer(way.request, extra)) as answer:
                    async for heard in answer:
                        begun = True
                        yield heard
            except BackendError as problem:
                if begun or problem.salvage:
                    raise
                if way.strategy == "native" and route.settings.tools == "auto" and problem.code == TOOLS_REFUSED:
                    self._untooled.add((name, route.upstream))
                    ways.appendleft(self._way(way.backend, request, route))
                elif not (problem.retryable and ways):
                    raise
                else:
                    report.asked_again.append(f"{name} failed: {problem}")
            else:
                return

    def _in_order(self, route: Route) -> list[Backend]:
        """The model's backends; one that is left alone after failures is tried only when there is no other."""
        backends = [self._backends[name] for name in route.backends]
        return sorted(backends, key=lambda backend: not backend.available)

    def _way(self, backend: Backend, request: Request, route: Route) -> _Way:
        words = route.settings.tools == "taught" or (backend.settings.name, route.upstream) in self._untooled
        strategy: Strategy = "taught" if words else "native"
        prepared = prepare(
            request,
            route.prompt,
            route.teaches,
            self._templates.get(route.prompt.templates) or built_in_templates(),
            first=not any(message.role == "assistant" for message in request.messages),
            strategy=strategy,
        )
        return _Way(backend, prepared.request, strategy if request.tools else "none", prepared.notes)

    def _addressed(self, request: Request, route: Route) -> Request:
        options = {**route.settings.options, **request.options}
        return msgspec.structs.replace(request, model=route.upstream, options=options)


def _verdict(attempt: Attempt, failure: BackendError | None) -> str:
    """Why an answer will not do. A failure counts as an answer only if it holds a call."""
    if failure is not None and not attempt.limits.passed:
        return f"the backend failed on it: {failure}"
    return attempt.shortcoming


def _salvaged(problem: BackendError) -> Repair:
    return Repair("salvaged_from_error", f"the call was read from the backend's error: {problem}"[:300])


def _nudged(request: Request, problem: str) -> Request:
    """The request with a word to the model at its end."""
    word = Message("user", (Text(_NUDGE.format(problem=problem)),))
    return msgspec.structs.replace(request, messages=(*request.messages, word))


async def _counted(request: Request, attempt: Attempt) -> Usage:
    written = await count("".join(attempt.written)) + attempt.unkept // 4
    return Usage(await prompt_tokens(request), written)
