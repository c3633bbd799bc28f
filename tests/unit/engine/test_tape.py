"""Tapes: what is recorded of a turn, and that nothing is without one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from callwright.engine import Engine, TurnReport
from callwright.engine import tape as tapes
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.tape import Tape
from callwright.errors import BackendError
from callwright.events import Event, Finish, ReasoningDelta, TextDelta
from callwright.model import Message, Request, Text
from callwright.wire.base import ClientRequest
from tests.support.fake import Fake

if TYPE_CHECKING:
    import pytest

HELLO: list[Event] = [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("He"), TextDelta("llo"), Finish("stop")]


def run(tape: Tape | None, *backends: Fake, **options: Any) -> TurnReport:
    """One turn over these backends, read to its end."""
    named = {backend.settings.name: backend for backend in backends}
    engine = Engine([ModelSettings(name="m", backend=tuple(named))], named, ToolRules())
    report = TurnReport(wire="openai_chat", tape=tape)
    request = Request("m", (Message("user", (Text("go"),)),))

    async def main() -> None:
        turn = engine.turn(ClientRequest(request=request, **options), engine.route("m"), ToolRules(), report)
        async with aclosing(tape.sent(turn) if tape else turn) as taped:
            async for _ in taped:
                pass

    asyncio.run(main())
    return report


def test_a_tape_has_what_was_told_said_and_sent_with_deltas_joined() -> None:
    tape = Tape()
    backend = Fake(HELLO)
    run(tape, backend, extra={"logit_bias": {}})
    (asked,) = tape.asked
    assert asked.events == (ReasoningDelta("hm"), TextDelta("Hello"), Finish("stop"))
    assert (asked.request, asked.extra) == (backend.asked[0], {"logit_bias": {}})
    assert (asked.backend, asked.kind, asked.wire, asked.strategy) == ("one", "openai", "openai_chat", "none")
    assert tape.got[:2] == asked.events[:2]
    assert not tape.cut


def test_each_attempt_has_the_reason_for_the_next() -> None:
    tape = Tape()
    down = BackendError("it is down", kind="unavailable", retryable=True, status=503, retry_after=1.5, code="x")
    report = run(tape, Fake(down), Fake([Finish("stop")], HELLO, name="two"))
    first, second, third, last = tape.asked
    assert first.failure is not None
    assert (first.failure.message, first.failure.kind, first.failure.status) == ("it is down", "unavailable", 503)
    assert (first.failure.retryable, first.failure.retry_after, first.failure.code) == (True, 1.5, "x")
    assert [each.backend for each in tape.asked] == ["one", "two", "one", "two"]
    assert [each.retry_reason for each in (first, second, third)] == report.asked_again
    assert report.reasons == ["other_backend", "empty", "other_backend"]
    assert (last.retry_reason, last.failure) == ("", None)


def test_without_words_only_the_course_of_things_is_recorded() -> None:
    tape = Tape(words=False)
    run(tape, Fake(HELLO), extra={"user": "me"})
    (asked,) = tape.asked
    assert (asked.request, asked.extra, asked.events, tape.got) == (None, {}, (), ())
    assert asked.backend == "one"


def test_a_model_that_does_not_stop_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "_MOST", 10)
    tape = Tape()
    run(tape, Fake([*(TextDelta("word") for _ in range(100)), Finish("stop")]))
    assert tape.cut
    assert tape.asked[0].events == (TextDelta("wordword"),)
    assert tape.got == (TextDelta("wordword"),)


def test_a_turn_without_a_tape_is_the_same() -> None:
    assert run(None, Fake(HELLO)).finish == "stop"
