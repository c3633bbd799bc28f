"""The web face without a browser: who is let in, what a connection is told, and what becomes of sessions behind it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from callwright.agent.session_events import TaskStopped, TextAppended, WarningIssued
from callwright.agent.ui.web import page_connection, session_hub
from callwright.errors import StoreError
from tests.integration.hosted import Reply, ask
from tests.support.played_web import TOKEN, Gate, PlayedSession, PlayedSessions, Web, tasked
from tests.support.web_story import COMMAND, saying

SECONDS = 30.0


class Visitor:
    """A program that was given the token."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.entered = ask(web.url, "/enter", {"token": TOKEN})
        self.cookie = self.entered.headers["set-cookie"].split(";")[0]

    def ask(self, path: str, method: str = "", **headers: str) -> Reply:
        return ask(self.web.url, path, headers={"cookie": self.cookie, **headers}, method=method)

    @contextmanager
    def connected(self, session: str = "", after: int | str = 0, **options: Any) -> Iterator[Talk]:
        url = f"ws://127.0.0.1:{self.web.port}/ws?session={session}&after={after}"
        headers = {"cookie": self.cookie, **options.pop("headers", {})}
        with connect(url, additional_headers=headers, proxy=None, max_size=None, **options) as connection:
            yield Talk(connection)


class Talk:
    """One connection; everything that it was told is in `said`."""

    def __init__(self, connection: ClientConnection) -> None:
        self.socket = connection
        self.said: list[dict[str, Any]] = []
        self._number = 0

    def next(self, kind: str) -> dict[str, Any]:
        while True:
            message = json.loads(self.socket.recv(SECONDS))
            self.said.append(message)
            if message["type"] == kind:
                return message

    def until(self, kind: str) -> None:
        """Until an event of a kind has come."""
        while kind not in [each["event"]["type"] for each in self.events]:
            self.next("events")

    def tell(self, kind: str, **fields: Any) -> dict[str, Any]:
        """A command, and what came of it."""
        self._number += 1
        self.socket.send(json.dumps({"type": kind, "id": self._number, **fields}))
        done = self.next("done")
        assert done["id"] == self._number
        return done

    def ended(self) -> int:
        """The code with which it is closed."""
        with pytest.raises(ConnectionClosed):
            self.next("nothing")
        assert self.socket.close_code is not None
        return self.socket.close_code

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for message in self.said if message["type"] == "events" for event in message["events"]]


@pytest.fixture
def sessions() -> PlayedSessions:
    return PlayedSessions([*saying("One two three."), COMMAND], saying("Again."))


@pytest.fixture
def visitor(sessions: PlayedSessions) -> Iterator[Visitor]:
    with Web(sessions) as web:
        yield Visitor(web)


@pytest.fixture(scope="module")
def house() -> Iterator[Web]:
    """A server for all that leave it as it was."""
    with Web(PlayedSessions()) as web:
        yield web


@pytest.fixture
def guest(house: Web) -> Visitor:
    return Visitor(house)


def soon(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ── the door ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.", "", "[::2]:80"]
)
def test_a_foreign_name_for_this_machine_is_refused(guest: Visitor, host: str) -> None:
    assert guest.ask("/", host=host).status == 403
    assert guest.ask("/sessions", host=host).status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_our_own_names_are_let_in(guest: Visitor, name: str) -> None:
    assert guest.ask("/sessions", host=f"{name}:{guest.web.port}").status == 200


def origins(port: int) -> list[str]:
    return [
        "null",
        "https://evil.example",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"http://localhost:{port}",
    ]


def test_foreign_origins_can_neither_connect_nor_delete_nor_enter(visitor: Visitor, sessions: PlayedSessions) -> None:
    sessions.add("old")
    for origin in origins(visitor.web.port):
        with pytest.raises(InvalidStatus, match="403"), visitor.connected("old", headers={"origin": origin}):
            pass
        assert visitor.ask("/sessions/old", "DELETE", origin=origin).status == 403
        assert ask(visitor.web.url, "/enter", {"token": TOKEN}, {"origin": origin}).status == 403
    assert "old" in sessions.all
    with visitor.connected("old", headers={"origin": visitor.web.url}) as talk:
        talk.until("session_opened")
    assert visitor.ask("/sessions/old", "DELETE", origin=visitor.web.url).status == 204


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "callwright-agent=x",
        "callwright-agent-PORT=",
        "callwright-agent-PORT=wrong",
        "a=b; ;;=",
        f"callwright-agent-PORT={TOKEN}",
    ],
)
def test_without_the_cookie_nothing_is_told(guest: Visitor, cookie: str) -> None:
    guest.cookie = cookie.replace("PORT", str(guest.web.port))
    assert guest.ask("/sessions").status == 403
    assert guest.ask("/sessions/x", "DELETE").status == 403
    with pytest.raises(InvalidStatus, match="403"), guest.connected():
        pass
    assert guest.ask("/").status == 200  # the page itself holds no secret


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", "ü"])
def test_a_wrong_token_gets_no_cookie(guest: Visitor, token: str) -> None:
    reply = ask(guest.web.url, "/enter", {"token": token})
    assert (reply.status, "set-cookie" in reply.headers) == (403, False)


