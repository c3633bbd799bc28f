"""What the gateway does for a turn besides handing it on: signs of life, other backends, another try, what clients ask
for by header, earlier answers by their id, ids, telemetry and tokens."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.backends.http import HttpBackend
from tests.integration.hosted import Hosted, Reply, ask, backend, model
from tests.integration.turns import CALL_BEGUN, CALL_ENDED, delta, finish, said, spoken, text, usage
from tests.integration.wires import CHAT, RESPONSES, WIRES, Call, Heard, Wire
from tests.support.responses import told
from tests.support.served import Served
from tests.support.upstream import DONE, PASS, READ, RESET, Script, Upstream, answer, rate_limited, refused

WEATHER = Call("get_weather", {"city": "Paris", "days": 3})
CALLING = said(*text("Let me look."), *CALL_BEGUN, *CALL_ENDED)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    tables = backend("main", server.url) + model("m", "main")
    with Hosted(tmp_path_factory.mktemp("gateway"), tables, "heartbeat_seconds = 15", clock=True) as gateway:
        server.pass_time = lambda: gateway.pass_time(16)
        yield gateway


def heard(wire: Wire, reply: Reply, *, stream: bool = True) -> Heard:
    assert reply.status == 200, reply.body
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


# ── signs of life (W-20) ─────────────────────────────────────────────────────────────────────────

SLOW = said(*text("Let me think. "), READ, PASS, PASS, *text("Done."))
PING = b'event: ping\ndata: {"type":"ping"}\n\n'


@pytest.mark.parametrize(
    ("wire", "profile", "comments", "events"),
    [
        ("chat", "openai", True, None),
        ("responses", "openai", True, None),
        ("responses", "codex", False, b"event: response.in_progress"),
        ("messages", "claude-code", False, PING),
        ("ollama", "openai", False, None),
    ],
)
def test_an_idle_stream_shows_life_in_the_form_that_the_client_counts(
    gateway: Hosted, server: Upstream, wire: str, profile: str, comments: bool, events: bytes | None
) -> None:
    server.play(SLOW)
    client = WIRES[wire]
    reply = gateway.post(client.path, client.body("m", stream=True), x_callwright_profile=profile)
    assert heard(client, reply).said == ("Let me think. Done.", "", (), "stop")
    before, _, after = reply.body.partition(b"Done.")
    assert (b": keep-alive\n\n" in before) == comments
    assert b"keep-alive" not in after
    if events:
        # One `response.in_progress` begins every Responses stream.
        assert before.count(events) >= 2


# ── other backends (BK-7) ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "script", [refused(503, "loading"), [RESET], rate_limited("1000")], ids=["503", "reset", "429"]
)
@EACH_WIRE
def test_a_backend_that_fails_is_followed_by_the_next(
    tmp_path: Path, upstream: Upstream, server: Upstream, wire: Wire, script: Script
) -> None:
    upstream.play(script)
    server.play(spoken("Second."))
    tables = backend("one", upstream.url) + backend("two", server.url) + model("m", ["one", "two"])
    with Hosted(tmp_path, tables) as gateway:
        reply = gateway.post(wire.path, wire.body("m", stream=True))
    assert heard(wire, reply).text == "Second."
    assert len(upstream.requests) == 1


def test_a_refusal_is_not_taken_elsewhere(tmp_path: Path, upstream: Upstream, server: Upstream) -> None:
    upstream.play(refused(400, "temperature must be a number"))
    before = len(server.requests)
    tables = backend("one", upstream.url) + backend("two", server.url) + model("m", ["one", "two"])
    with Hosted(tmp_path, tables) as gateway:
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 400
    assert len(server.requests) == before


def test_a_backend_that_keeps_failing_is_left_alone_for_a_while(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play([RESET])
    tables = backend("main", upstream.url, breaker_failures=2, breaker_seconds=300) + model("m", "main")
    with Hosted(tmp_path, tables) as gateway:
        replies = [gateway.post(CHAT.path, CHAT.body("m", stream=True)) for _ in range(3)]
        assert [reply.status for reply in replies] == [503, 503, 503]
        assert "is not used for" in CHAT.problem(replies[2].json)[0]
        assert replies[2].headers["retry-after"] == "300"
        assert len(upstream.requests) == 2, "the third was not sent"
        upstream.play(spoken("Back."))
        main = gateway.service.state.engine.backends["main"]
        assert isinstance(main, HttpBackend)
        main._breaker._clock = lambda: time.monotonic() + 301
        assert heard(CHAT, gateway.post(CHAT.path, CHAT.body("m", stream=True))).text == "Back."


def test_a_backend_that_is_left_alone_is_not_asked_before_another(
    tmp_path: Path, upstream: Upstream, server: Upstream
) -> None:
    upstream.play([RESET])
    server.play(spoken("Second."))
    tables = backend("one", upstream.url, breaker_failures=1) + backend("two", server.url) + model("m", ["one", "two"])
    with Hosted(tmp_path, tables) as gateway:
        for _ in range(3):
            assert heard(CHAT, gateway.post(CHAT.path, CHAT.body("m", stream=True))).text == "Second."
    assert len(upstream.requests) == 1


# ── another try (C-4, T-18) ──────────────────────────────────────────────────────────────────────

EMPTY = {"nothing": said(), "white space": spoken(" \n "), "only [DONE]": answer(DONE)}


@pytest.mark.parametrize("empty", EMPTY)
@STREAM
@EACH_WIRE
def test_an_empty_turn_is_asked_for_again_and_then_an_error(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool, empty: str
) -> None:
    server.play(EMPTY[empty], EMPTY[empty], spoken("At last."))
    answered = heard(wire, gateway.post(wire.path, wire.body("m", stream=stream)), stream=stream)
    assert answered.text.strip() == "At last."
    server.play(EMPTY[empty])
    before = len(server.requests)
    reply = gateway.post(wire.path, wire.body("m", stream=stream))
    assert len(server.requests) - before == 3
    if reply.status == 200:
        assert stream, "white space was on its way already"
        failed = heard(wire, reply)
        assert (failed.text.strip(), failed.finish) == ("", "")
        message = failed.error
    else:
        message = wire.problem(reply.json)[0]
    assert "no usable answer in 3 attempts: it is empty" in message
    assert "Try again, or use another model" in message
    assert "[[backends]]" not in message, "it is the model that failed, and not how its server is reached"


def test_thoughts_without_an_answer_are_an_empty_turn(gateway: Hosted, server: Upstream) -> None:
    server.play(said(delta(reasoning_content="Hm. ")))
    failed = heard(CHAT, gateway.post(CHAT.path, CHAT.body("m", stream=True)))
    assert failed.reasoning == "Hm. Hm. Hm. "
    assert "no usable answer in 3 attempts" in failed.error


# ── by header (C-3, C-4, C-6) ────────────────────────────────────────────────────────────────────


@STREAM
@pytest.mark.parametrize(
    ("header", "value", "xml"),
    [
        ("x_callwright_profile", "kilocode-xml", "<get_weather>\n<city>Paris</city>\n<days>3</days>\n</get_weather>"),
        ("x_callwright_profile", "obsidian-xml", "<use_tool>\n<name>get_weather</name>"),
        ("x_proxy_output_mode", "obsidian-xml", "<use_tool>\n<name>get_weather</name>"),
        ("x_proxy_output_mode", "openai-json", ""),
        ("x_callwright_profile", "openai", ""),
    ],
)
def test_a_header_chooses_how_calls_are_written(
    gateway: Hosted, server: Upstream, stream: bool, header: str, value: str, xml: str
) -> None:
    server.play(CALLING)
    reply = gateway.post(CHAT.path, CHAT.body("m", stream=stream), **{header: value})
    answered = heard(CHAT, reply, stream=stream)
    assert (answered.calls, answered.finish) == ((WEATHER,), "tool_calls")
    assert xml in answered.text
    assert ("<" in answered.text) == bool(xml)


@pytest.mark.parametrize("header", ["x_callwright_profile", "x_proxy_output_mode"])
@EACH_WIRE
def test_a_header_that_asks_for_what_does_not_exist_is_refused(gateway: Hosted, wire: Wire, header: str) -> None:
    reply = gateway.post(wire.path, wire.body("m", stream=True), **{header: "nobody"})
    assert reply.status == 400
    assert "nobody" in wire.problem(reply.json)[0]


# ── earlier answers (W-19) ───────────────────────────────────────────────────────────────────────


@STREAM
def test_an_answer_goes_on_from_an_earlier_one(gateway: Hosted, server: Upstream, stream: bool) -> None:
    server.play(CALLING)
    reply = gateway.post(RESPONSES.path, {**RESPONSES.body("m", stream=stream), "instructions": "Be brief."})
    first = heard(RESPONSES, reply, stream=stream)
    name = (told(reply.body)[-1]["response"] if stream else reply.json)["id"]
    output = {"type": "function_call_output", "call_id": first.ids[0], "output": "3 °C"}
    server.play(spoken("Cold."))
    more = {**RESPONSES.body("m", stream=stream), "previous_response_id": name, "input": [output]}
    assert heard(RESPONSES, gateway.post(RESPONSES.path, more), stream=stream).text == "Cold."
    asked, called, result = server.requests[-1].json["messages"]
    assert (asked["role"], called["role"], result["role"]) == ("user", "assistant", "tool")
    assert called["content"] == "Let me look."
    assert result["tool_call_id"] == called["tool_calls"][0]["id"] == first.ids[0]
    assert result["content"] == "3 °C"


def test_an_answer_that_nobody_remembers_is_refused_in_a_form_that_makes_clients_send_all(gateway: Hosted) -> None:
    body = {**RESPONSES.body("m", stream=True), "previous_response_id": "resp_unheard"}
    reply = gateway.post(RESPONSES.path, body)
    assert (reply.status, RESPONSES.problem(reply.json)[1]) == (400, "previous_response_not_found")


# ── ids and telemetry (W-16, W-17, W-23) ─────────────────────────────────────────────────────────


@EACH_WIRE
def test_a_request_has_one_id_whatever_becomes_of_it(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    for script in (spoken("Hello."), refused(400, "no")):
        server.play(script)
        for stream in (True, False):
            body = wire.body("m", stream=stream)
            assert gateway.post(wire.path, body, x_request_id="my-id.1").headers["x-request-id"] == "my-id.1"
            made = {gateway.post(wire.path, body, x_request_id=given).headers["x-request-id"] for given in ("", "a b")}
            assert len(made) == 2
            assert all(re.fullmatch(r"req_[0-9a-f]{24}", each) for each in made)


def test_answers_have_ids_of_their_own(gateway: Hosted, server: Upstream) -> None:
    server.play(spoken("Hello."))
    ids = [gateway.post(CHAT.path, CHAT.body("m", stream=False)).json["id"] for _ in range(3)]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(("script", "count"), [(CALLING, 1), (spoken("Hello."), 0)], ids=["a call", "no call"])
def test_telemetry_says_what_became_of_the_calls(gateway: Hosted, server: Upstream, script: Script, count: int) -> None:
    server.play(script)
    expected = {"tool_call_count": count, "tool_call_truncated": False, "stop_after_tools_mode": "burst"}
    stream = gateway.post(CHAT.path, CHAT.body("m", stream=True))
    comments = [line[2:] for line in stream.body.decode().split("\n\n") if line.startswith(": {")]
    assert [json.loads(comment) for comment in comments] == [expected]
    assert stream.body.endswith(f": {comments[0]}\n\ndata: [DONE]\n\n".encode())
    whole = gateway.post(CHAT.path, CHAT.body("m", stream=False)).headers
    assert {name: whole[f"x-codex-{name.replace('_', '-')}"] for name in expected} == {
        "tool_call_count": str(count),
        "tool_call_truncated": "false",
        "stop_after_tools_mode": "burst",
    }


@STREAM
def test_telemetry_can_be_switched_off(tmp_path: Path, upstream: Upstream, stream: bool) -> None:
    upstream.play(CALLING)
    with Hosted(tmp_path, backend("main", upstream.url) + model("m", "main"), "telemetry = false") as gateway:
        reply = gateway.post(CHAT.path, CHAT.body("m", stream=stream))
    assert b"\n: " not in reply.body
    assert not [name for name in reply.headers if name.startswith("x-codex")]


def test_the_log_says_what_became_of_the_calls(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(refused(404, "no list"))
    tables = backend("main", upstream.url) + model("m", "main", profile="obsidian-xml")
    with Served(tmp_path, tables) as gateway:
        for stream, script in ((True, CALLING), (False, spoken("Hello."))):
            upstream.play(script)
            assert ask(gateway.url, CHAT.path, CHAT.body("m", stream=stream)).status == 200
    lines = gateway.log.read_text(encoding="utf-8").splitlines()
    turns = [turn for turn in (json.loads(line) for line in lines if line.startswith("{")) if turn["event"] == "turn"]
    assert [(turn["has_tool_calls"], turn["tool_call_count"], turn.get("tool_call_names")) for turn in turns] == [
        (True, 1, ["get_weather"]),
        (False, 0, None),
    ]
    assert [turn["output_mode"] for turn in turns] == ["obsidian-xml"] * 2


# ── tokens (W-14) ────────────────────────────────────────────────────────────────────────────────


@STREAM
@EACH_WIRE
def test_tokens_are_the_servers_when_it_counts(gateway: Hosted, server: Upstream, wire: Wire, stream: bool) -> None:
    server.play(answer(*text("Hello."), finish("stop"), usage(1234, 56), DONE))
    answered = heard(wire, gateway.post(wire.path, wire.body("m", stream=stream)), stream=stream)
    assert answered.usage == (1234, 56)


@STREAM
@EACH_WIRE
def test_tokens_are_counted_when_the_server_does_not(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool
) -> None:
    counts = []
    for words in ("Hello.", "Hello. " * 100):
        server.play(spoken(words))
        answered = heard(wire, gateway.post(wire.path, wire.body("m", stream=stream)), stream=stream)
        assert answered.usage
        counts.append(answered.usage)
    (prompt, short), (again, long) = counts
    assert prompt == again > 20
    assert short == 2
    assert 100 <= long <= 300


def test_a_turn_that_was_asked_for_again_costs_all_its_tries(gateway: Hosted, server: Upstream) -> None:
    server.play(answer(usage(100, 0), DONE), said(*text("Hello."), usage(110, 2)))
    answered = heard(CHAT, gateway.post(CHAT.path, CHAT.body("m", stream=True)))
    assert answered.usage == (210, 2)


def test_tokens_are_told_in_a_chat_stream_only_when_asked_for(gateway: Hosted, server: Upstream) -> None:
    server.play(said(*text("Hello."), usage(1234, 56)))
    body: dict[str, Any] = CHAT.body("m", stream=True)
    del body["stream_options"]
    assert b'"usage"' not in gateway.post(CHAT.path, body).body
