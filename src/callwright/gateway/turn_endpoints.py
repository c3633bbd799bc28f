"""Handles turns: a client's request for an answer, from its first byte to its last, on any wire.

    body ─ decode ─▶ ClientRequest ─ route, profile, limits ─▶ engine ─▶ events ─ encode ─▶ client

A response that is not streamed is the stream, collected. A failure before the first byte is an error with a status; a
failure after it ends the stream in the client's own format. When the client disconnects, the turn and the backend's
generation end.
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
from callwright.gateway import error_mapping
from callwright.gateway.choices import merge_choices
from callwright.gateway.error_responder import ErrorResponder
from callwright.gateway.request_context import RequestContext, get_request_context
from callwright.gateway.response_history import ResponseHistory
from callwright.gateway.response_stream import ResponseStream
from callwright.gateway.service import GatewayService
from callwright.gateway.turn_plan import TurnPlan, plan_turn
from callwright.gateway.turn_record import TurnRecord, summarize_reports
from callwright.turn import Collected, collect
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, ServerCodec
from callwright.wire.openai_responses import build_stored_messages, find_referenced_ids, resolve_references

__all__ = ["TurnEndpoints"]

_CLIENT_DISCONNECTED = ErrorResponse(
    status=499, message="The client disconnected.", fault="client", kind="client_disconnected"
)
_MAX_STORED_CHARACTERS = 64_000_000
"""Maximum number of characters of an answer that is held until its end: not streamed, or stored for later requests."""
_SAMPLE_INTERVAL = 16
"""One batch in 16 is timed for the histogram."""


class TurnEndpoints:
    """Builds the endpoints that run turns."""

    def __init__(
        self, service: GatewayService, error_responder: ErrorResponder, history: ResponseHistory | None = None
    ) -> None:
        self._service = service
        self._error_responder = error_responder
        self._history = history or ResponseHistory()

    def build_endpoint(self, wire: ServerCodec) -> ASGIApp:
        """Build the endpoint of one wire."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            context = get_request_context(scope)
            turn = _TurnHandler(self._service, wire, context, self._history)
            disconnect_watcher: asyncio.Task[None] | None = None
            try:
                plan = await turn.read_request(await _read_body(receive))
                disconnect_watcher = asyncio.create_task(_cancel_on_disconnect(turn, receive, asyncio.current_task()))
                await turn.send_answer(plan, scope, receive, send)
            except ClientDisconnect:
                turn.problem = _CLIENT_DISCONNECTED
            except asyncio.CancelledError:
                problem = turn.record_cancellation(
                    is_disconnected=disconnect_watcher is not None and disconnect_watcher.done()
                )
                if problem is None:
                    raise
                if problem is not _CLIENT_DISCONNECTED and not await turn.fail_stream(problem):
                    await self._error_responder.build_response(scope, problem)(scope, receive, send)
            except CallwrightError as error:
                problem = turn.record_failure(error)
                await self._error_responder.build_response(scope, problem)(scope, receive, send)
            finally:
                if disconnect_watcher is not None:
                    disconnect_watcher.cancel()
                if isinstance(bug := sys.exception(), Exception) and turn.problem is None:
                    turn.record_failure(bug)  # the middleware outside sends the response and logs the exception
                turn.close()

        return answer


async def _read_body(receive: Receive) -> bytes:
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _cancel_on_disconnect(turn: _TurnHandler, receive: Receive, task: asyncio.Task[None] | None) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None and not turn.is_done:
        task.cancel()