def test_what_is_not_a_token_at_all_is_refused(guest: Visitor) -> None:
    for body in (b"", b"[]", b'{"token": 1}', b"\xff"):
        assert ask(guest.web.url, "/enter", body).status == 400


def test_every_answer_forbids_inline_scripts_frames_and_guessing_of_types(guest: Visitor) -> None:
    assert "HttpOnly" in guest.entered.headers["set-cookie"]
    assert "SameSite=strict" in guest.entered.headers["set-cookie"]
    for path in ("/", "/static/main.js", "/static/style.css", "/sessions", "/nowhere"):
        headers = guest.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/static/../door.py", "/static/%2e%2e/door.py", "/static//etc/passwd", "/static/", "/door.py"]
)
def test_only_files_of_the_page_are_served(guest: Visitor, path: str) -> None:
    assert guest.ask(path).status == 404


# ── a connection ────────────────────────────────────────────────────────────────────────────────
def test_a_task_begins_a_session_and_its_events_come_in_order(visitor: Visitor) -> None:
    with visitor.connected() as talk:
        assert talk.next("state") == {"type": "state", "session": "", "open": False, "busy": False}
        assert talk.tell("task", text="Count")["problem"] == ""
        talk.until("approval_requested")
        assert [each["seq"] for each in talk.events] == list(range(1, len(talk.events) + 1))
        assert talk.tell("task", text="More")["problem"] == "A task is already running. Stop it first, or wait."
        reply = {"verdict": "deny", "words": "no"}
        assert talk.tell("answer", approval="another", reply=reply)["problem"]
        assert talk.tell("answer", approval="approval-1", reply=reply)["problem"] == ""
        assert talk.tell("answer", approval="approval-1", reply=reply)["problem"]
        talk.until("task_summarized")
        while [each["busy"] for each in talk.said if each["type"] == "state"][-1]:
            talk.next("state")
        assert [each["session"] for each in talk.said if each["type"] == "state"][-1] == "s1"


def test_a_page_that_comes_back_gets_what_it_has_not(visitor: Visitor, sessions: PlayedSessions) -> None:
    session = sessions.add("old", [TextAppended(str(number)) for number in range(2500)])
    for after in (0, 1, 999, 1000, 2500, 2501):
        with visitor.connected("old", after) as talk:
            talk.tell("stop")
            assert [each["seq"] for each in talk.events] == list(range(after + 1, len(session.events) + 1))
            batches = [message for message in talk.said if message["type"] == "events"]
            assert [message["more"] for message in batches] == [True] * (len(batches) - 1) + [False] * bool(batches)


def test_a_page_that_takes_nothing_is_dropped(
    visitor: Visitor, sessions: PlayedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_connection, "SEND_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(page_connection, "MAX_BATCH_EVENTS", 10)
    session = sessions.add("old", [WarningIssued("x" * 100_000) for _ in range(300)])
    upgrade = [
        "upgrade: websocket",
        "connection: upgrade",
        "sec-websocket-version: 13",
        "sec-websocket-key: " + "A" * 22 + "==",
    ]
    head = [
        "GET /ws?session=old HTTP/1.1",
        f"host: 127.0.0.1:{visitor.web.port}",
        f"cookie: {visitor.cookie}",
        *upgrade,
    ]
    with socket.create_connection(("127.0.0.1", visitor.web.port), SECONDS) as slow:
        slow.sendall("\r\n".join([*head, "", ""]).encode())
        time.sleep(2)
        received = 0
        while piece := slow.recv(1 << 20):
            received += len(piece)
    assert 0 < received < len(session.events) * 100_000 / 2


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"type": "task"}', '{"type": "delete", "id": 1}', '{"type":"stop","id":"1"}']
)
def test_what_is_not_a_command_ends_the_connection_for_good(guest: Visitor, text: str) -> None:
    with guest.connected() as talk:
        talk.socket.send(text)
        assert talk.ended() == page_connection.CloseCode.NOT_UNDERSTOOD
    with guest.connected() as talk:
        talk.socket.send(text.encode())
        assert talk.ended() == page_connection.CloseCode.NOT_UNDERSTOOD


