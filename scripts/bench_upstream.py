"""A fast model server for `bench_gateway.py`: it sends fixed bytes over asyncio protocols.

    python scripts/bench_upstream.py PORT

A streamed answer has 200 chunks of about four characters: some words, then a call written as text (Hermes), so that a
gateway has something to parse. The models `paced` and `brief` send one chunk every 20 ms, and `brief` only the first
five; other models send all chunks at full speed, each in its own write. Without `"stream": true` the answer is sent at
once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from typing import Any

import uvloop

CHUNKS = 200
PACE = 0.02
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _texts() -> list[str]:
    content = "def f(x):\n    return x < 3  # it's so\n" * 30
    call = json.dumps({"name": "write_file", "arguments": {"path": "a.py", "content": content}})
    text = f"I will write it.\n<tool_call>\n{call}"
    end = "\n</tool_call>"
    body = text[: CHUNKS * 4 - 4 * 8]
    # The argument is closed early so that exactly CHUNKS pieces hold one whole call.
    text = body[: body.rindex("def f")] + '"}}' + end
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    return pieces + [" "] * (CHUNKS - len(pieces))


def _event(**changes: Any) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", **changes}
    return _framed(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    return _event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


USAGE = {"prompt_tokens": 10, "completion_tokens": 200, "total_tokens": 210}
STREAM = [_chunk({"content": text}) for text in _texts()]
END = _chunk({}, "stop") + _event(choices=[], usage=USAGE) + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
MESSAGE = {"role": "assistant", "content": "".join(_texts())}
WHOLE = json.dumps(
    {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
     "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}]}
).encode()  # fmt: skip
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE)
MODELS = json.dumps(
    {"object": "list", "data": [{"id": name, "object": "model"} for name in ("fast", "paced", "brief")]}
).encode()
MODELS = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(MODELS), MODELS)


class Server(asyncio.Protocol):
    """One connection, with one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        if len(body) < length:
            return
        self.data = body[length:]
        self.answer(head, body[:length])

    def answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self.transport.write(MODELS)
        elif b'"stream":true' in body.replace(b" ", b""):
            self.transport.write(_HEAD)
            self.last = 5 if b'"brief"' in body else len(STREAM)
            self.play(0, paced=b'"paced"' in body or b'"brief"' in body)
        else:
            self.transport.write(WHOLE)

    def play(self, at: int, *, paced: bool) -> None:
        if self.transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        # Ten writes in a row, then others have their turn: as a busy model server behaves.
        until = at + 1 if paced else min(at + 10, len(STREAM))
        for chunk in STREAM[at:until]:
            self.transport.write(chunk)
        if until == self.last:
            self.transport.write(END)
        elif paced:
            loop.call_later(PACE, partial(self.play, until, paced=True))
        else:
            loop.call_soon(partial(self.play, until, paced=False))


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
