"""A client for ASGI apps inside the process: one request, everything that was sent back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    raised: Exception | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def call(
    app: Any,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | AsyncIterator[bytes] = b"",
) -> Answer:
    """Send one request. What the app raises after its answer began is in `raised`."""
    answer, pieces = Answer(), body if not isinstance(body, bytes) else _once(body)
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in {"host": "127.0.0.1:8787", **(headers or {})}.items()
        ],
    }

    sent, done = False, asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:  # as a server does: nothing more, until the client is gone
            await done.wait()
            return {"type": "http.disconnect"}
        piece = await anext(pieces, None)
        sent = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": not sent}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            return
        if message.get("body"):
            answer.chunks.append(message["body"])
        if not message.get("more_body"):
            done.set()

    try:
        await app(scope, receive, send)
    except Exception as error:
        if not answer.status:
            raise
        answer.raised = error
    return answer


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
