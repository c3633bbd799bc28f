"""Serves chat completions: reads a client's request, and writes the answer as a stream or in one piece."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.turn import Collected
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle
from callwright.wire.openai_chat.chat_completion import encode_response
from callwright.wire.openai_chat.decode import decode_request
from callwright.wire.openai_chat.encode import OpenAIChatEncoder
from callwright.wire.openai_errors import encode_error_body

__all__ = ["OpenAIChatServerCodec"]


class OpenAIChatServerCodec:
    """The serving half."""

    name = "openai_chat"
    content_type = "text/event-stream"

    def decode_request(self, body: bytes) -> ClientRequest:
        return decode_request(body)

    def create_encoder(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> StreamEncoder:
        return OpenAIChatEncoder(client_request, head, style)

    def encode_response(
        self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle, turns: Sequence[Collected]
    ) -> bytes:
        return encode_response(client_request, head, style, turns)

    def encode_error(self, error: ErrorResponse) -> bytes:
        return encode_error_body(error)
