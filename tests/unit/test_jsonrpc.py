"""JSON-RPC over lines: whatever the other side sends, the connection lives, and each request has one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import StoreError
from callwright.jsonrpc import JsonRpcError, JsonRpcMessage, JsonRpcPeer, JsonRpcProtocol, RequestHandler

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": VALUES,
        "id": VALUES | st.just(1),
        "method": VALUES | st.just("echo"),
        "params": VALUES,
        "result": VALUES,
        "error": VALUES | st.fixed_dictionaries({}, optional={"code": VALUES, "message": VALUES}),
    },
)


class Wire:
    """The other side, as lines."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()
        self._news = asyncio.Event()

    async def read_line(self) -> bytes:
        return await self._coming.get()

    async def write_line(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.sent.append(json.loads(line))
        self._news.set()

    def close(self) -> None:
        pass

    def say(self, *lines: Any) -> None:
        for line in lines:
            self._coming.put_nowait(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def hang_up(self) -> None:
        self._coming.put_nowait(b"")

    async def heard(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(5):
            while True:
                for message in self.sent:
                    if wanted(message):
                        return message
                self._news.clear()
                await self._news.wait()


async def echo(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "echo":
            return params
        case "wait":
            await asyncio.sleep(3600)
        case "store":
            raise StoreError("the store is full")
        case "broken":
            raise ZeroDivisionError("a mistake of ours")
    raise JsonRpcError(-32601, f"there is no method {method!r} here")


def talk(
    scenario: Callable[[Wire, JsonRpcPeer], Awaitable[None]], handler: RequestHandler = echo
) -> list[dict[str, Any]]:
    """Serve a connection while the scenario runs, then hang up; all that was sent."""

    async def run() -> list[dict[str, Any]]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        wire = Wire()
        peer = JsonRpcPeer(wire, handler)
        serving = asyncio.ensure_future(peer.run())
        await scenario(wire, peer)
        wire.hang_up()
        async with asyncio.timeout(5):
            await serving
        return wire.sent

    return asyncio.run(run())


def answer_to(number: Any) -> Callable[[dict[str, Any]], bool]:
    return lambda message: message.get("id") == number and "method" not in message


def request(number: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize(
    ("method", "code", "says"),
    [
        ("nothing", -32601, "there is no method 'nothing' here"),
        ("store", -32603, "the store is full"),
        ("broken", -32603, "internal error; see standard error for details"),
    ],
)
def test_a_request_that_fails_is_an_error_and_the_connection_goes_on(method: str, code: int, says: str) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(request("a", method), request("b", "echo", x=1))
        failed = await wire.heard(answer_to("a"))
        assert failed["error"] == {"code": code, "message": says}
        assert (await wire.heard(answer_to("b")))["result"] == {"x": 1}

    talk(scenario)


@pytest.mark.parametrize("number", [0, 1, -5, "x", "", None, 1.5])
def test_an_answer_has_the_id_of_its_request(number: Any) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(request(number, "echo", x=2))
        assert (await wire.heard(answer_to(number)))["result"] == {"x": 2}

    talk(scenario)


def test_a_notification_has_no_answer_even_if_it_fails() -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(*({"jsonrpc": "2.0", "method": method} for method in ("nothing", "store", "echo", "broken")))
        wire.say(request(1, "echo"))
        await wire.heard(answer_to(1))

    assert len(talk(scenario)) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{\n", -32700),
        (b"hello\n", -32700),
        (b"[]\n", -32700),
        (b"1\n", -32700),
        (b'{"a": "\xff"}\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b'{"a":' * 100_000 + b"\n", -32700),
        (b"{}\n", -32600),
        (b'{"id": 1, "method": 5}\n', -32600),
    ],
    ids=["open", "word", "list", "number", "bytes", "deep list", "deep object", "nothing", "method"],
)
def test_a_line_that_is_no_message_is_answered_with_an_error(line: bytes, code: int) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(line, request("after", "echo"))
        await wire.heard(answer_to("after"))

    (told, _) = talk(scenario)
    assert told["id"] is None
    assert told["error"]["code"] == code
    assert len(told["error"]["message"]) < 300


def test_empty_lines_are_nothing() -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(b"\n", b"  \r\n", request(1, "echo"))
        await wire.heard(answer_to(1))

    assert len(talk(scenario)) == 1


@pytest.mark.parametrize(
    "answer",
    [{"id": True, "result": "no"}, {"id": [1], "result": "no"}, {"id": {}, "result": "no"}, {"id": 2, "result": "no"}],
    ids=["true", "list", "object", "another"],
)
def test_only_the_answer_with_its_id_is_an_answer(answer: dict[str, Any]) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        asking = asyncio.ensure_future(peer.request("ask", {"x": 1}))
        asked = await wire.heard(lambda message: message.get("method") == "ask")
        assert asked["id"] == 1
        wire.say(answer, request("after", "echo"))
        await wire.heard(answer_to("after"))
        assert not asking.done()
        wire.say({"id": 1, "result": "yes"}, {"id": 1, "result": "too late"})
        assert await asking == "yes"

    talk(scenario)


@pytest.mark.parametrize(
    "error",
    [{"code": -32000, "message": "no"}, {"code": "x", "message": "no"}, {"message": "no"}, "no", ["no"], 1],
)
def test_an_error_for_an_answer_is_an_error(error: Any) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        asking = asyncio.ensure_future(peer.request("ask", {}))
        await wire.heard(lambda message: message.get("method") == "ask")
        wire.say({"id": 1, "error": error})
        with pytest.raises(JsonRpcError):
            await asking

    talk(scenario)


def test_when_the_other_side_is_gone_what_it_asked_for_ends_and_what_we_asked_is_an_error() -> None:
    ended: list[str] = []

    async def waiting(method: str, params: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(method)

    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        wire.say(request(1, "one"), request(2, "two"))
        asking = asyncio.ensure_future(peer.request("ask", {}))
        await wire.heard(lambda message: message.get("method") == "ask")
        wire.hang_up()
        with pytest.raises(JsonRpcError, match="gone"):
            await asking
        assert sorted(ended) == ["one", "two"]

    talk(scenario, waiting)


@given(
    st.lists(MESSAGES | VALUES | st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"") + b"\n"), max_size=8)
)
def test_nothing_that_is_sent_ends_the_connection(lines: list[Any]) -> None:
    async def scenario(wire: Wire, peer: JsonRpcPeer) -> None:
        asking = asyncio.ensure_future(peer.request("ask", {}))
        wire.say(*lines, request("the last one", "echo", alive=True))
        assert (await wire.heard(answer_to("the last one")))["result"] == {"alive": True}
        wire.say({"id": 1, "result": None})
        await asyncio.wait((asking,), timeout=5)
        if not asking.cancelled():
            asking.exception()

    talk(scenario)


# ── the protocol alone, as Codex's backend uses it ───────────────────────────────────────────────


class Place(msgspec.Struct, frozen=True):
    thread: str = ""


class PlacedMessage(JsonRpcMessage, frozen=True):
    params: Place = Place()


def protocol() -> JsonRpcProtocol[PlacedMessage]:
    return JsonRpcProtocol(msgspec.json.Decoder(PlacedMessage).decode, has_version=False)


def test_messages_without_a_version_are_one_line_each() -> None:
    async def main() -> None:
        peer = protocol()
        request = peer.start_request("ask", {"text": "a\nb"})
        lines = [
            request.line,
            peer.encode_notification("ready"),
            peer.encode_notification("moved", {"to": 1}),
            peer.encode_result("x", {"a": 1}),
            peer.encode_error(7, JsonRpcError(-32601, "no")),
        ]
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
        assert list(map(json.loads, lines)) == [
            {"id": request.id, "method": "ask", "params": {"text": "a\nb"}},
            {"method": "ready"},
            {"method": "moved", "params": {"to": 1}},
            {"id": "x", "result": {"a": 1}},
            {"id": 7, "error": {"code": -32601, "message": "no"}},
        ]

    asyncio.run(main())


def test_parameters_have_the_type_of_the_message() -> None:
    asked = protocol().read_line(b'{"id": null, "method": "ask", "params": {"thread": "t", "other": 1}}')
    told = protocol().read_line(b'{"method": "tell"}')
    assert asked is not None
    assert told is not None
    assert (asked.params.thread, asked.has_id, told.has_id) == ("t", True, False)
    with pytest.raises(JsonRpcError) as caught:
        protocol().read_line(b'{"method": "ask", "params": {"thread": 5}}')
    assert caught.value.code == -32700


@pytest.mark.parametrize("gone", [False, True])
def test_answers_come_out_of_order_and_what_is_forgotten_has_none(gone: bool) -> None:
    async def main() -> None:
        peer = protocol()
        first, second, forgotten = (peer.start_request("ask", {}) for _ in range(3))
        peer.drop_request(forgotten.id)
        for request in (second, forgotten):
            assert peer.read_line(json.dumps({"id": request.id, "result": [request.id]}).encode()) is None
        assert await second.answer == [second.id]
        assert not first.answer.done()
        assert not forgotten.answer.done()
        if gone:
            peer.fail_requests(lambda: StoreError("the process ended"))
            with pytest.raises(StoreError, match="ended"):
                await first.answer
        else:
            peer.read_line(b'{"id": 1, "error": {"message": ""}}')
            with pytest.raises(JsonRpcError, match="no reason was given"):
                await first.answer
        assert not forgotten.answer.done()

    asyncio.run(main())
