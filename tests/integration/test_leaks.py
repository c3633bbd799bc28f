"""Many streams that somebody left leave nothing behind: no task, no socket, no memory, nothing in the gauge."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model, raw
from tests.integration.turns import CALL_BEGUN, text
from tests.integration.wires import WIRES
from tests.support.sampling import FULL
from tests.support.upstream import HANG, Upstream, answer

STREAMS = 2000 if FULL else 600
AT_ONCE = 50
MEGABYTE = 2**20

# A server that paces itself and then hangs: every client leaves while it still speaks or waits. What it says before the
# call is more than any client here reads, also when it all comes in one piece.
WORDS = "Let me look at all of these, one after the other. " * 6
SCRIPT = answer(*text(WORDS, 50), 0.005, *text("So. "), 0.005, *CALL_BEGUN, 0.005, *text("Words inside. " * 9), HANG)


async def _left(port: int, request: bytes, size: int, *, abrupt: bool) -> None:
    """One client: sends its request, reads so much of the answer, and goes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if size:
        await reader.readexactly(size)
    if abrupt:
        writer.transport.abort()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def _clients(port: int) -> Iterator[Coroutine[Any, Any, None]]:
    """Clients without end: every wire, streamed and whole, and every moment of leaving."""
    moments = [(0.5, 0), (1.0, 0), (1.0, 1), (1.0, 150), (1.0, 230)]
    for wire, (share, size), abrupt in itertools.cycle(itertools.product(WIRES.values(), moments, (False, True))):
        request = raw(wire.path, wire.body("m", stream=bool(size) or abrupt))
        yield _left(port, request[: int(len(request) * share)], size, abrupt=abrupt)


async def _leave(port: int, count: int) -> None:
    clients = _clients(port)
    for _ in range(count // AT_ONCE):
        await asyncio.wait_for(asyncio.gather(*itertools.islice(clients, AT_ONCE)), 10)


def _sockets() -> int:
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def _memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _settled(measure: Callable[[], float], wanted: float, seconds: float = 60.0) -> float:
    """What is measured when it has come down to what is wanted, or when it had its time."""
    deadline = time.monotonic() + seconds
    while (found := measure()) > wanted and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


@pytest.mark.timeout(300)
def test_streams_that_are_left_leave_nothing_behind(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(SCRIPT)
    with Hosted(tmp_path, backend("main", upstream.url) + model("m", "main")) as gateway:
        idle = gateway.tasks
        asyncio.run(_leave(gateway.port, 4 * AT_ONCE))
        assert _settled(lambda: gateway.tasks, idle) == idle
        sockets, memory = _sockets(), _memory()
        asyncio.run(_leave(gateway.port, STREAMS))
        assert _settled(lambda: gateway.streams, 0) == 0
        assert _settled(lambda: gateway.tasks, idle) == idle
        assert _settled(_sockets, sockets) <= sockets
        assert len(upstream.requests) > STREAMS / 2
        assert all(request.wait_left() for request in upstream.requests), "every server was told"
        upstream.requests.clear()
        assert _memory() - memory < 20 * MEGABYTE
