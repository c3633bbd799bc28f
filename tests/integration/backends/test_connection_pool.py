"""The HTTP client: what is sent, how answers are read whatever their form, and when a connection is used again."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
import threading
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.backends.connection_pool import (
    KEEPALIVE_SECONDS,
    ConnectionPool,
    ConnectTimeoutError,
    RequestAddress,
    encode_headers,
)
from callwright.backends.http_response import (
    MAX_PENDING_BYTES,
    HttpResponse,
    IncompleteResponseError,
    NoResponseError,
    NotHttpError,
)
from tests.support.clock import ClockLoop, pass_time, settle
from tests.support.upstream import CLOSE, HANG, RESET, Step, Upstream, answer, closed_port, whole


def run(work: Callable[[ConnectionPool], Awaitable[Any]], most: int = 8, seconds: float = 60.0) -> Any:
    async def opened() -> Any:
        connections = ConnectionPool(most, seconds)
        try:
            async with asyncio.timeout(100_000):  # some tests put the clock forward
                return await work(connections)
        finally:
            await connections.close()

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        return runner.run(opened())


async def get(connections: ConnectionPool, url: str, body: bytes = b"") -> HttpResponse:
    address = RequestAddress.from_url(url)
    return await connections.send_request(b"POST" if body else b"GET", address, encode_headers(address.headers), body)


async def fetched(connections: ConnectionPool, url: str, body: bytes = b"") -> tuple[int, bytes]:
    with closing(await get(connections, url, body)) as incoming:
        parts = [part async for part in _parts(incoming)]
        return incoming.status, b"".join(parts)


async def _parts(incoming: HttpResponse) -> Any:
    while part := await incoming.read():
        yield part


# ── addresses ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "place", "target", "headers"),
    [
        ("http://a", ("a", 80, False), b"/", {"host": "a"}),
        ("https://a/v1/x?y=1", ("a", 443, True), b"/v1/x?y=1", {"host": "a"}),
        ("http://a:8000/v1", ("a", 8000, False), b"/v1", {"host": "a:8000"}),
        ("http://[::1]:81/", ("::1", 81, False), b"/", {"host": "[::1]:81"}),
        ("http://bücher.example/ä b", ("xn--bcher-kva.example", 80, False), b"/%C3%A4%20b", {}),
        ("http://a/%20%2F", ("a", 80, False), b"/%20%2F", {}),
        ("http://me:p%40ss@a/", ("a", 80, False), b"/", {"host": "a", "authorization": "Basic bWU6cEBzcw=="}),
    ],
)
def test_an_address_says_where_and_what(url: str, place: tuple[Any, ...], target: bytes, headers: Any) -> None:
    address = RequestAddress.from_url(url)
    assert address.endpoint == place
    assert address.target == target
    assert headers.items() <= address.headers.items()


@pytest.mark.parametrize("url", ["", "a", "ftp://a", "http://", "file:///etc/passwd", "http://a:99999", "http://a:x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        RequestAddress.from_url(url)


@given(st.text(), st.text())
def test_a_header_is_one_line_or_nothing(name: str, value: str) -> None:
    try:
        lines = encode_headers({name: value})
    except (ValueError, UnicodeEncodeError):
        return
    assert lines.count(b"\r") == lines.count(b"\n") == 1
    assert lines.endswith(b"\r\n")


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_sent_as_it_is(upstream: Upstream) -> None:
    upstream.play(whole(b"{}"))
    body = bytes(range(256)) * 300
    assert run(lambda all_: fetched(all_, f"{upstream.url}/a?b=c", body)) == (200, b"{}")
    seen = upstream.requests[0]
    assert (seen.method, seen.path, seen.body) == ("POST", "/a?b=c", body)
    assert seen.headers == {"host": upstream.url.removeprefix("http://"), "content-length": str(len(body))}


# ── how answers end ──────────────────────────────────────────────────────────────────────────────

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "script",
    [
        whole(b"Good day"),
        answer(b"Good", b" day"),
        [HEAD + b"\r\nGood day", CLOSE],
        [b"HTTP/1.0 200 OK\r\n\r\nGood ", 0.02, b"day", CLOSE],
        [b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n", *whole(b"Good day")],
        [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", 0.02, *answer(b"Good day")],
        [*answer(b"Good day")[:-1], b"0\r\ntrailer: x\r\n\r\n"],
        whole(gzip.compress(b"Good day"), headers={"content-encoding": "gzip"}),
        answer(zlib.compress(b"Good day"), headers={"content-encoding": "deflate"}),
    ],
    ids=["length", "chunks", "to the end", "old", "after a word", "after hints", "trailer", "gzip", "deflate"],
)
def test_an_answer_may_end_in_any_way(upstream: Upstream, script: Sequence[Step]) -> None:
    upstream.play(script)
    assert run(lambda all_: fetched(all_, upstream.url)) == (200, b"Good day")


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([CLOSE], NoResponseError),
        ([RESET], NoResponseError),
        ([b"HTTP/1.1 200", CLOSE], IncompleteResponseError),
        ([HEAD + b"x: y\r\n", CLOSE], IncompleteResponseError),
        ([HEAD + b"content-length: 5\r\n\r\nab", CLOSE], IncompleteResponseError),
        (answer(b"ab", CLOSE), IncompleteResponseError),
        (answer(b"ab", RESET), IncompleteResponseError),
        ([b"SSH-2.0-OpenSSH\r\n", CLOSE], NotHttpError),
        ([*answer(b"ab", end=False), b"zz\r\n"], NotHttpError),
        ([HEAD + b"x: " + b"y" * 70_000 + b"\r\n\r\n"], NotHttpError),
        ([HEAD + b"content-encoding: br\r\n\r\n"], NotHttpError),
        (whole(b"not gzip", headers={"content-encoding": "gzip"}), NotHttpError),
        ([b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"], NotHttpError),
    ],
)
def test_an_answer_that_does_not_end_well_says_how(upstream: Upstream, script: Sequence[Step], kind: Any) -> None:
    upstream.play(script)
    with pytest.raises(kind):
        run(lambda all_: fetched(all_, upstream.url))


def test_what_came_before_the_end_is_read_first(upstream: Upstream) -> None:
    upstream.play(answer(b"Good", CLOSE))

    async def late(connections: ConnectionPool) -> bytes:
        with closing(await get(connections, upstream.url)) as incoming:
            await asyncio.sleep(0.1)  # the connection is lost by now
            data = await incoming.read()
            with pytest.raises(IncompleteResponseError):
                await incoming.read()
            return data

    assert run(late) == b"Good"


def test_of_a_little_that_becomes_a_lot_a_part_is_read_at_a_time(upstream: Upstream) -> None:
    size = 64 * 2**20
    upstream.play(whole(gzip.compress(b"\0" * size), headers={"content-encoding": "gzip"}))

    async def parts(connections: ConnectionPool) -> list[int]:
        with closing(await get(connections, upstream.url)) as incoming:
            return [len(part) async for part in _parts(incoming)]

    read = run(parts)
    assert sum(read) == size
    assert max(read) <= 2**20


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=8), st.data())
def test_bytes_may_be_cut_anywhere(pieces: list[bytes], data: st.DataObject) -> None:
    """A law: however an answer is cut into packets, what is read is what was sent."""
    raw = b"".join(step for step in answer(*pieces) if isinstance(step, bytes))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=12)))
    incoming, used = _unconnected()
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        incoming.feed(raw[start:end])
    assert asyncio.run(_all(incoming)) == b"".join(pieces)
    incoming.close()
    assert used == [True]


async def _all(incoming: HttpResponse) -> bytes:
    return b"".join([part async for part in _parts(incoming)])


class _Transport(asyncio.Transport):
    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def _unconnected() -> tuple[HttpResponse, list[bool]]:
    used: list[bool] = []
    return HttpResponse(_Transport(), used.append), used


# ── connections ──────────────────────────────────────────────────────────────────────────────────


async def _twice(connections: ConnectionPool, url: str, *, shared: bool) -> None:
    await fetched(connections, url)
    while connections._open and not shared:
        await asyncio.sleep(0.01)
    await fetched(connections, url)


@pytest.mark.parametrize(
    ("script", "shared"),
    [
        (whole(b"ab"), True),
        (answer(b"ab"), True),
        (whole(b"ab", headers={"connection": "close"}), False),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab"], False),
        ([*whole(b"ab"), b"HTTP/1.1 200 OK\r\n\r\n"], False),
        ([*whole(b"ab"), 0.01, b"unasked"], False),
    ],
    ids=["length", "chunks", "closes", "old", "two answers", "speaks unasked"],
)
def test_a_connection_is_used_again_when_its_answer_is_over(upstream: Upstream, script: Any, *, shared: bool) -> None:
    upstream.play(script)
    run(lambda all_: _twice(all_, upstream.url, shared=shared))
    first, second = upstream.requests
    assert (first.port == second.port) is shared


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(upstream: Upstream) -> None:
    upstream.play(whole(b"ab"), [CLOSE], whole(b"cd"))

    async def twice(connections: ConnectionPool) -> tuple[int, bytes]:
        await fetched(connections, upstream.url)
        return await fetched(connections, upstream.url)

    assert run(twice) == (200, b"cd")
    assert len(upstream.requests) == 3


def test_a_new_connection_without_an_answer_is_not_replaced(upstream: Upstream) -> None:
    upstream.play([CLOSE])
    with pytest.raises(NoResponseError):
        run(lambda all_: fetched(all_, upstream.url))
    assert len(upstream.requests) == 1


def test_connections_that_rest_are_closed_after_a_while(upstream: Upstream) -> None:
    upstream.play(whole(b"ab"))

    async def rest(connections: ConnectionPool) -> tuple[int, int]:
        await asyncio.gather(*(fetched(connections, upstream.url) for _ in range(3)))
        before = len(connections._open)
        await pass_time(KEEPALIVE_SECONDS + 1)
        return before, len(connections._open)

    assert run(rest) == (3, 0)


def test_no_more_than_so_many_at_once(upstream: Upstream) -> None:
    gate = threading.Event()
    upstream.play(answer(gate, b"ab"))

    async def five(connections: ConnectionPool) -> int:
        work = [asyncio.ensure_future(fetched(connections, upstream.url)) for _ in range(5)]
        while len(upstream.requests) < 2:
            await asyncio.sleep(0.01)
        await settle()
        at_once = len(connections._open)
        gate.set()
        await asyncio.gather(*work)
        return at_once

    assert run(five, most=2) == 2
    assert len(upstream.requests) == 5


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.01, 0.05, 0.1])
def test_whoever_gives_up_leaves_nothing_behind(upstream: Upstream, moment: float) -> None:
    upstream.play([0.05, *answer(b"ab", HANG)])

    async def given_up(connections: ConnectionPool) -> int:
        work = asyncio.ensure_future(fetched(connections, upstream.url))
        await asyncio.sleep(moment)
        work.cancel()
        await asyncio.wait({work})
        await asyncio.sleep(0.05)
        assert connections._slots._value == 8
        return len(connections._open)

    assert run(given_up) == 0


def test_a_reader_who_does_not_read_stops_the_server(upstream: Upstream) -> None:
    piece = b"x" * 100_000
    upstream.play(answer(*[piece] * 200))

    async def slow(connections: ConnectionPool) -> int:
        with closing(await get(connections, upstream.url)) as incoming:
            await asyncio.sleep(0.3)
            assert incoming._pending_bytes < MAX_PENDING_BYTES + 2 * 256 * 1024  # one read of the loop's may be on top
            stuck = upstream.requests[0].sent
            total = sum([len(part) async for part in _parts(incoming)])
        assert stuck < total
        return total

    assert run(slow) == 200 * len(piece)


def test_who_cannot_be_reached_is_told_apart() -> None:
    with pytest.raises(ConnectionRefusedError):
        run(lambda all_: fetched(all_, f"http://127.0.0.1:{closed_port()}"))
    with pytest.raises(ConnectionRefusedError):
        run(lambda all_: fetched(all_, f"http://localhost:{closed_port()}"))


def test_a_server_that_never_takes_the_connection_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        port = deaf.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), pytest.raises(ConnectTimeoutError):  # its queue is full
            run(lambda all_: fetched(all_, f"http://127.0.0.1:{port}"), seconds=0.2)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One that signs itself for localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key, signed = folder / "key.pem", folder / "cert.pem"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    named = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    command = ["openssl", "req", *kind, *named, "-keyout", str(key), "-out", str(signed)]
    subprocess.run(command, check=True, capture_output=True)
    return signed, key


async def _over_tls(certificate: tuple[Path, Path], connections: ConnectionPool) -> tuple[int, bytes]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"content-length: 8\r\n\r\nGood day")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await fetched(connections, f"https://localhost:{port}/")
        await connections.close()
        return answer


def test_a_server_with_a_certificate_that_is_trusted_is_asked_over_tls(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = ssl.create_default_context(cafile=certificate[0])
    monkeypatch.setattr("callwright.backends.connection_pool._load_tls_context", lambda: trusted)
    assert run(lambda all_: _over_tls(certificate, all_)) == (200, b"Good day")


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        run(lambda all_: _over_tls(certificate, all_))
