"""The serving half: `POST /v1/responses`, streamed or whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from callwright.events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningSealed,
    TextDelta,
    UsageSeen,
)
from callwright.turn import Collected
from callwright.wire.base import Ask, Encoder, Head, Problem, Style
from callwright.wire.openai_errors import error_body
from callwright.wire.openai_responses.encoder import ResponsesEncoder
from callwright.wire.openai_responses.request import decode

__all__ = ["ServedResponses"]


class ServedResponses:
    """Reads requests and writes answers."""

    name = "openai_responses"
    content_type = "text/event-stream"

    def decode(self, body: bytes) -> Ask:
        """Read a request; `RequestError` names the field that is wrong."""
        return decode(body)

    def encoder(self, ask: Ask, head: Head, style: Style) -> Encoder:
        """A writer of one stream."""
        return ResponsesEncoder(ask, head, style)

    def whole(self, ask: Ask, head: Head, style: Style, turns: Sequence[Collected]) -> bytes:
        """The response that a stream of the same turn would end with, for it is made by writing one."""
        encoder = ResponsesEncoder(ask, head, style)
        encoder.encode([event for turn in turns[:1] for event in _events(turn)])
        encoder.end()
        return msgspec.json.encode(encoder.answer.body())

    def problem(self, problem: Problem) -> bytes:
        """The body of an error that came before the first byte."""
        return error_body(problem)


def _events(turn: Collected) -> Iterator[Event]:
    """A turn told again, each thing in one piece."""
    for thought in turn.thoughts:
        if thought.text:
            yield ReasoningDelta(thought.text)
        if thought.opaque:
            yield ReasoningSealed(thought.opaque)
    if turn.text:
        yield TextDelta(turn.text)
    for index, call in enumerate(turn.tool_calls):
        yield CallStart(index, call.id, call.name)
        if call.arguments:
            yield CallDelta(index, call.arguments)
        yield CallEnd(index, call.complete)
    if turn.usage:
        yield UsageSeen(turn.usage)
    if turn.finish_reason:
        yield Finish(turn.finish_reason)
