"""The server half: `POST /v1/responses`, streaming or complete."""

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
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle
from callwright.wire.openai_errors import encode_error_body
from callwright.wire.openai_responses.decode import decode_request
from callwright.wire.openai_responses.encode import OpenAIResponsesEncoder

__all__ = ["OpenAIResponsesServerCodec"]


class OpenAIResponsesServerCodec:
    """Reads requests and writes answers."""

    name = "openai_responses"
    content_type = "text/event-stream"

    def decode_request(self, body: bytes) -> ClientRequest:
        """Decode a request; `RequestError` names the field that is wrong."""
        return decode_request(body)

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        """Create the encoder for one stream."""
        return OpenAIResponsesEncoder(client_request, head, style)

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        """Encode the response that a stream of the same turn would end with, by encoding a stream."""
        encoder = OpenAIResponsesEncoder(client_request, head, style)
        encoder.encode_events([event for turn in turns[:1] for event in _iter_events(turn)])
        encoder.end_stream()
        return msgspec.json.encode(encoder.response.build_body())

    def encode_error(self, error: ErrorResponse) -> bytes:
        """Encode the body of an error that occurred before the first byte."""
        return encode_error_body(error)


def _iter_events(turn: Collected) -> Iterator[Event]:
    """Yield the events of a collected turn, each part in one piece."""
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
