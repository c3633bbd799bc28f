"""Turns: a client's request for an answer, from its bytes to its last byte, on any wire.

    body ─ decode ─▶ Ask ─ route, profile, limits ─▶ engine ─▶ events ─ encode ─▶ client

An answer in one piece is the stream collected. A failure before the first byte is an error with a status, one after it
an ending in the client's own form. A client that leaves ends the turn, and with it the backend's generation.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.engine import TurnReport
from callwright.errors import BackendError, CallwrightError
from callwright.events import CallDelta, Event, Finish, ReasoningDelta, TextDelta
from callwright.gateway import problems
from callwright.gateway.choices import side_by_side
from callwright.gateway.exchange import Exchange, exchange
from callwright.gateway.memory import Memory
from callwright.gateway.outflow import Outflow
from callwright.gateway.plan import Plan, planned
from callwright.gateway.record import TurnRecord, learnt
from callwright.gateway.refusals import Refusals
from callwright.gateway.service import Service
from callwright.turn import Collected, collect
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, ServerCodec
from callwright.wire.openai_responses import build_stored_messages, find_referenced_ids, resolve_references

__all__ = ["Turns"]

_LEFT = ErrorResponse(status=499, message="The client left.", fault="client", kind="client_left")
_MOST_KEPT = 64_000_000
"""Characters of an answer that is kept until its end: one in one piece, or one that may be named later."""
_SAMPLED = 16
"""Every so manieth batch is timed for the histogram."""


class Turns:
    """Makes the endpoints that ask models."""

    def __init__(self, service: Service, refusals: Refusals, memory: Memory | None = None) -> None:
        self._service = service
        self._refusals = refusals
        self._memory = memory or Memory()

    def endpoint(self, wire: ServerCodec) -> ASGIApp:
        """The endpoint of one wire."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            opened = exchange(scope)
            turn = _Turn(self._service, wire, opened, self._memory)
            leaving: asyncio.Task[None] | None = None
            try:
                plan = await turn.read(await _body(receive))
                leaving = asyncio.create_task(_cancel_when_gone(turn, receive, asyncio.current_task()))
                await turn.answer(plan, scope, receive, send)
            except ClientDisconnect:
                turn.problem = _LEFT
            except asyncio.CancelledError:
                ended = turn.cancelled(gone=leaving is not None and leaving.done())
                if ended is None:
                    raise
                if ended is not _LEFT and not await turn.fail(ended):
                    await self._refusals.answer(scope, ended)(scope, receive, send)
            except CallwrightError as error:
                problem = turn.failed(error)
                await self._refusals.answer(scope, problem)(scope, receive, send)
            finally:
                if leaving is not None:
                    leaving.cancel()
                if isinstance(bug := sys.exception(), Exception) and turn.problem is None:
                    turn.failed(bug)  # whoever stands outside answers, and logs it
                turn.close()

        return answer


async def _body(receive: Receive) -> bytes:
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _cancel_when_gone(turn: _Turn, receive: Receive, task: asyncio.Task[None] | None) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None and not turn.over:
        task.cancel()


