"""What goes wrong with a service that keeps conversations, on each of the ways in."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from callwright.gateway import bridge_routes as bridge_routes
from tests.integration.chats import TOKEN, ChatService, Pages
from tests.integration.hosted import Hosted, Reply, ask, backend, model, opened
from tests.support.upstream import CLOSE, READ, RESET, SILENCE, Step, Upstream, answer, refused, whole

HELLO = {"role": "user", "content": "Hello"}
ID = {"x-conversation-id": "7"}


def text(*pieces: Step, **more: Any) -> list[Step]:
    return answer(*pieces, content_type="text/plain", headers=ID, **more)


def post(gateway: Hosted, *messages: dict[str, str], **fields: Any) -> Reply:
    return gateway.post("/v1/chat/completions", {"model": "m", "messages": messages or [HELLO], **fields})


def content(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    said: str = reply.json["choices"][0]["message"]["content"]
    return said


class Start:
    """Gateways that end with the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack

    def __call__(self, url: str, *, clock: bool = False, **settings: Any) -> Hosted:
        table = backend("chat", url, kind="conversation", **settings)
        table = table.replace("/v1", "") if url else table.replace('url = "/v1"\n', "")
        store = f'[store]\naddress = "sqlite:///{self.folder / "store.db"}"\n'
        self.configuration = store + table + model("m", "chat")
        return self.stack.enter_context(Hosted(self.folder, self.configuration, clock=clock))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield Start(tmp_path, stack)


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        (refused(400, "not like this"), 400, "not like this"),
        (refused(401, "who are you"), 502, "who are you"),
        (refused(429, "slow down"), 429, "slow down"),
        (refused(404, "no such path"), 400, "no such path"),
        (whole(b"<h1>Bad gateway</h1>", status=502), 503, "502"),
        ([SILENCE], 504, "sent no part of its answer within 600 seconds"),
        ([RESET], 503, "chat"),
        ([CLOSE], 503, "closed the connection without an answer"),
        (answer(b"words", content_type="text/plain"), 502, "x-conversation-id is missing"),
    ],
    ids=["refuses", "wrong key", "limits", "wrong path", "breaks", "hangs", "resets", "closes", "names nothing"],
)
def test_a_service_that_fails_at_once(
    start: Start, upstream: Upstream, script: list[Step], status: int, words: str
) -> None:
    upstream.play(script)
    gateway = start(upstream.url, clock=True, first_token_seconds=600)
    upstream.pass_time = lambda: gateway.pass_time(601)
    reply = post(gateway)
    assert reply.status == status
    assert words in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (text(b"Half an", CLOSE, end=False), "closed the connection in the middle"),
        (text(b"Half an", READ, SILENCE, end=False), "sent nothing in the middle of its answer"),
    ],
    ids=["dies", "falls silent"],
)
def test_a_service_that_fails_in_the_middle(start: Start, upstream: Upstream, script: list[Step], words: str) -> None:
    """What was said is shown, then the failure; and the conversation is not gone on with."""
    upstream.play(script)
    gateway = start(upstream.url, clock=True, idle_seconds=600)
    upstream.pass_time = lambda: gateway.pass_time(601)
    body = post(gateway, stream=True).body.decode()
    assert "Half an" in body
    assert words in body
    assert body.endswith("data: [DONE]\n\n")
    upstream.play(text(b"Fine"))
    post(gateway, HELLO, {"role": "assistant", "content": "Half an"}, HELLO)
    assert "conversation" not in upstream.requests[-1].json


def test_a_message_that_may_have_been_heard_is_not_said_twice_in_its_conversation(
    start: Start, upstream: Upstream
) -> None:
    upstream.play(text(b"Hi"), [CLOSE], text(b"Again"))
    gateway = start(upstream.url, retries=2)
    assert content(post(gateway)) == "Hi"
    history = [HELLO, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "two"}]
    assert content(post(gateway, *history)) == "Again"
    first, second, third = (seen.json for seen in upstream.requests)
    assert (first.get("conversation"), second["conversation"]) == (None, "7")
    assert "conversation" not in third
    assert "=== Now ===\ntwo" in third["prompt"]


def test_a_conversation_that_a_refused_message_was_for_goes_on_later(start: Start, upstream: Upstream) -> None:
    upstream.play(text(b"Hi"), refused(429, "slow down"), text(b"Fine"))
    gateway = start(upstream.url)
    post(gateway)
    history = [HELLO, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "two"}]
    assert post(gateway, *history).status == 429
    assert content(post(gateway, *history)) == "Fine"
    assert upstream.requests[-1].json == {"conversation": "7", "prompt": "two", "system": "", "model": "m"}


