"""Records turns in the journal that a program in this process runs on the engine, without HTTP.

A row has the form of one that came over `openai_chat`, the request written as that API has it, so that
`callwright journal` lists, shows and replays it as any other.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import aclosing

from callwright.backends.base import EventStream
from callwright.engine import ModelRoute, TurnReport
from callwright.errors import CallwrightError
from callwright.gateway.error_mapping import map_error
from callwright.gateway.journal_writer import JournalWriter
from callwright.gateway.turn_record import TurnRecord, summarize_reports
from callwright.model import Request
from callwright.wire import CLIENT_CODECS
from callwright.wire.base import ErrorResponse

__all__ = ["LocalTurnJournal"]

_WIRE = "openai_chat"
_STOPPED = ErrorResponse(
    status=499, message="The program stopped the turn.", fault="client", kind="client_disconnected"
)

_BUG = map_error(BaseException())


class LocalTurnJournal:
    """Records the turns of one program. `client` is its name in the journal, such as `agent`."""

    def __init__(self, writer: JournalWriter, client: str) -> None:
        self._writer = writer
        self._client = client

    async def record_turn(
        self, request: Request, route: ModelRoute, report: TurnReport, turn: EventStream
    ) -> EventStream:
        """Wrap a turn so that it is recorded. Its entry is queued when the turn ends, however it ends."""
        builder = self._writer.start_entry({})
        if builder is None:
            async with aclosing(turn):
                async for events in turn:
                    yield events
            return
        if builder.keeps_content:
            builder.set_body(CLIENT_CODECS[_WIRE].encode_request(request, {}))
        builder.attach_recorders([report])
        clock = _TurnClock()
        problem: ErrorResponse | None = _BUG
        try:
            async with aclosing(builder.record_turns([turn])[0]) as recorded:
                async for events in recorded:
                    clock.mark_first_byte()
                    yield events
            problem = None
        except CallwrightError as error:
            problem = map_error(error)
            raise
        except (GeneratorExit, asyncio.CancelledError):
            problem = None if report.finish_reason else _STOPPED
            raise
        finally:
            self._writer.queue_entry(builder, self._build_record(route, report, clock, problem), problem)

    def _build_record(
        self, route: ModelRoute, report: TurnReport, clock: _TurnClock, problem: ErrorResponse | None
    ) -> TurnRecord:
        return TurnRecord(
            request_id=f"req_{secrets.token_hex(12)}",
            wire=_WIRE,
            model=route.settings.name,
            client=self._client,
            stream=True,
            status=problem.status if problem else 200,
            seconds=clock.elapsed_seconds,
            first_byte_seconds=clock.first_byte_seconds,
            fault=problem.fault if problem else "",
            error=problem.kind if problem else "",
            **summarize_reports([report]),
        )


class _TurnClock:
    """Measures how long one turn takes."""

    def __init__(self) -> None:
        self._started_at = time.perf_counter()
        self.first_byte_seconds: float | None = None

    def mark_first_byte(self) -> None:
        if self.first_byte_seconds is None:
            self.first_byte_seconds = self.elapsed_seconds

    @property
    def elapsed_seconds(self) -> float:
        return round(time.perf_counter() - self._started_at, 4)
