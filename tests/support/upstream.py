"""A model server that does as it is told: real sockets on 127.0.0.1, raw bytes, and every way in which a server fails.

    with Upstream() as server:
        server.play(answer(sse("Good"), sse("bye"), DONE))       # the next request
        server.play(*rate_limited("1"), answer(DONE))           # the two after it
        ...
        assert server.requests[0].json["model"] == "m"
        assert server.requests[0].wait_left()                   # the client went away before the answer was over

A script is a list of steps: bytes are sent as they are, a number pauses for so many seconds, and the words `READ`,
`PASS`, `RESET`, `HANG`, `SILENCE` and `CLOSE` do what they say; a `threading.Event` waits until the test sets it. The
functions below build the usual ones. A function may stand for a script: it is given the request and says what to play.
Scripts are played one per request, in order; the last is repeated. It runs in a thread with a loop of its own, so tests
may be synchronous or not, and may run the client in another process. Times are those of `time.monotonic`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = [
    "CLOSE",
    "DONE",
    "HANG",
    "PASS",
    "READ",
    "RESET",
    "SILENCE",
    "Seen",
    "Step",
    "Upstream",
    "answer",
    "closed_port",
    "drip",
    "rate_limited",
    "refused",
    "sse",
    "whole",
]

RESET: Final = "reset"
"""Kill the connection: the client gets a TCP reset, and perhaps not even what was sent just before."""
HANG: Final = "hang"
"""Say nothing more until the client leaves."""
SILENCE: Final = "silence"
"""Both: let time pass, then say nothing more."""
PASS: Final = "pass"
"""Let time pass for the client, with `Upstream.pass_time`, and go on."""
READ: Final = "read"
"""Go on when the client has read all that was sent."""
CLOSE: Final = "close"
"""End the connection in good order, whatever was promised."""

Step = bytes | float | str | threading.Event
Script = Sequence[Step]
Played = Script | Callable[["Seen"], Script]

DONE: Final = b"data: [DONE]\n\n"


# ── scripts ──────────────────────────────────────────────────────────────────────────────────────


def sse(data: object) -> bytes:
    """One server-sent event: a string as the delta of a chat chunk, anything else as it is."""
    chunk = {"choices": [{"index": 0, "delta": {"content": data}}]} if isinstance(data, str) else data
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def answer(
    *pieces: Step,
    status: int = 200,
    content_type: str = "text/event-stream",
    headers: Mapping[str, str] | None = None,
    end: bool = True,
) -> list[Step]:
    """A chunked answer, each piece of bytes a chunk; with `end=False` it is never ended."""
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "transfer-encoding: chunked"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    chunks = [_chunk(piece) if isinstance(piece, bytes) else piece for piece in pieces]
    return [head, *chunks, *([b"0\r\n\r\n"] if end else [])]


def whole(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> list[Step]:
    """An answer in one piece with its length."""
    lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ["\r\n".join(lines).encode() + b"\r\n\r\n" + body]


def refused(status: int, message: str, **headers: str) -> list[Step]:
    """An error in OpenAI's shape."""
    return whole(json.dumps({"error": {"message": message}}).encode(), status=status, headers=headers)


def rate_limited(retry_after: str) -> list[Step]:
    """429 with the time after which to come back."""
    return whole(b'{"error": {"message": "slow down"}}', status=429, headers={"retry-after": retry_after})


def drip(data: bytes, size: int, seconds: float) -> list[Step]:
    """The same bytes in pieces of that size, each after a pause."""
    return [step for at in range(0, len(data), size) for step in (seconds, data[at : at + size])]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def closed_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# ── the server ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class Seen:
    """One request as it came, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    port: int
    """The client's: two requests from one port shared a connection."""
    sent: int = 0
    """Bytes that went into the socket."""
    left: float | None = None
    """When the client went away, if it did so before the script was over."""
    _left: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def wait_left(self, seconds: float = 60.0) -> bool:
        """Whether the client goes away within that time. Blocks; in a coroutine use `asyncio.to_thread`."""
        return self._left.wait(seconds)

    def note_left(self) -> None:
        self.left = time.monotonic()
        self._left.set()


class Upstream:
    """The server. Use it as a context manager; `url` is its address without a path."""

    def __init__(self, *scripts: Played) -> None:
        self.requests: list[Seen] = []
        self._scripts: list[Played] = list(scripts)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stop = asyncio.Event()
        self.url = ""
        self.pass_time: Callable[[], Future[None]] = _no_clock
        """A test that plays `PASS` or `SILENCE` puts the client's clock forward here."""

    def play(self, *scripts: Played) -> None:
        """Play these for the requests that come next; the last is repeated."""
        self._scripts = list(scripts)

    def __enter__(self) -> Upstream:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await _converse(self, reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                connections.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def next_script(self, seen: Seen) -> Script:
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        return script(seen) if callable(script) else script


async def _converse(server: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve the requests of one connection."""
    held = b""
    while True:
        seen = await _request(reader, held, writer.get_extra_info("peername")[1])
        server.requests.append(seen)
        watcher = asyncio.create_task(reader.read(1))
        try:
            over = await _play(server, seen, writer, watcher)
        except ConnectionError:
            seen.note_left()
            raise
        finally:
            watcher.cancel()
        if over:
            return
        (held,) = await asyncio.gather(watcher, return_exceptions=True)  # type: ignore[assignment]
        held = held if isinstance(held, bytes) else b""
        if reader.at_eof():
            return


async def _request(reader: asyncio.StreamReader, held: bytes, port: int) -> Seen:
    head = held + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body, time.monotonic(), port)


async def _play(server: Upstream, seen: Seen, writer: asyncio.StreamWriter, watcher: asyncio.Task[bytes]) -> bool:
    """Play a script until it ends or the client leaves. Returns whether the connection is over."""
    for step in server.next_script(seen):
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
            seen.sent += len(step)
        elif step == RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return True
        elif step == CLOSE:
            writer.close()
            return True
        elif step == READ:
            while _unread_bytes(writer) and not watcher.done():
                await asyncio.sleep(0.001)
        elif isinstance(step, threading.Event):
            while not step.is_set() and not watcher.done():
                await asyncio.sleep(0.005)
        elif step == PASS:
            await asyncio.wrap_future(server.pass_time())
        else:
            if step == SILENCE:
                server.pass_time()
            assert step in (HANG, SILENCE) or isinstance(step, int | float), step
            seconds = None if isinstance(step, str) else step
            await asyncio.wait({watcher}, timeout=seconds)
        if watcher.done() and (watcher.exception() or not watcher.result()):
            seen.note_left()
            return True
    return False


def _no_clock() -> Future[None]:
    raise AssertionError("a script lets time pass, and the test does not say how")


def _unread_bytes(writer: asyncio.StreamWriter) -> int:
    """How much of what was sent the client has not read yet, as the kernel tells for both ends of the connection."""
    ours, theirs = (writer.get_extra_info(name)[1] for name in ("sockname", "peername"))
    unread: int = writer.transport.get_write_buffer_size()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        ports = int(local.partition(":")[2], 16), int(remote.partition(":")[2], 16)
        sending, _, receiving = queues.partition(":")
        unread += int(sending, 16) if ports == (ours, theirs) else 0
        unread += int(receiving, 16) if ports == (theirs, ours) else 0
    return unread
