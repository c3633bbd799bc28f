"""OpenAI's chat completions: what most clients speak, and most servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callwright.errors import BackendError
from callwright.model import Request
from callwright.turn import Collected
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamEncoder, StreamStyle, WireReader
from callwright.wire.openai_chat.call import encode_request
from callwright.wire.openai_chat.chat_completion import encode_response
from callwright.wire.openai_chat.decode import decode_request
from callwright.wire.openai_chat.encode import OpenAIChatEncoder
from callwright.wire.openai_chat.read import OpenAIChatReader
from callwright.wire.openai_errors import encode_error_body, parse_backend_error

__all__ = ["OpenAIChatClientCodec", "OpenAIChatServerCodec"]


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


class OpenAIChatClientCodec:
    """The calling half; the backend's address ends in `/v1`."""

    name = "openai_chat"

    def get_path(self, request: Request) -> str:
        return "/chat/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        return encode_request(request, extra)

    def create_reader(self) -> WireReader:
        return OpenAIChatReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        return parse_backend_error(status, body)
