"""OpenAI's chat completions: what most clients speak, and most servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callwright.errors import BackendError
from callwright.model import Request
from callwright.turn import Collected
from callwright.wire.base import Ask, Encoder, Head, Problem, Reader, Style
from callwright.wire.constraint import Flavour
from callwright.wire.openai_chat.body import write_body
from callwright.wire.openai_chat.decode import decode
from callwright.wire.openai_chat.encode import ChatEncoder
from callwright.wire.openai_chat.read import ChatReader
from callwright.wire.openai_chat.whole import whole
from callwright.wire.openai_errors import error_body, refusal

__all__ = ["CalledChat", "ServedChat"]


class ServedChat:
    """The serving half."""

    name = "openai_chat"
    content_type = "text/event-stream"

    def decode(self, body: bytes) -> Ask:
        return decode(body)

    def encoder(self, ask: Ask, head: Head, style: Style) -> Encoder:
        return ChatEncoder(ask, head, style)

    def whole(self, ask: Ask, head: Head, style: Style, turns: Sequence[Collected]) -> bytes:
        return whole(ask, head, style, turns)

    def problem(self, problem: Problem) -> bytes:
        return error_body(problem)


class CalledChat:
    """The calling half; the backend's address ends in `/v1`. `flavour`: how its server takes a constraint."""

    name = "openai_chat"

    def __init__(self, flavour: Flavour = "none") -> None:
        self._flavour = flavour

    def path(self, request: Request) -> str:
        return "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, extra: dict[str, Any]) -> bytes:
        return write_body(request, extra, self._flavour)

    def reader(self) -> Reader:
        return ChatReader()

    def refusal(self, status: int, body: bytes) -> BackendError:
        return refusal(status, body)