class _TurnHandler:
    """Handles one request. Collects what the record needs, also when the request fails."""

    def __init__(
        self, service: GatewayService, wire: ServerCodec, context: RequestContext, history: ResponseHistory
    ) -> None:
        self._service = service
        self._wire = wire
        self._context = context
        self._history = history
        self._started_at = time.perf_counter()
        self._first_byte: float | None = None
        self._head = ResponseHead(secrets.token_hex(12), int(time.time()), "")
        self._reports: list[TurnReport] = []
        self._entry_builder = service.journal_writer.start_entry(context.headers)
        self._response_stream: ResponseStream | None = None
        self._stores_conversation = wire.name == "openai_responses"
        self._events: list[Event] = []
        """All events so far, when the conversation is stored."""
        self._stored_characters = 0
        self._plan: TurnPlan | None = None
        self.problem: ErrorResponse | None = None
        self.is_done = False
        """The whole response has been handed over: closing the connection is no longer a disconnect."""

    async def read_request(self, body: bytes) -> TurnPlan:
        """Decode the request and plan its turn."""
        if self._entry_builder is not None:
            self._entry_builder.set_body(body)
        client_request = self._wire.decode_request(body)
        self._head = ResponseHead(self._head.id, self._head.created, client_request.request.model)
        plan = await plan_turn(client_request, self._context, may_be_empty=self._wire.name.startswith("ollama"))
        self._plan = plan._replace(client_request=self._resume_conversation(client_request))
        return self._plan

    async def send_answer(self, plan: TurnPlan, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the turn and send its answer."""
        if plan.client_request.stream:
            await self._stream_answer(plan, send)
            return
        turns = await self._collect_turns(plan)
        self.is_done = True
        headers = self._build_record().build_headers() if self._context.state.server.telemetry else None
        body = self._wire.encode_response(plan.client_request, self._head, plan.style, turns)
        await Response(body, headers=headers, media_type="application/json")(scope, receive, send)

    # ── streamed and not streamed ────────────────────────────────────────────────────────────────

    async def _collect_turns(self, plan: TurnPlan) -> list[Collected]:
        events: list[list[Event]] = [[] for _ in range(plan.client_request.choices)]
        async with aclosing(self._start_turns(plan)) as batches:
            async for choice, batch in batches:
                self._check_size(batch)
                events[choice] += batch
        turns = [collect(each) for each in events]
        self._store_conversation(plan, turns[0])
        return turns

    async def _stream_answer(self, plan: TurnPlan, send: Send) -> None:
        server = self._context.state.server
        stream = self._response_stream = ResponseStream(
            send,
            self._wire.create_encoder(plan.client_request, self._head, plan.style),
            self._wire.content_type,
            heartbeat_seconds=server.heartbeat_seconds,
            open_seconds=plan.profile.first_byte_seconds,
        )
        try:
            await self._pump_batches(plan, stream)
        except CallwrightError as error:
            if not stream.has_started:
                raise
            self.is_done = True
            await stream.fail(self.record_failure(error))
        else:
            self.is_done = True
            await stream.end(self._build_record().build_comment() if server.telemetry else "")

    async def _pump_batches(self, plan: TurnPlan, stream: ResponseStream) -> None:
        """Send every batch to the client as it arrives."""
        sent = 0
        async with aclosing(self._start_turns(plan)) as batches:
            async for choice, events in batches:
                started_at = time.perf_counter() if sent % _SAMPLE_INTERVAL == 0 else 0.0
                await stream.write(events, choice)
                if started_at:
                    self._service.metrics.chunk.observe(time.perf_counter() - started_at)
                if not sent:
                    self._first_byte = time.perf_counter() - self._started_at
                if self._stores_conversation:
                    self._check_size(events)
                    self._events += events
                sent += 1
        if self._events:
            self._store_conversation(plan, collect(self._events))

    def _check_size(self, events: list[Event]) -> None:
        """Limit the size of the events held in memory, because a model may not stop. Raises `BackendError`."""
        self._stored_characters += sum(
            len(event.text) for event in events if isinstance(event, TextDelta | ReasoningDelta | CallDelta)
        )
        if self._stored_characters > _MAX_STORED_CHARACTERS:
            raise BackendError(
                f"the model wrote more than {_MAX_STORED_CHARACTERS} characters and did not stop", kind="unusable"
            )

    def _start_turns(self, plan: TurnPlan) -> AsyncGenerator[tuple[int, list[Event]], None]:
        engine = self._context.state.engine
        self._reports = [
            TurnReport(wire=self._wire.name, caller=self._caller_name) for _ in range(plan.client_request.choices)
        ]
        if not plan.client_request.request.messages:
            return _iter_empty_answer()
        if self._entry_builder is not None:
            self._entry_builder.attach_recorders(self._reports)
        turns = [engine.run_turn(plan.client_request, plan.route, plan.rules, report) for report in self._reports]
        return merge_choices(turns if self._entry_builder is None else self._entry_builder.record_turns(turns))

    # ── endings ──────────────────────────────────────────────────────────────────────────────────

    def record_failure(self, error: Exception) -> ErrorResponse:
        """Record a failure, and return the error for the client."""
        status = self._plan.profile.backend_status if self._plan else 0
        self.problem = error_mapping.map_error(error, request_id=self._context.id, backend_status=status)
        return self.problem

    def record_cancellation(self, *, is_disconnected: bool) -> ErrorResponse | None:
        """Record a cancellation, and return the error for the client. None when it must be raised on."""
        if not is_disconnected and (
            not self._service.is_cancelling or (self.is_done and self._response_stream is None)
        ):
            return None
        self.problem = _CLIENT_DISCONNECTED if is_disconnected else error_mapping.build_shutdown_error()
        if task := asyncio.current_task():
            task.uncancel()
        return self.problem

    async def fail_stream(self, problem: ErrorResponse) -> bool:
        """End the stream with an error. Returns False when the stream has not begun."""
        if self._response_stream is None or not self._response_stream.has_started:
            return False
        await self._response_stream.fail(problem)
        return True

    def close(self) -> None:
        """Count and journal the turn. Called once, however the turn ended."""
        if self._response_stream is not None:
            self._response_stream.cancel_timers()
        record = self._build_record()
        self._service.limits.add_tokens(self._context.key, record.usage.prompt_tokens + record.usage.completion_tokens)
        self._service.finish_turn(record)
        if self._entry_builder is not None:
            self._service.journal_writer.queue_entry(self._entry_builder, record, self.problem)

    def _build_record(self) -> TurnRecord:
        context, plan, problem = self._context, self._plan, self.problem
        return TurnRecord(
            request_id=context.id,
            trace_id=context.traceparent[3:35],
            wire=self._wire.name,
            key=self._caller_name,
            stream=self._response_stream is not None,
            status=problem.status if problem else 200,
            seconds=round(time.perf_counter() - self._started_at, 4),
            first_byte_seconds=self._first_byte,
            fault=problem.fault if problem else "",
            error=problem.kind if problem else "",
            **(plan.record_fields if plan else {"model": ""}),
            **summarize_reports(self._reports),
        )

    # ── conversations that the client only names ─────────────────────────────────────────────────

    def _resume_conversation(self, client_request: ClientRequest) -> ClientRequest:
        if not self._stores_conversation:
            return client_request
        conversations = self._history.find_conversations(self._caller_name, find_referenced_ids(client_request))
        if self._entry_builder is not None:
            self._entry_builder.named_conversations = conversations
        return resolve_references(client_request, conversations)

    def _store_conversation(self, plan: TurnPlan, turn: Collected) -> None:
        if self._stores_conversation:
            self._history.store_conversation(
                self._caller_name, self._head.id, build_stored_messages(plan.client_request, turn)
            )

    @property
    def _caller_name(self) -> str:
        return self._context.key.name if self._context.key else ""


async def _iter_empty_answer() -> AsyncGenerator[tuple[int, list[Event]], None]:
    """Answer a request without messages, which clients of Ollama send to load a model."""
    yield 0, [Finish("stop")]
