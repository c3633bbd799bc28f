"""The real `codex app-server` behind the whole gateway, with a provider of ours on the other side.

The provider is a Responses server on 127.0.0.1 that plays scripts and keeps what it was asked.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.codexes import CATALOGUED, child, heard, problem
from tests.integration.hosted import Hosted, backend, model, opened
from tests.integration.wires import CHAT, QUESTION, RESPONSES, TOOLS, WIRES, Call, Round, Wire
from tests.support.codex import COMPLETED, CREATED, NEEDED, PROGRAM, call, ended, reasoning, responded, text
from tests.support.sampling import FULL
from tests.support.upstream import (
    CLOSE,
    HANG,
    READ,
    RESET,
    Step,
    Upstream,
    answer,
    closed_port,
    rate_limited,
    refused,
    whole,
)

pytestmark = [NEEDED, pytest.mark.timeout(300)]

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def provider() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, provider: Upstream) -> Iterator[Hosted]:
    tables = [
        backend("codex", provider.url, kind="codex", path=str(PROGRAM), key="key-of-the-provider"),
        backend("eager", provider.url, kind="codex", path=str(PROGRAM), retries=2, backoff_seconds=0.01),
        backend("down", f"http://127.0.0.1:{closed_port()}", kind="codex", path=str(PROGRAM)),
        model("m", "codex"),
        model("eager", "eager"),
        model("down", "down"),
        model(CATALOGUED, "codex"),
        model("xml", "codex", rules={"output_mode": "obsidian-xml"}),
        model("strict", "codex", rules={"malformed": "retry"}),
        model("one", "codex", rules={"tool_block_max": 1}),
        model("sight", "codex", vision=True),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), "\n".join(tables)) as gateway:
        yield gateway


def told(request: Any) -> list[tuple[str, Any]]:
    """What a provider was told, item by item."""
    known = {"message": "role", "function_call": "name", "function_call_output": "call_id"}
    inner = {"message": "content", "function_call": "arguments", "function_call_output": "output"}
    return [(item[known[item["type"]]], item[inner[item["type"]]]) for item in request.json["input"]]


def words(value: str) -> list[dict[str, str]]:
    return [{"type": "input_text", "text": value}]


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES.values(), ids=lambda wire: wire.name)
def test_text_and_reasoning_arrive_as_they_were_said(
    gateway: Hosted, provider: Upstream, wire: Wire, stream: bool
) -> None:
    pieces = ("ha", "ha", "ha", " done", "\n", "\n", "next")
    provider.play(responded(*reasoning("First.", "Then."), *text(*pieces)))
    answer = heard(gateway, wire, stream=stream)
    assert answer.said == ("hahaha done\n\nnext", "First.\n\nThen.", (), "stop")
    assert answer.usage == (11, 7)


def test_the_provider_is_told_what_the_client_said_and_nothing_else(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*text("Yes.")))
    for name in ("m", CATALOGUED):
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "No jokes."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "system", "content": "It is late."},
            {"role": "user", "content": QUESTION},
        ]
        body = CHAT.body(name, stream=False) | {"messages": messages}
        assert gateway.post(CHAT.path, body).status == 200
        request = provider.requests[-1]
        assert told(request) == [
            ("developer", words("Be brief.")),
            ("developer", words("No jokes.")),
            ("user", words("Hi")),
            ("assistant", [{"type": "output_text", "text": "Hello."}]),
            ("developer", words("It is late.")),
            ("user", words(QUESTION)),
        ]
        assert {tool["name"]: tool["parameters"] for tool in request.json["tools"]} == TOOLS
        assert "instructions" not in request.json
        assert request.json["model"] == name
        assert request.headers["authorization"] == "Bearer key-of-the-provider"


def test_without_instructions_and_tools_the_provider_is_told_neither(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*text("Yes.")))
    for name in ("m", CATALOGUED):
        heard(gateway, CHAT, name=name, tools=False)
        assert told(provider.requests[-1]) == [("user", words(QUESTION))]
        assert not provider.requests[-1].json.get("tools")


@pytest.mark.parametrize("wire", WIRES.values(), ids=lambda wire: wire.name)
def test_one_call_ends_the_turn_and_arguments_stay_as_they_were_written(
    gateway: Hosted, provider: Upstream, wire: Wire
) -> None:
    provider.play(responded(*text("I look."), *call("call_1", "get_weather", '{"city": "Zürich \\u0026 co" }')))
    before = len(provider.requests)
    answer = heard(gateway, wire)
    assert answer.said == ("I look.", "", (Call("get_weather", {"city": "Zürich & co"}),), "tool_calls")
    assert len(provider.requests) == before + 1


def test_three_parallel_calls_with_pauses_between_them_are_all_collected(gateway: Hosted, provider: Upstream) -> None:
    cities = ("Oslo", "Rome", "Lima")
    steps: list[Step] = []
    first_is_here = threading.Event()
    for city in cities:
        steps += [*call(f"call_{city}", "get_weather", json.dumps({"city": city})), first_is_here, 0.2]
    provider.play(responded(*steps))
    with opened(gateway.url, CHAT.path, CHAT.body("m", stream=True)) as coming:
        coming.until(b"Oslo")  # it is told while others are still to come
        first_is_here.set()
        answer = CHAT.streamed(coming.rest())
    assert [made.arguments["city"] for made in answer.calls] == list(cities)
    assert answer.ids == tuple(f"call_{city}" for city in cities)
    assert answer.finish == "tool_calls"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
def test_a_loop_of_two_rounds_comes_to_its_answer(
    gateway: Hosted, provider: Upstream, wire: Wire, stream: bool
) -> None:
    rounds: list[Round] = []
    for number, city in enumerate(("Paris", "Oslo")):
        provider.play(responded(*call(f"call_{number}", "get_weather", json.dumps({"city": city}))))
        turn = heard(gateway, wire, stream=stream, rounds=rounds)
        assert turn.calls == (Call("get_weather", {"city": city}),)
        rounds.append(Round(turn.ids[0], turn.calls[0], f"{city} is sunny"))
    provider.play(responded(*text("Both are sunny.")))
    assert heard(gateway, wire, stream=stream, rounds=rounds).said == ("Both are sunny.", "", (), "stop")
    assert told(provider.requests[-1]) == [
        ("user", words(QUESTION)),
        ("get_weather", '{"city": "Paris"}'),
        ("call_0", "Paris is sunny"),
        ("get_weather", '{"city": "Oslo"}'),
        ("call_1", "Oslo is sunny"),
    ]


def test_sealed_reasoning_goes_back_to_the_provider(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*reasoning("Hm.", seal="c2VhbA"), *call("call_1", "ping", "{}")))
    first = gateway.post(RESPONSES.path, RESPONSES.body("m", stream=False)).json
    provider.play(responded(*text("Pong.")))
    output = {"type": "function_call_output", "call_id": "call_1", "output": "pong"}
    body = RESPONSES.body("m", stream=False) | {"previous_response_id": first["id"], "input": [output]}
    assert gateway.post(RESPONSES.path, body).status == 200
    kinds = {item["type"]: item for item in provider.requests[-1].json["input"]}
    assert kinds["reasoning"]["encrypted_content"] == "c2VhbA"


def test_long_results_reach_the_provider_whole(gateway: Hosted, provider: Upstream) -> None:
    result = "line of a log\n" * 30_000
    provider.play(responded(*text("Read.")))
    for name in ("m", CATALOGUED):
        heard(gateway, CHAT, name=name, rounds=[Round("call_long", Call("ping", {}), result)])
        assert told(provider.requests[-1])[-1] == ("call_long", result)


def test_pictures_are_seen(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*text("A pixel.")))
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    body = CHAT.body("sight", stream=False) | {"messages": [{"role": "user", "content": content}]}
    assert gateway.post(CHAT.path, body).status == 200
    assert told(provider.requests[-1]) == [
        ("user", [*words("What is it?"), {"type": "input_image", "image_url": PIXEL, "detail": "auto"}])
    ]
    content[1] = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    refused = gateway.post(CHAT.path, body)
    assert refused.status == 400
    assert "use an inline data URL" in refused.json["error"]["message"]


@pytest.mark.parametrize(
    "name", ["exec_command", "shell_command", "apply_patch", "mcp__files__read", "mcp__" + "x" * 59, "web_search"]
)
def test_tools_that_codex_would_drop_or_refuse_keep_their_names_for_the_client(
    gateway: Hosted, provider: Upstream, name: str
) -> None:
    def called(seen: Any) -> list[Step]:
        return responded(*call("call_1", seen.json["tools"][0]["name"], "{}"))

    provider.play(called)
    tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    body = CHAT.body("m", stream=True) | {"tools": [tool]}
    for _ in range(2):
        turn = CHAT.streamed(gateway.post(CHAT.path, body).body)
        assert turn.calls == (Call(name, {}),)
        calls = [{"id": turn.ids[0], "type": "function", "function": {"name": name, "arguments": "{}"}}]
        body["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": turn.ids[0], "content": "done"},
        ]
    request = provider.requests[-1].json
    offered = request["tools"][0]["name"]
    assert len(offered) <= 64
    assert [each["name"] for each in request["input"] if each["type"] == "function_call"] == [offered]


@pytest.mark.parametrize(
    "wrong", [call("call_1", "exec_command", '{"cmd": "id"}'), call("call_1", "get_weather", "Paris, please")]
)
def test_a_call_that_codex_would_answer_itself_is_asked_for_again_by_us(
    gateway: Hosted, provider: Upstream, wrong: list[bytes]
) -> None:
    """Codex may be quicker than we are, and ask its provider again before it is stopped; nothing comes of that."""
    before = len(provider.requests)

    def answered(seen: Any) -> list[Step]:
        if len(provider.requests) == before + 1:
            return responded(*wrong)
        own = any(item["type"] == "function_call_output" for item in seen.json["input"])
        return answer(CREATED, HANG) if own else responded(*call("call_2", "get_weather", '{"city": "Paris"}'))

    provider.play(answered)
    assert heard(gateway, CHAT, name="strict").calls == (Call("get_weather", {"city": "Paris"}),)
    asked = provider.requests[before:]
    own = [seen for seen in asked if any(item["type"] == "function_call_output" for item in seen.json["input"])]
    assert len(asked) - len(own) == 2
    assert len(own) <= 1
    assert all(seen.wait_left() for seen in own)


def test_a_chosen_tool_is_the_only_one_and_none_is_none(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*call("call_1", "ping", "{}")))
    chosen = CHAT.body("m", stream=False) | {"tool_choice": {"type": "function", "function": {"name": "ping"}}}
    assert gateway.post(CHAT.path, chosen).status == 200
    assert [tool["name"] for tool in provider.requests[-1].json["tools"]] == ["ping"]
    provider.play(responded(*text("No.")))
    assert gateway.post(CHAT.path, CHAT.body("m", stream=False) | {"tool_choice": "none"}).status == 200
    assert not provider.requests[-1].json.get("tools")


def test_effort_and_a_schema_are_forwarded_and_what_has_no_place_is_refused(
    gateway: Hosted, provider: Upstream
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    provider.play(responded(*text('{"a": "b"}')))
    body = CHAT.body("m", stream=False, tools=False) | {"reasoning_effort": "high", "response_format": form}
    assert gateway.post(CHAT.path, body).status == 200
    assert provider.requests[-1].json["reasoning"]["effort"] == "high"
    assert provider.requests[-1].json["text"]["format"]["schema"] == schema
    flat = {"type": "json_schema", "name": "x", "schema": schema}
    body = RESPONSES.body("m", stream=False, tools=False) | {"text": {"format": flat}}
    assert gateway.post(RESPONSES.path, body).status == 200
    assert provider.requests[-1].json["text"]["format"]["schema"] == schema
    body = CHAT.body("m", stream=False, tools=False)
    refusal = gateway.post(CHAT.path, body | {"response_format": {"type": "json_object"}})
    assert (refusal.status, "only JSON schemas" in refusal.json["error"]["message"]) == (400, True)


def test_completed_is_the_end_whatever_a_provider_says_after_it(gateway: Hosted, provider: Upstream) -> None:
    provider.play(answer(CREATED, *text("Yes."), COMPLETED, 0.2, *text(" No."), end=False))
    assert heard(gateway, CHAT).text == "Yes."


# ── the settings of the older proxy ──────────────────────────────────────────────────────────────


def test_calls_are_also_written_as_xml_and_the_turn_is_counted(gateway: Hosted, provider: Upstream) -> None:
    provider.play(responded(*call("call_1", "get_weather", '{"city": "Paris"}'), *call("call_2", "ping", "{}")))
    reply = gateway.post(CHAT.path, CHAT.body("xml", stream=False))
    content = reply.json["choices"][0]["message"]["content"]
    assert re.findall(r"<use_tool>\s*<name>(\w+)</name>", content) == ["get_weather", "ping"]
    counted = {name: value for name, value in reply.headers.items() if name.startswith("x-codex-")}
    assert counted == {
        "x-codex-tool-call-count": "2",
        "x-codex-tool-call-truncated": "false",
        "x-codex-stop-after-tools-mode": "burst",
    }
    streamed = gateway.post(CHAT.path, CHAT.body("xml", stream=True)).body
    assert CHAT.streamed(streamed).text == content
    comment = b': {"tool_call_count":2,"tool_call_truncated":false,"stop_after_tools_mode":"burst"}'
    assert streamed.count(comment) == 1


def test_a_limit_on_calls_ends_the_provider_s_generation(gateway: Hosted, provider: Upstream) -> None:
    provider.play(answer(CREATED, *call("call_1", "ping", "{}"), HANG))
    assert heard(gateway, CHAT, name="one").finish == "tool_calls"
    assert provider.requests[-1].wait_left()


# ── endings ──────────────────────────────────────────────────────────────────────────────────────


def test_a_client_that_leaves_ends_the_provider_s_generation(gateway: Hosted, provider: Upstream) -> None:
    provider.play(answer(CREATED, *text("One moment")[:2], HANG))
    with opened(gateway.url, CHAT.path, CHAT.body("m", stream=True)) as coming:
        coming.until(b"One moment")
    assert provider.requests[-1].wait_left()


def test_a_client_that_leaves_before_the_first_word_does_too(gateway: Hosted, provider: Upstream) -> None:
    provider.play(answer(CREATED, HANG))
    before = len(provider.requests)
    connection = gateway.send(CHAT.path, CHAT.body("m", stream=True))
    while len(provider.requests) == before:
        time.sleep(0.01)
    connection.close()
    assert provider.requests[-1].wait_left()


def test_an_output_limit_is_length_and_a_filter_is_one(gateway: Hosted, provider: Upstream) -> None:
    for reason, finish in (("max_output_tokens", "length"), ("content_filter", "content_filter")):
        provider.play(answer(CREATED, *text("Half"), ended("incomplete", incomplete_details={"reason": reason})))
        assert heard(gateway, CHAT).said == ("Half", "", (), finish)


@pytest.mark.parametrize(
    ("script", "status", "code", "words"),
    [
        (refused(400, "no such field"), 400, "backend_refused", "answered 400: no such field"),
        (refused(401, "bad key"), 502, "backend_auth", "answered 401: bad key"),
        (refused(404, "no such model"), 400, "backend_refused", "answered 404: no such model"),
        (rate_limited("1"), 429, "backend_rate_limit", "answered 429"),
        (refused(500, "boom"), 503, "backend_unavailable", "answered 500"),
        (refused(503, "later"), 503, "backend_overloaded", "answered 503: later"),
        (refused(400, "input exceeds the context window"), 400, "context_length_exceeded", "too long"),
        ([CLOSE], 503, "backend_unavailable", "closed the connection in the middle"),
        (whole(b'{"hello": 1}'), 503, "backend_unavailable", "closed the connection in the middle"),
    ],
)
def test_a_provider_s_refusal_is_told_as_any_backend_s(
    gateway: Hosted, provider: Upstream, script: list[Step], status: int, code: str, words: str
) -> None:
    provider.play(script)
    before = len(provider.requests)
    got, message, kind = problem(gateway)
    assert (got, kind) == (status, code)
    assert words in message
    assert "127.0.0.1" not in message.replace(f"({provider.url}/v1)", "")
    assert len(provider.requests) == before + 1


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("context_length_exceeded", 400, "context_length_exceeded"),
        ("rate_limit_exceeded", 429, "backend_rate_limit"),
        ("insufficient_quota", 429, "backend_rate_limit"),
        ("server_is_overloaded", 503, "backend_overloaded"),
        ("server_error", 503, "backend_unavailable"),
        ("invalid_prompt", 400, "backend_refused"),
    ],
)
def test_a_response_that_failed_is_told_by_its_code(
    gateway: Hosted, provider: Upstream, code: str, status: int, kind: str
) -> None:
    provider.play(answer(CREATED, ended("failed", error={"code": code, "message": "It is so."})))
    assert problem(gateway)[::2] == (status, kind)


def test_what_failed_before_the_first_word_is_tried_again(gateway: Hosted, provider: Upstream) -> None:
    provider.play(refused(500, "boom"), rate_limited("0"), responded(*text("Here.")))
    assert heard(gateway, CHAT, name="eager").text == "Here."


def test_a_provider_that_is_down_is_told_at_once(gateway: Hosted) -> None:
    status, message, code = problem(gateway, "down")
    assert (status, code) == (503, "backend_unavailable")
    assert "cannot reach its provider" in message


@pytest.mark.parametrize("cut", [[CLOSE], [READ, RESET], []])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
def test_a_stream_that_is_cut_keeps_its_words_once_and_ends_well(
    gateway: Hosted, provider: Upstream, wire: Wire, cut: list[Step]
) -> None:
    provider.play(answer(CREATED, *text("Half a ", "sentence")[:3], *cut))
    answered = heard(gateway, wire)
    assert answered.text == "Half a sentence"
    assert (answered.finish, "closed the connection in the middle" in answered.error) == ("", True)


def test_a_silent_provider_is_given_up_in_time(tmp_path: Path, provider: Upstream) -> None:
    provider.play(answer(CREATED, *text("Well")[:2], HANG))
    tables = backend("codex", provider.url, kind="codex", path=str(PROGRAM), idle_seconds=600) + model("m", "codex")
    with (
        Hosted(tmp_path, tables, clock=True) as gateway,
        opened(gateway.url, CHAT.path, CHAT.body("m", stream=True)) as coming,
    ):
        coming.until(b"Well")
        gateway.pass_time(601)
        answered = CHAT.streamed(coming.rest())
    assert answered.text == "Well"
    assert "sent nothing in the middle of its answer" in answered.error
    assert provider.requests[-1].wait_left()


# ── the child ────────────────────────────────────────────────────────────────────────────────────


def test_twenty_turns_at_once_do_not_mix(gateway: Hosted, provider: Upstream) -> None:
    waiting: set[str] = set()
    all_are_here = threading.Event()  # side by side, not one after the other

    def echoed(seen: Any) -> list[Step]:
        number = seen.json["input"][-1]["content"][0]["text"]
        waiting.add(number)
        if len(waiting) == 20:
            all_are_here.set()
        return responded(all_are_here, *(step for piece in text(*[f"{number} "] * 10) for step in (piece, 0.02)))

    provider.play(echoed)

    def asked(number: int) -> str:
        body = CHAT.body("m", stream=True) | {"messages": [{"role": "user", "content": f"number {number}"}]}
        return CHAT.streamed(gateway.post(CHAT.path, body).body).text

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(asked, range(20))) == [f"number {number} " * 10 for number in range(20)]


def memory(pid: int) -> int:
    """Kilobytes that are the process's own."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "VmSwap")))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_hundreds_of_turns_leave_nothing_behind(gateway: Hosted, provider: Upstream) -> None:
    spoken, calling = responded(*text("Yes.")), responded(*call("call_1", "ping", "{}"))
    backend = child(gateway)

    def turns(many: int) -> None:
        for number in range(many):
            provider.play(calling if number % 2 else spoken)
            assert heard(gateway, CHAT, stream=False).finish == ("tool_calls" if number % 2 else "stop")

    turns(100 if FULL else 30)
    pid, before, tasks = backend.child.pid, memory(backend.child.pid), gateway.tasks
    kept = sum(file.stat().st_size for file in backend.child.folder.rglob("*"))
    turns(200 if FULL else 30)
    assert backend.child.pid == pid
    assert memory(pid) - before < 8_000, "kilobytes for up to two hundred turns"
    assert sum(file.stat().st_size for file in backend.child.folder.rglob("*")) - kept < 2_000_000
    assert gateway.tasks <= tasks + 5