def test_a_store_that_cannot_be_opened_costs_no_turn(start: Start, upstream: Upstream) -> None:
    upstream.play(text(b"Hi"))
    start.folder.joinpath("store.db").mkdir()
    gateway = start(upstream.url)
    for _ in range(2):
        assert content(post(gateway, HELLO, {"role": "assistant", "content": "Hi"}, HELLO)) == "Hi"
    assert all("conversation" not in seen.json for seen in upstream.requests)


# ── on the bridge ────────────────────────────────────────────────────────────────────────────────


def bridged(gateway: Hosted, **options: Any) -> ClientConnection:
    return connect(gateway.url.replace("http", "ws") + "/bridge", **options)


def hello(socket: ClientConnection, token: str = TOKEN, page: str = "p", **fields: Any) -> Any:
    socket.send(json.dumps({"type": "hello", "token": token, "page": page, **fields}))
    return json.loads(socket.recv(5))


def closed(socket: ClientConnection) -> int:
    with suppress(ConnectionClosed):
        while True:
            socket.recv(5)
    assert socket.close_code is not None
    return socket.close_code


@pytest.mark.parametrize("said", ["{", "[]", '{"type": "text", "id": "x", "n": 0, "text": ""}', b"\x00"])
def test_who_does_not_say_hello_is_sent_away(start: Start, said: str | bytes) -> None:
    with bridged(start("", key=TOKEN)) as socket:
        socket.send(said)
        assert closed(socket) in (4400, 4401)


def test_a_wrong_token_is_refused_and_in_no_log(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = start("", key=TOKEN, connect_seconds=0.2)
    for token in ("", TOKEN + "x", TOKEN[:-1], "wrong-token-0123456789"):
        with bridged(gateway) as socket:
            socket.send(json.dumps({"type": "hello", "token": token, "page": "p"}))
            assert closed(socket) == 4401
    assert post(gateway).status == 503
    logged = "\n".join(each.getMessage() for each in caplog.records if each.name != "websockets.client")
    assert "wrong token" in logged
    assert TOKEN[:-1] not in logged
    assert "wrong-token-0123456789" not in logged


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        (None, "", True),
        ("https://chat.example", "", True),
        ("http://{host}", "", True),
        ("https://evil.example", "", False),
        ("null", "", False),
        ("http://evil.example:80", "evil.example:80", False),
    ],
)
def test_only_pages_of_known_origins_may_connect(start: Start, origin: str | None, host: str, allowed: bool) -> None:
    gateway = start("", key=TOKEN, origins=["https://chat.example"])
    own = gateway.url.removeprefix("http://")
    headers = {"Host": host} if host else {}
    options = {"origin": origin.format(host=own) if origin else None, "additional_headers": headers}
    if allowed:
        with bridged(gateway, **options) as socket:
            assert hello(socket)["type"] == "welcome"
    else:
        with pytest.raises(InvalidStatus) as refusal:
            bridged(gateway, **options)
        assert refusal.value.response.status_code == 403


def test_without_a_page_a_request_waits_for_one_and_then_fails(start: Start) -> None:
    gateway = start("", key=TOKEN, connect_seconds=0.3)
    reply = post(gateway)
    assert reply.status == 503
    assert "has no page connected to its bridge" in reply.json["error"]["message"]
    assert gateway.get("/readyz").status == 503
    with Pages(gateway.url, TOKEN, ChatService()):
        assert content(post(gateway)) == "Hello"


def test_a_request_that_all_pages_are_too_busy_for_fails_in_time(start: Start) -> None:
    gateway = start("", key=TOKEN, first_token_seconds=0.5)
    with opened_turn(gateway) as (stream, socket, request):
        reply = post(gateway)
        assert reply.status == 504
        assert "first_token_seconds" in reply.json["error"]["message"]
        assert "first_token_seconds" in stream.rest()
        assert json.loads(socket.recv(5)) == {"type": "stop", "id": request["id"]}


def test_a_page_that_is_closed_in_the_middle_fails_its_request_and_the_next_goes_to_another(start: Start) -> None:
    gateway = start("", key=TOKEN)
    one, two = ChatService(name="one"), ChatService(name="two")
    with Pages(gateway.url, TOKEN, one, two) as pages:
        pages.gates["page1"] = asyncio.Event()
        body = {"model": "m", "stream": True, "messages": [HELLO]}
        with opened(gateway.url, "/v1/chat/completions", body) as stream:
            stream.until(b"Hello")
            pages.leave("page1")
            ending = stream.rest().decode()
        assert "lost the page that was answering" in ending
        assert ending.endswith("data: [DONE]\n\n")
        assert content(post(gateway)) == "Hello"
        assert pages.served == [("page1", "create"), ("page2", "create")]


