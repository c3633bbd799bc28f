"""Who leaves is followed at once, who is slow slows everybody down, and a rule that ends a turn ends it for real."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosted import Hosted, ask, backend, model, raw
from tests.integration.turns import CALL_BEGUN, CALL_ENDED, call, said, spoken, text
from tests.integration.wires import CHAT, MESSAGES, WIRES, Call, Wire
from tests.support.served import Served
from tests.support.upstream import HANG, Seen, Step, Upstream, answer, sse

WEATHER = Call("get_weather", {"city": "Paris", "days": 3})


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    models = [
        model("m", "main"),
        model("single", "main", rules={"enable_parallel_tool_calls": False}),
        model("two", "main", rules={"tool_block_max": 2}),
        model("first", "main", rules={"stop_after_tools": True, "stop_after_tools_mode": "first"}),
        model("burst", "main", rules={"stop_after_tools": True}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def eventually(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something holds that no event tells."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.005)


def reset(connection: socket.socket) -> None:
    """Close without a farewell, as a process that is killed does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


# ── clients that leave ───────────────────────────────────────────────────────────────────────────

MOMENTS: dict[str, tuple[list[Step], bytes]] = {
    "before the answer's headers": ([HANG], b""),
    "before the first event": (answer(HANG), b""),
    "in text": (answer(*text("Let me look."), HANG), b"Let me"),
    "in a call": (answer(*CALL_BEGUN, HANG), b"get_weather"),
}
"""What the server does, and what the client waits for before it leaves."""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_server_sees_that_the_client_disconnected(gateway: Hosted, server: Upstream, wire: Wire, moment: str) -> None:
    script, sign = MOMENTS[moment]
    if wire.name == "ollama" and moment == "in a call":
        sign = b""  # a call is told there when it is whole
    server.play(script)
    for leave in (socket.socket.close, reset, socket.socket.close):
        before = len(server.requests)
        connection = gateway.send(wire.path, wire.body("m", stream=True))
        eventually(lambda before=before: len(server.requests) > before)
        came = b""
        while sign not in came:
            came += connection.recv(65536)
        leave(connection)
        assert server.requests[-1].wait_left(), "the server was never told"
    eventually(lambda: gateway.streams == 0)


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_who_waits_for_a_whole_answer_may_leave_too(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    server.play(MOMENTS["in a call"][0])
    before = len(server.requests)
    connection = gateway.send(wire.path, wire.body("m", stream=False))
    eventually(lambda: len(server.requests) > before)
    connection.close()
    assert server.requests[-1].wait_left(), "the server was never told"


@pytest.mark.parametrize("choices", [1, 3])
def test_all_choices_are_left(gateway: Hosted, server: Upstream, choices: int) -> None:
    server.play(MOMENTS["in text"][0])
    before = len(server.requests)
    connection = gateway.send(CHAT.path, {**CHAT.body("m", stream=True), "n": choices})
    eventually(lambda: len(server.requests) == before + choices)
    connection.close()
    assert all(request.wait_left() for request in server.requests[before:])


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["closed", "reset"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_who_leaves_in_the_middle_of_the_request_asks_nobody(
    gateway: Hosted, server: Upstream, wire: Wire, leave: Callable[[socket.socket], None]
) -> None:
    before = len(server.requests)
    whole = raw(wire.path, wire.body("m", stream=True))
    connection = gateway.connect()
    connection.sendall(whole[:-10])
    eventually(lambda: gateway.streams == 1)
    leave(connection)
    eventually(lambda: gateway.streams == 0)
    assert len(server.requests) == before


def test_who_leaves_after_the_answer_has_not_left(gateway: Hosted, server: Upstream) -> None:
    server.play(spoken("Good day."))
    for _ in range(2):
        with gateway.send(CHAT.path, CHAT.body("m", stream=True)) as connection:
            came = b""
            while b"[DONE]" not in came:
                came += connection.recv(65536)
    first, second = server.requests[-2:]
    assert first.left is None
    assert first.port == second.port, "the connection to the server was good for another turn"


# ── rules that end a turn ────────────────────────────────────────────────────────────────────────

_HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n'
AS_TEXT: list[Step] = [*text(_HERMES)]
NATIVE: list[Step] = [*CALL_BEGUN, *CALL_ENDED]
NATIVE_TWICE: list[Step] = [*NATIVE, call(1, "", id="call_b", name="ping"), call(1, "{")]
ONE = {"parallel_tool_calls": False}
ONE_MESSAGES = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
_LIMITS: list[tuple[str, Wire, str, dict[str, Any], list[Step], int]] = [
    ("chat asks for one call, text", CHAT, "m", ONE, AS_TEXT, 1),
    ("chat asks for one call, native", CHAT, "m", ONE, NATIVE_TWICE, 1),
    ("responses asks for one call", WIRES["responses"], "m", ONE, AS_TEXT, 1),
    ("messages asks for one call", MESSAGES, "m", ONE_MESSAGES, AS_TEXT, 1),
    ("the model may make one call", WIRES["ollama"], "single", {}, AS_TEXT, 1),
    ("the model may make two calls", CHAT, "two", {}, AS_TEXT * 2, 2),
    ("stop after the first", CHAT, "first", {}, AS_TEXT, 1),
    ("stop after the first, native", CHAT, "first", {}, NATIVE, 1),
    ("stop after a burst", CHAT, "burst", {}, [*AS_TEXT, *AS_TEXT, *text("That is that.")], 2),
    ("stop after a burst, native", CHAT, "burst", {}, [*NATIVE, *text("That is that.")], 1),
]


@pytest.mark.parametrize(
    ("wire", "name", "more", "begins", "calls"), [row[1:] for row in _LIMITS], ids=[row[0] for row in _LIMITS]
)
def test_a_rule_that_ends_a_turn_ends_the_generation(
    gateway: Hosted, server: Upstream, wire: Wire, name: str, more: dict[str, Any], begins: list[Step], calls: int
) -> None:
    server.play(answer(*begins, HANG))
    reply = gateway.post(wire.path, {**wire.body(name, stream=True), **more})
    heard = wire.streamed(reply.body)
    assert (heard.calls, heard.finish) == ((WEATHER,) * calls, "tool_calls")
    assert server.requests[-1].wait_left(), "the server was left to go on"


# ── clients that do not read ─────────────────────────────────────────────────────────────────────

FLOOD = 200_000_000


def _memory(served: Served) -> int:
    """Bytes of memory that a gateway has."""
    assert served._process
    return int(Path(f"/proc/{served._process.pid}/statm").read_text().split()[1]) * 4096


def _in_kernel(*ports: int) -> int:
    """Bytes that wait in the sockets of connections to or from these ports."""
    waiting = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if {int(local.split(":")[1], 16), int(remote.split(":")[1], 16)} & set(ports):
            waiting += sum(int(queue, 16) for queue in queues.split(":"))
    return waiting


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Served]:
    server.play(spoken("Warm."))
    tables = backend("main", server.url, idle_seconds=1) + model("m", "main")
    with Served(tmp_path_factory.mktemp("served"), tables) as gateway:
        for wire in WIRES.values():
            assert ask(gateway.url, wire.path, wire.body("m", stream=True)).status == 200
        yield gateway


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_client_that_does_not_read_slows_the_server_down(served: Served, server: Upstream, wire: Wire) -> None:
    words = sse("word " * 3000)
    server.play(answer(*[words] * (FLOOD // len(words))))
    before, memory = len(server.requests), _memory(served)
    connection = socket.create_connection(("127.0.0.1", served.port))
    connection.sendall(raw(wire.path, wire.body("m", stream=True)))
    eventually(lambda: len(server.requests) > before and server.requests[-1].sent)
    pushed = _when_stuck(server.requests[-1])
    held = pushed - _in_kernel(served.port, int(server.url.rpartition(":")[2]))
    grown = _memory(served) - memory
    connection.close()
    assert server.requests[-1].wait_left()
    assert pushed < FLOOD / 2, "most of it is still with the server; the rest is in the kernel's buffers"
    assert held < 2**20
    # The last event of a Responses stream repeats the whole answer, so what was sent is kept there.
    assert grown < (32 if wire.name == "responses" else 4) * 2**20


def _when_stuck(request: Seen) -> int:
    """How much the server had sent when it could send no more. It is not heard of then: only time can tell."""
    while True:
        pushed = request.sent
        time.sleep(0.3)
        if request.sent == pushed:
            return pushed


def test_a_slow_client_gets_everything(gateway: Hosted, server: Upstream) -> None:
    words = "".join(f"{number} " for number in range(100_000))
    server.play(said(*text(words, 4000)))
    with gateway.send(CHAT.path, CHAT.body("m", stream=True), "connection: close") as connection:
        pieces = [connection.recv(4096) for _ in range(20) if not time.sleep(0.01)]
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
    body = _unchunked(b"".join(pieces).partition(b"\r\n\r\n")[2])
    assert CHAT.streamed(body).text == words


def _unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        body, data = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body
