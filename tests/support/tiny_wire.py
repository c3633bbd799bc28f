"""The smallest wire that can be called: chat chunks with nothing but text. For tests of what carries a wire."""

from __future__ import annotations

from typing import Any

import msgspec

from callwright.errors import BackendError, WireError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Message, Request, Text
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import SseReader


def ask(text: str = "hi", model: str = "m", **options: Any) -> Request:
    return Request(model, (Message("user", (Text(text),)),), options=options)


class TinyReader(EventReader):
    def __init__(self) -> None:
        self._frames = SseReader()
        self._over = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        for _, frame in self._frames.feed(data):
            assert not self._over, "nobody may feed a reader that has finished"
            if frame == b"[DONE]":
                self._over = True
                out.append(Finish("stop"))
                break
            try:
                chunk = msgspec.json.decode(frame)
            except msgspec.DecodeError as error:
                raise WireError(f"no JSON: {frame[:40]!r}") from error
            if "error" in chunk:
                raise BackendError(chunk["error"]["message"], kind="overloaded", retryable=True)
            out.append(TextDelta(chunk["choices"][0]["delta"]["content"]))

    def _process_end(self, out: list[Event]) -> None:
        raise BackendError("the stream ended before the answer did", kind="protocol")


class TinyWire:
    name = "tiny"

    def get_path(self, request: Request) -> str:
        return "/chat/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"model": request.model, **request.options, **extra})

    def create_reader(self) -> TinyReader:
        return TinyReader()

    def parse_error(self, status: int, body: bytes) -> BackendError:
        text = body.decode("utf-8", "replace")
        kind = {401: "auth", 429: "rate_limit"}.get(status, "unavailable" if status >= 500 else "refused")
        _, _, salvage = text.partition("failed_generation:")
        return BackendError(text, kind=kind, retryable=status in (408, 429) or status >= 500, salvage=salvage)  # type: ignore[arg-type]