def test_unknown_sessions_and_places_are_said(guest: Visitor) -> None:
    with guest.connected("nobody") as talk:
        assert talk.ended() == page_connection.CloseCode.NO_SUCH_SESSION
    for after in ("x", "-1"):
        with guest.connected("", after) as talk:
            assert talk.ended() == page_connection.CloseCode.NOT_UNDERSTOOD
    assert guest.ask("/sessions/nobody", "DELETE").status == 409
    assert guest.ask("/sessions?offset=x").status == 400


# ── sessions behind it ──────────────────────────────────────────────────────────────────────────
def test_looking_does_not_open_and_two_pages_open_once(visitor: Visitor, sessions: PlayedSessions) -> None:
    session = sessions.add("old", [tasked("Old"), TaskStopped(task=1, reason="done", text="")])
    with visitor.connected("old") as one, visitor.connected("old") as two:
        one.until("task_stopped")
        two.until("task_stopped")
        assert one.tell("answer", approval="x", reply={"verdict": "once"})["problem"]
        assert one.tell("stop")["problem"] == ""
        assert sessions.opened == set()
        for talk in (one, two):
            assert talk.tell("review")["files"] == []
            assert talk.tell("keep")["problem"] == ""
        one.tell("stop")
        two.tell("stop")
        assert [each["event"]["type"] for each in one.events].count("session_resumed") == 1
        assert one.events == two.events
        assert len(one.events) == len(session.events)


def test_work_goes_on_without_pages_and_a_session_at_rest_is_closed(
    visitor: Visitor, sessions: PlayedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_hub, "IDLE_SECONDS", 0.05)
    gate, closed = Gate(), []
    sessions._scripts = ([gate, *saying("The end.")],)

    async def close(session: PlayedSession) -> None:
        closed.append(session.id)

    monkeypatch.setattr(PlayedSession, "close", close)
    with visitor.connected() as talk:
        talk.tell("task", text="Work")
    time.sleep(0.2)
    assert closed == []
    gate.open()
    soon(lambda: closed == ["s1"])
    assert isinstance(sessions.all["s1"].events[-2].event, TaskStopped)
    with visitor.connected("s1") as talk:
        talk.until("task_summarized")


def test_a_page_that_comes_back_in_time_keeps_its_session_open(
    visitor: Visitor, sessions: PlayedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_hub, "IDLE_SECONDS", 0.3)
    sessions.add("old")
    with visitor.connected("old") as talk:
        talk.tell("keep")
    with visitor.connected("old") as talk:
        time.sleep(0.6)
        assert talk.next("state")["open"] is True
        assert talk.tell("review")["problem"] == ""
    assert len([each for each in sessions.all["old"].events if type(each.event).__name__ == "SessionResumed"]) == 1


def test_a_session_that_works_is_not_deleted(visitor: Visitor) -> None:
    with visitor.connected() as talk:
        talk.tell("task", text="Count")
        talk.until("approval_requested")
        assert visitor.ask("/sessions/s1", "DELETE").status == 409
        talk.tell("stop")
        talk.until("task_summarized")
        while [each["busy"] for each in talk.said if each["type"] == "state"][-1]:
            talk.next("state")
        assert visitor.ask("/sessions/s1", "DELETE").status == 204
        assert visitor.ask("/sessions").json == {"sessions": [], "more": False}


def test_work_that_fails_in_a_way_the_session_cannot_say_is_said(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: PlayedSession, task: str) -> TaskStopped:
        raise StoreError("the disk is full") if task == "known" else ZeroDivisionError

    monkeypatch.setattr(PlayedSession, "run", fails)
    with visitor.connected() as talk:
        talk.tell("task", text="known")
        assert talk.next("trouble")["text"] == "the disk is full"
        talk.tell("task", text="unknown")
        while "bug in Callwright" not in talk.said[-1].get("text", ""):
            talk.next("trouble")


def test_when_the_server_ends_sessions_are_closed(sessions: PlayedSessions) -> None:
    with Web(sessions) as web, Visitor(web).connected() as talk:
        talk.tell("task", text="Count")
        talk.until("approval_requested")
    assert not sessions.all["s1"].is_busy
    assert [type(each.event).__name__ for each in sessions.all["s1"].events[-2:]] == ["TaskStopped", "TaskSummarized"]


def test_many_sessions_come_page_by_page(visitor: Visitor, sessions: PlayedSessions) -> None:
    for number in range(60):
        sessions.add(f"old{number}")
    first, rest = visitor.ask("/sessions").json, visitor.ask("/sessions?offset=50").json
    assert (len(first["sessions"]), first["more"], len(rest["sessions"]), rest["more"]) == (50, True, 10, False)