def test_a_conversation_of_a_page_that_is_gone_is_told_to_another(start: Start) -> None:
    gateway = start("", key=TOKEN)
    one, two = ChatService(name="one"), ChatService(name="two")
    with Pages(gateway.url, TOKEN, one, two) as pages:
        assert content(post(gateway)) == "Hello"
        pages.leave("page1")
        assert content(post(gateway, HELLO, {"role": "assistant", "content": "Hello"}, HELLO)).endswith("Hello")
        assert pages.served == [("page1", "create"), ("page2", "send"), ("page2", "create")]
        assert "=== Now ===" in two.heard["two1"][0]


def test_a_connection_that_breaks_is_taken_up_where_it_was(start: Start) -> None:
    """Frames that arrived are not taken twice, and those that did not come again."""
    gateway = start("", key=TOKEN)
    with opened_turn(gateway) as (stream, socket, request):
        frames = [
            {"type": "opened", "conversation": "c"},
            *({"type": "text", "text": piece} for piece in ("ha", "ha", "ha", "!")),
            {"type": "done"},
        ]
        frames = [{"id": request["id"], "n": n, **frame} for n, frame in enumerate(frames)]
        for frame in frames[:3]:
            socket.send(json.dumps(frame))
        stream.until(b"ha")
        socket.socket.close()  # not a goodbye
        with bridged(gateway) as back:
            welcome = hello(back)
            got = welcome["requests"][request["id"]]
            assert 2 <= got <= 3
            for frame in frames[1:]:
                back.send(json.dumps(frame))
            said = [json.loads(line[6:]) for line in stream.rest().splitlines() if line.startswith("data: {")]
    words = [chunk["choices"][0]["delta"].get("content", "") for chunk in said if chunk["choices"]]
    assert "".join(words) == "hahaha!"


class Stream:
    """A turn's answer on a connection of its own, while nothing of it may have come."""

    def __init__(self, gateway: Hosted) -> None:
        body = {"model": "m", "stream": True, "messages": [HELLO]}
        self.socket = gateway.send("/v1/chat/completions", body, "connection: close")
        self.body = b""

    def until(self, sign: bytes) -> None:
        while sign not in self.body:
            piece = self.socket.recv(65536)
            assert piece, self.body
            self.body += piece

    def rest(self) -> str:
        while piece := self.socket.recv(65536):
            self.body += piece
        return self.body.decode()


@contextmanager
def opened_turn(gateway: Hosted) -> Iterator[tuple[Stream, ClientConnection, dict[str, Any]]]:
    """A turn that a page was asked for: its answer, the page's connection and the request."""
    with bridged(gateway) as socket:
        hello(socket)
        stream = Stream(gateway)
        with closing(stream.socket):
            yield stream, socket, json.loads(socket.recv(5))


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([{"type": "error", "message": "out of credit"}], "out of credit"),
        ([{"type": "text", "text": "x", "n": 5}], "skipped frame 0"),
        ([{"type": "done"}], "sent no id for its new conversation"),
    ],
)
def test_a_page_that_fails(start: Start, frames: list[dict[str, Any]], words: str) -> None:
    gateway = start("", key=TOKEN)
    with opened_turn(gateway) as (stream, socket, request):
        for n, frame in enumerate(frames):
            socket.send(json.dumps({"id": request["id"], "n": n, **frame}))
        assert words in stream.rest()


def test_a_page_that_does_not_answer_heartbeats_is_gone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_routes, "HEARTBEAT_SECONDS", 0.7)
    gateway = start("", key=TOKEN, connect_seconds=0.2)
    with bridged(gateway) as lively, bridged(gateway) as dead:
        hello(lively, page="lively")
        hello(dead, page="dead")
        for _ in range(3):
            assert json.loads(lively.recv(5)) == {"type": "ping"}
            lively.send('{"type": "pong"}')
        assert closed(dead) == 1011
        assert ask(gateway.url, "/readyz").status == 200


def test_pages_go_over_to_new_settings_when_they_have_answered(start: Start) -> None:
    gateway = start("", key=TOKEN)
    with opened_turn(gateway) as (stream, busy, request), bridged(gateway) as idle:
        hello(idle, page="idle")
        gateway.write(start.configuration + "[tools]\ntool_block_max = 3\n")
        assert gateway.reload()
        assert closed(idle) == 1012
        for n, frame in enumerate(({"type": "opened", "conversation": "c"}, {"type": "text", "text": "Done."})):
            busy.send(json.dumps({"id": request["id"], "n": n, **frame}))
        busy.send(json.dumps({"id": request["id"], "n": 2, "type": "done"}))
        assert "Done." in stream.rest()
        assert closed(busy) == 1012
    with Pages(gateway.url, TOKEN, ChatService()):
        assert content(post(gateway)) == "Hello"
