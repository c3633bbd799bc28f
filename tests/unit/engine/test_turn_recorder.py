"""Tapes: what is recorded of a turn, and that nothing is without one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from callwright.engine import Engine, TurnReport
from callwright.engine import turn_recorder as tapes
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.turn_recorder import TurnRecorder
from callwright.errors import BackendError
from callwright.events import Event, Finish, ReasoningDelta, TextDelta
from callwright.model import Message, Request, Text
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake

if TYPE_CHECKING:
    import pytest

HELLO: list[Event] = [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("He"), TextDelta("llo"), Finish("stop")]


def run(tape: TurnRecorder | None, *backends: Fake, **options: Any) -> TurnReport:
    """One turn over these backends, read to its end."""
    named = {backend.settings.name: backend for backend in backends}
    engine = Engine([ModelSettings(name="m", backend=tuple(named))], named, ToolRules())
    report = TurnReport(wire="openai_chat", recorder=tape)
    request = Request("m", (Message("user", (Text("go"),)),))

    async def main() -> None:
        turn = engine.run_turn(ClientRequest(request=request, **options), engine.get_route("m"), ToolRules(), report)
        async with aclosing(tape.record_turn(turn) if tape else turn) as taped:
            async for _ in taped:
                pass

    asyncio.run(main())
    return report


def test_a_tape_has_what_was_told_said_and_sent_with_deltas_joined() -> None:
    tape = TurnRecorder()
    backend = Fake(HELLO)
    run(tape, backend, extra={"logit_bias": {}})
    (asked,) = tape.attempts
    assert asked.events == (ReasoningDelta("hm"), TextDelta("Hello"), Finish("stop"))
    assert (asked.request, asked.extra) == (backend.asked[0], {"logit_bias": {}})
    assert (asked.backend, asked.kind, asked.wire, asked.strategy) == ("one", "openai", "openai_chat", "none")
    assert tape.client_events[:2] == asked.events[:2]
    assert not tape.is_truncated


def test_each_attempt_has_the_reason_for_the_next() -> None:
    tape = TurnRecorder()
    down = BackendError("it is down", kind="unavailable", retryable=True, status=503, retry_after=1.5, code="x")
    report = run(tape, Fake(down), Fake([Finish("stop")], HELLO, name="two"))
    first, second, third, last = tape.attempts
    assert first.failure is not None
    assert (first.failure.message, first.failure.kind, first.failure.status) == ("it is down", "unavailable", 503)
    assert (first.failure.retryable, first.failure.retry_after, first.failure.code) == (True, 1.5, "x")
    assert [each.backend for each in tape.attempts] == ["one", "two", "one", "two"]
    assert [each.retry_reason for each in (first, second, third)] == report.retries
    assert report.retry_reasons == ["other_backend", "empty", "other_backend"]
    assert (last.retry_reason, last.failure) == ("", None)


def test_without_words_only_the_course_of_things_is_recorded() -> None:
    tape = TurnRecorder(keep_content=False)
    run(tape, Fake(HELLO), extra={"user": "me"})
    (asked,) = tape.attempts
    assert (asked.request, asked.extra, asked.events, tape.client_events) == (None, {}, (), ())
    assert asked.backend == "one"


def test_a_model_that_does_not_stop_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "_MAX_CHARACTERS", 10)
    tape = TurnRecorder()
    run(tape, Fake([*(TextDelta("word") for _ in range(100)), Finish("stop")]))
    assert tape.is_truncated
    assert tape.attempts[0].events == (TextDelta("wordword"),)
    assert tape.client_events == (TextDelta("wordword"),)


def test_a_turn_without_a_tape_is_the_same() -> None:
    assert run(None, Fake(HELLO)).finish_reason == "stop"