class _Turn:
    """One request on its way. What is learnt is kept for the record, also when it fails on the way."""

    def __init__(self, service: Service, wire: ServerCodec, opened: Exchange, memory: Memory) -> None:
        self._service = service
        self._wire = wire
        self._opened = opened
        self._memory = memory
        self._began = time.perf_counter()
        self._first_byte: float | None = None
        self._head = ResponseHead(secrets.token_hex(12), int(time.time()), "")
        self._reports: list[TurnReport] = []
        self._draft = service.scribe.draft(opened.headers)
        self._out: Outflow | None = None
        self._remembers = wire.name == "openai_responses"
        self._said: list[Event] = []
        """All events so far, where the answer is to be remembered."""
        self._kept = 0
        self._plan: Plan | None = None
        self.problem: ErrorResponse | None = None
        self.over = False
        """The answer is on its way as a whole: a client that closes its connection now has not left."""

    async def read(self, body: bytes) -> Plan:
        """Decode the request, and find out what it means here."""
        if self._draft is not None:
            self._draft.read(body)
        ask = self._wire.decode_request(body)
        self._head = ResponseHead(self._head.id, self._head.created, ask.request.model)
        plan = await planned(ask, self._opened, may_be_empty=self._wire.name.startswith("ollama"))
        self._plan = plan._replace(ask=self._recalled(ask))
        return self._plan

    async def answer(self, plan: Plan, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask the model, and send what it says."""
        if plan.ask.stream:
            await self._stream(plan, send)
            return
        turns = await self._whole(plan)
        self.over = True
        headers = self._record().headers() if self._opened.state.server.telemetry else None
        body = self._wire.encode_response(plan.ask, self._head, plan.style, turns)
        await Response(body, headers=headers, media_type="application/json")(scope, receive, send)

    # ── the two ways ─────────────────────────────────────────────────────────────────────────────

    async def _whole(self, plan: Plan) -> list[Collected]:
        events: list[list[Event]] = [[] for _ in range(plan.ask.choices)]
        async with aclosing(self._batches(plan)) as batches:
            async for choice, batch in batches:
                self._keep(batch)
                events[choice] += batch
        turns = [collect(each) for each in events]
        self._remember(plan, turns[0])
        return turns

    async def _stream(self, plan: Plan, send: Send) -> None:
        server = self._opened.state.server
        out = self._out = Outflow(
            send,
            self._wire.create_encoder(plan.ask, self._head, plan.style),
            self._wire.content_type,
            heartbeat_seconds=server.heartbeat_seconds,
            open_seconds=plan.profile.first_byte_wait,
        )
        try:
            await self._pump(plan, out)
        except CallwrightError as error:
            if not out.opened:
                raise
            self.over = True
            await out.fail(self.failed(error))
        else:
            self.over = True
            await out.end(self._record().comment() if server.telemetry else "")

    async def _pump(self, plan: Plan, out: Outflow) -> None:
        """Every batch to the client, as it comes."""
        sent = 0
        async with aclosing(self._batches(plan)) as batches:
            async for choice, events in batches:
                began = time.perf_counter() if sent % _SAMPLED == 0 else 0.0
                await out.write(events, choice)
                if began:
                    self._service.metrics.chunk.observe(time.perf_counter() - began)
                if not sent:
                    self._first_byte = time.perf_counter() - self._began
                if self._remembers:
                    self._keep(events)
                    self._said += events
                sent += 1
        if self._said:
            self._remember(plan, collect(self._said))

    def _keep(self, events: list[Event]) -> None:
        """Events are kept: within bounds, for a model that does not stop must not fill the memory."""
        self._kept += sum(
            len(event.text) for event in events if isinstance(event, TextDelta | ReasoningDelta | CallDelta)
        )
        if self._kept > _MOST_KEPT:
            raise BackendError(f"the model wrote more than {_MOST_KEPT} characters and did not stop", kind="unusable")

    def _batches(self, plan: Plan) -> AsyncGenerator[tuple[int, list[Event]], None]:
        engine = self._opened.state.engine
        self._reports = [TurnReport(wire=self._wire.name, caller=self._caller) for _ in range(plan.ask.choices)]
        if not plan.ask.request.messages:
            return _loaded()
        if self._draft is not None:
            self._draft.follow(self._reports)
        turns = [engine.turn(plan.ask, plan.route, plan.rules, report) for report in self._reports]
        return side_by_side(turns if self._draft is None else self._draft.sent(turns))

    # ── endings ──────────────────────────────────────────────────────────────────────────────────

    def failed(self, error: Exception) -> ErrorResponse:
        """What the client gets to see of an error."""
        status = self._plan.profile.backend_status if self._plan else 0
        self.problem = problems.of(error, request_id=self._opened.id, backend_status=status)
        return self.problem

    def cancelled(self, *, gone: bool) -> ErrorResponse | None:
        """What it is to the client that the turn was ended from outside. None when it is not ours to tell."""
        if not gone and (not self._service.ending or (self.over and self._out is None)):
            return None
        self.problem = _LEFT if gone else problems.stopping()
        if task := asyncio.current_task():
            task.uncancel()
        return self.problem

    async def fail(self, problem: ErrorResponse) -> bool:
        """End the stream with a failure. False when none has begun."""
        if self._out is None or not self._out.opened:
            return False
        await self._out.fail(problem)
        return True

    def close(self) -> None:
        """Count the turn; it is over, however it ended."""
        if self._out is not None:
            self._out.stop()
        record = self._record()
        self._service.limits.spend(self._opened.key, record.usage.prompt_tokens + record.usage.completion_tokens)
        self._service.finish(record)
        if self._draft is not None:
            self._service.scribe.put(self._draft, record, self.problem)

    def _record(self) -> TurnRecord:
        opened, plan, problem = self._opened, self._plan, self.problem
        return TurnRecord(
            request_id=opened.id,
            trace_id=opened.trace[3:35],
            wire=self._wire.name,
            key=self._caller,
            stream=self._out is not None,
            status=problem.status if problem else 200,
            seconds=round(time.perf_counter() - self._began, 4),
            first_byte_seconds=self._first_byte,
            fault=problem.fault if problem else "",
            error=problem.kind if problem else "",
            **(plan.known if plan else {"model": ""}),
            **learnt(self._reports),
        )

    # ── conversations that the client only names ─────────────────────────────────────────────────

    def _recalled(self, ask: ClientRequest) -> ClientRequest:
        if not self._remembers:
            return ask
        known = self._memory.recall(self._caller, find_referenced_ids(ask))
        if self._draft is not None:
            self._draft.recalled = known
        return resolve_references(ask, known)

    def _remember(self, plan: Plan, turn: Collected) -> None:
        if self._remembers:
            self._memory.keep(self._caller, self._head.id, build_stored_messages(plan.ask, turn))

    @property
    def _caller(self) -> str:
        return self._opened.key.name if self._opened.key else ""


async def _loaded() -> AsyncGenerator[tuple[int, list[Event]], None]:
    """A request without messages, which clients of Ollama send to have a model loaded: there is nothing to ask it."""
    yield 0, [Finish("stop")]
