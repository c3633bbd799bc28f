"""The pipeline: one turn, from a request to events, over the backends of its model.

    request ─ mended, dieted ─▶ told, within the window ─▶ backend ─▶ attempt (dialect, guard, rules) ─▶ events
                    ▲                                                    │ will not do: empty, no call where required
                    └──────────────── asked again ◀──────────────────────┘ within a budget

A backend that fails before its first event is followed by the model's next one. A failure that quotes the model's
output is read like an answer. Closing the turn closes the backend's answer, which ends the generation.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import msgspec

from callwright.backends.base import Answer, Backend
from callwright.backends.faults import TOOLS_REFUSED
from callwright.engine.attempt import Attempt
from callwright.engine.prepare import prepared, told
from callwright.engine.report import TurnReport
from callwright.engine.routing import Route, check_request
from callwright.engine.settings import ToolRules
from callwright.engine.tokens import at_most, count, prompt_size, prompt_tokens
from callwright.errors import BackendError
from callwright.events import Finish, TextDelta, UsageSeen
from callwright.ids import random_id
from callwright.model import Message, Repair, Request, Text, Usage
from callwright.prompt.window import Room, fitted
from callwright.turn import IdSource
from callwright.wire.base import Ask

__all__ = ["Pipeline"]

_NUDGE = "Your last answer cannot be used: {problem}. Answer again."


class _Way(NamedTuple):
    """One thing to try: a backend, and how the model gets its tools there."""

    backend: Backend
    strategy: str


class Pipeline:
    """Runs turns. Remembers which models' servers refused tools. `window` knows how much a model takes, or 0."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        *,
        window: Callable[[str, Route], int] = lambda _, route: route.settings.context,
        ids: IdSource = random_id,
    ) -> None:
        self._backends = backends
        self._window = window
        self._ids = ids
        self._untooled: set[tuple[str, str]] = set()

    async def turn(self, ask: Ask, route: Route, rules: ToolRules, report: TurnReport) -> Answer:
        """The events of one turn, in batches as they come; the last batch ends in `Finish`.

        Raises `RequestError` when the model cannot do what is asked, and `BackendError` when no answer will do.
        """
        request, names, repairs = prepared(ask.request, route)
        report.mend(repairs)
        check_request(request, route, (self._backends[name].wire for name in route.backends))
        report.model = route.name
        spent = Usage()
        shortcoming, failure = "", None
        for _ in range(rules.ask_again + 1):
            attempt = Attempt(request, route, rules, self._ids, names)
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
                attempt, failure = Attempt(request, route, whole, self._ids, names), problem
                events = attempt.take([TextDelta(problem.salvage), Finish("stop", (_salvaged(problem),))])
            else:
                events = attempt.stop() if attempt.limits.done else []
            report.truncated = attempt.limits.truncated
            spent = _sum(spent, attempt.usage or await _counted(request, attempt))
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
            begun = False
            try:
                extra = ask.extra if way.backend.wire == report.wire else {}
                whole = await self._told(way, request, route, report)
                async with aclosing(way.backend.answer(whole, extra)) as answer:
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
        if not request.tools:
            return _Way(backend, "none")
        if route.settings.tools == "taught" or (backend.settings.name, route.upstream) in self._untooled:
            return _Way(backend, "taught")
        return _Way(backend, "native")

    async def _told(self, way: _Way, request: Request, route: Route, report: TurnReport) -> Request:
        """The request as the backend gets it. `RequestError` when it does not fit the model's window."""
        diet, notes = route.diet, list[Repair]()
        tell = partial(told, route=route, wire=way.backend.wire, strategy=way.strategy)
        whole = tell(request, notes=notes)
        reserve = min(diet.reserve, request.options.get("max_tokens") or diet.reserve)
        room = Room(self._window(way.backend.settings.name, route), reserve)
        if room.window and diet.overflow != "send" and at_most(whole) > room.prompt:
            size = lambda each: prompt_size(tell(each, notes=[]))  # noqa: E731
            fit = partial(fitted, request, room, size, condense=diet.overflow == "condense")
            shorter, repairs = await asyncio.to_thread(fit)
            whole, notes = tell(shorter, notes=[]), [*notes, *repairs]
        report.mend(notes)
        return whole


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


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*(getattr(one, name) + getattr(other, name) for name in Usage.__struct_fields__))
