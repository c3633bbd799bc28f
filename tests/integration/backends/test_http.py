"""The HTTP backend against a real server: what it sends, what it makes of every way in which a server fails."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
import uvloop

from callwright.backends.errors import BackendErrors
from callwright.backends.http import HttpBackend, join_url
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Event, Finish, TextDelta
from callwright.model import Constraint
from tests.support.clock import ClockLoop, pass_time
from tests.support.tiny_wire import TinyWire, ask
from tests.support.upstream import (
    CLOSE,
    DONE,
    HANG,
    PASS,
    READ,
    RESET,
    Upstream,
    answer,
    closed_port,
    drip,
    rate_limited,
    refused,
    sse,
    whole,
)

KEY = "sk-very-secret-1234"
GOOD = answer(sse("Good"), sse("bye"), DONE)


def backend(server: Upstream | str, **changes: Any) -> HttpBackend:
    url = server if isinstance(server, str) else server.url + "/v1"
    plain: dict[str, Any] = {"name": "local", "url": url, "key": KEY, "backoff_seconds": 0.001}
    return HttpBackend(BackendSettings(**plain | changes), TinyWire(), random=lambda: 0.5)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def heard(one: HttpBackend, **extra: Any) -> list[Event]:
    """The events of a turn, on a backend that is closed after it."""
    try:
        return [event async for events in one.stream_response(ask(), extra) for event in events]
    finally:
        await one.close()


async def failure(one: HttpBackend, before: list[Event] | None = None) -> BackendError:
    """The error that a turn ends in; what came before it is put into `before`."""
    try:
        async for events in one.stream_response(ask(), {}):
            if before is not None:
                before += events
    except BackendError as error:
        return error
    finally:
        await one.close()
    raise AssertionError("the turn went well")


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# ── a turn that goes well ────────────────────────────────────────────────────────────────────────


def test_a_turn_is_sent_and_read(upstream: Upstream) -> None:
    upstream.play(GOOD)
    events = run(heard(backend(upstream, headers={"X-Team": "blue"}), top_k=3))
    assert said(events) == "Goodbye"
    assert events[-1] == Finish("stop")
    (seen,) = upstream.requests
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.json == {"model": "m", "top_k": 3}
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["x-team"] == "blue"
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept-encoding"] == "identity"


# ── the form of an answer ────────────────────────────────────────────────────────────────────────

HELD = msgspec.structs.replace(ask(), constraint=Constraint({"type": "object"}, "root ::= [a]"))


def test_a_server_that_names_itself_is_told_the_form_in_its_own_words(upstream: Upstream) -> None:
    upstream.play(GOOD, whole(b'{"data": [{"id": "m", "owned_by": "llamacpp"}]}'), GOOD)

    async def turns() -> list[str | None]:
        one = backend(upstream)
        found = [one.flavour]
        [_ async for _ in one.stream_response(HELD, {})]
        await one.list_models()
        found.append(one.flavour)
        [_ async for _ in one.stream_response(HELD, {})]
        await one.close()
        return found

    assert run(turns()) == [None, "llamacpp"]
    assert [seen.json for seen in upstream.requests if seen.method == "POST"] == [
        {"model": "m"},
        {"model": "m", "grammar": "root ::= [a]"},
    ]


@pytest.mark.parametrize(
    ("settings", "flavour"),
    [
        ({}, None),
        ({"kind": "ollama"}, "ollama"),
        ({"kind": "ollama", "constrain": "none"}, None),
        ({"constrain": "vllm"}, "vllm"),
    ],
)
def test_the_settings_say_how_a_server_is_told_the_form(settings: dict[str, Any], flavour: str | None) -> None:
    assert backend("http://127.0.0.1:1", **settings).flavour == flavour


def test_a_header_of_the_settings_replaces_the_wires(upstream: Upstream) -> None:
    upstream.play(GOOD)
    run(heard(backend(upstream, headers={"authorization": "Basic abc"})))
    assert upstream.requests[0].headers["authorization"] == "Basic abc"


def test_events_come_as_the_server_sends_them(upstream: Upstream) -> None:
    upstream.play(answer(sse("a"), 0.05, sse("b"), 0.05, DONE))

    async def reads() -> list[list[Event]]:
        one = backend(upstream)
        try:
            return [events async for events in one.stream_response(ask(), {})]
        finally:
            await one.close()

    assert run(reads()) == [[TextDelta("a")], [TextDelta("b")], [Finish("stop")]]


def test_bytes_may_be_cut_anywhere(upstream: Upstream) -> None:
    head, *_ = answer()
    body = b"".join(step for step in answer(sse("Grüße ☃"), DONE)[1:] if isinstance(step, bytes))
    upstream.play([head, *drip(body, 7, 0.001)])
    assert said(run(heard(backend(upstream)))) == "Grüße ☃"


def test_turns_share_connections(upstream: Upstream) -> None:
    upstream.play(GOOD)

    async def turns() -> None:
        one = backend(upstream)
        for _ in range(3):
            async for _events in one.stream_response(ask(), {}):
                pass
        await one.close()

    run(turns())
    assert len({seen.port for seen in upstream.requests}) == 1


def test_a_server_that_goes_on_after_its_end_is_left(upstream: Upstream) -> None:
    upstream.play(answer(sse("x"), DONE, sse("late"), HANG))
    assert said(run(heard(backend(upstream)))) == "x"
    assert upstream.requests[0].wait_left()


@pytest.mark.parametrize("end", [RESET, CLOSE])
def test_a_connection_lost_after_the_end_is_no_error(upstream: Upstream, end: str) -> None:
    upstream.play(answer(sse("x"), DONE, READ, end))
    assert said(run(heard(backend(upstream)))) == "x"


def test_a_slow_reader_slows_the_server_down(upstream: Upstream) -> None:
    piece = b"".join([sse("x" * 1000)] * 1000)
    upstream.play(answer(*[piece] * 100, DONE))

    async def dawdle() -> int:
        one = backend(upstream)
        async with aclosing(one.stream_response(ask(), {})) as events:
            await anext(events)
            await asyncio.sleep(0.5)
            sent = upstream.requests[0].sent
        await one.close()
        return sent

    # The kernel's buffers hold some megabytes; all of it would be a hundred.
    assert run(dawdle()) < 30_000_000


# ── whoever stops listening ends the generation ──────────────────────────────────────────────────


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("way", ["aclose", "cancel", "cancel before headers"])
def test_the_server_sees_that_nobody_listens(
    upstream: Upstream, loop: Callable[[], asyncio.AbstractEventLoop], way: str
) -> None:
    upstream.play([HANG] if way == "cancel before headers" else answer(sse("x"), HANG))

    async def leave() -> None:
        one = backend(upstream)
        heard_something = asyncio.Event()

        async def listen() -> None:
            async with aclosing(one.stream_response(ask(), {})) as events:
                async for _ in events:
                    heard_something.set()
                    if way == "aclose":
                        return

        task = asyncio.create_task(listen())
        if way == "cancel before headers":
            while not upstream.requests:
                await asyncio.sleep(0.005)
        else:
            await heard_something.wait()
        if way != "aclose":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.to_thread(upstream.requests[0].wait_left)
        await one.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(leave())


def test_closing_the_backend_closes_what_is_open(upstream: Upstream) -> None:
    upstream.play(answer(sse("x"), HANG))

    async def close() -> None:
        one = backend(upstream)
        turn = one.stream_response(ask(), {})
        await anext(turn)
        await one.close()
        with pytest.raises(BackendError):
            await anext(turn)

    run(close())
    assert upstream.requests[0].wait_left()


# ── the three timers ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("timer", "script"),
    [
        ("first_token_seconds", [HANG]),
        ("first_token_seconds", answer(HANG)),
        ("first_token_seconds", answer(*[b": wait\n\n", 0.03] * 30)),
        ("idle_seconds", answer(sse("x"), HANG)),
        ("idle_seconds", answer(sse("x"), b"data: half a fr", HANG)),
        ("total_seconds", answer(*[sse("x"), 0.03] * 30)),
        ("total_seconds", [HANG]),
    ],
)
def test_each_timer_names_itself(upstream: Upstream, timer: str, script: Any) -> None:
    upstream.play(script)
    error = run(failure(backend(upstream, **{timer: 0.2})))
    assert error.kind == "timeout"
    assert f"0.2 seconds (setting {timer})" in str(error)
    assert error.retryable == (timer != "total_seconds")
    assert len(upstream.requests) == 1, "the time is up: no other try"
    assert upstream.requests[0].wait_left()


def test_only_waiting_for_the_server_counts_as_silence(upstream: Upstream) -> None:
    upstream.play(answer(sse("a"), sse("b"), 0.3, DONE))

    async def dawdle() -> list[Event]:
        one = backend(upstream, idle_seconds=0.5)
        out: list[Event] = []
        async for events in one.stream_response(ask(), {}):
            out += events
            await asyncio.sleep(0.8)
        await one.close()
        return out

    assert said(run(dawdle())) == "ab"


def test_silence_counts_again_after_the_reader_came_back(upstream: Upstream) -> None:
    upstream.play(answer(sse("a"), HANG))

    async def dawdle() -> BackendError:
        one = backend(upstream, idle_seconds=0.2)
        turn = one.stream_response(ask(), {})
        await anext(turn)
        await asyncio.sleep(0.5)
        with pytest.raises(BackendError) as raised:
            await anext(turn)
        await one.close()
        return raised.value

    assert "idle_seconds" in str(run(dawdle()))


def test_steady_drops_are_not_silence(upstream: Upstream) -> None:
    upstream.play(answer(*[step for _ in range(8) for step in (sse("x"), READ, PASS)], DONE))

    async def dripped() -> list[Event]:
        loop = asyncio.get_running_loop()
        upstream.pass_time = lambda: asyncio.run_coroutine_threadsafe(pass_time(200), loop)
        return await heard(backend(upstream, idle_seconds=300))

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        assert said(runner.run(dripped())) == "x" * 8


# ── failures before the first byte ───────────────────────────────────────────────────────────────


def test_a_refused_connection_says_so() -> None:
    port = closed_port()
    error = run(failure(backend(f"http://127.0.0.1:{port}/v1")))
    expected = f"the backend 'local' (http://127.0.0.1:{port}/v1) refused the connection: is the server running?"
    assert str(error) == expected
    assert (error.kind, error.retryable) == ("unavailable", True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://localhost:PORT", "is the server running?"),
        ("ftp://127.0.0.1/v1", "has an invalid url"),
    ],
)
def test_an_address_that_cannot_work_says_why(url: str, words: str) -> None:
    assert words in str(run(failure(backend(url.replace("PORT", str(closed_port())), retries=0))))


def test_tls_to_a_server_without_it_says_so(upstream: Upstream) -> None:
    upstream.play(GOOD)
    url = upstream.url.replace("http:", "https:")
    error = run(failure(backend(url, retries=0, connect_seconds=1)))
    assert error.kind in ("unavailable", "timeout")


@pytest.mark.parametrize(
    "script",
    [
        refused(408, "late"),
        rate_limited("0"),
        refused(500, "oops"),
        refused(503, "loading model"),
        [RESET],
        [CLOSE],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", RESET],
        [b"HTTP/1.1 200 OK\r\ncontent-ty", CLOSE],
    ],
    ids=["408", "429", "500", "503", "reset", "closed", "reset after headers", "closed in headers"],
)
def test_what_may_pass_is_tried_again(upstream: Upstream, script: Any) -> None:
    upstream.play(script, script, GOOD)
    assert said(run(heard(backend(upstream)))) == "Goodbye"
    assert len(upstream.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_what_cannot_pass_is_not_tried_again(upstream: Upstream, status: int) -> None:
    upstream.play(refused(status, "no"))
    error = run(failure(backend(upstream)))
    assert (error.status, error.retryable, len(upstream.requests)) == (status, False, 1)
    assert f"answered {status}: " in str(error)


def test_tries_end_with_the_last_failure(upstream: Upstream) -> None:
    upstream.play(refused(503, "loading"))
    error = run(failure(backend(upstream, retries=2)))
    assert (error.status, error.retryable, len(upstream.requests)) == (503, True, 3)


def test_retry_after_is_waited_for(upstream: Upstream) -> None:
    upstream.play(rate_limited("0.3"), GOOD)
    run(heard(backend(upstream)))
    first, second = upstream.requests
    assert second.at - first.at >= 0.3


def test_a_long_retry_after_is_passed_on_instead(upstream: Upstream) -> None:
    upstream.play(rate_limited("3600"), GOOD)
    error = run(failure(backend(upstream)))
    assert (error.kind, error.retry_after, len(upstream.requests)) == ("rate_limit", 3600.0, 1)


def test_an_error_that_quotes_the_model_is_an_answer(upstream: Upstream) -> None:
    upstream.play(refused(500, 'failed_generation:<tool_call>{"name": "x'))
    error = run(failure(backend(upstream)))
    assert "<tool_call>" in error.salvage
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ("registry.ollama.ai/library/gemma3:4b does not support tools", 400, "tools_refused"),
        ("tools param requires --jinja flag", 500, "tools_refused"),
        ("Unsupported param: tools", 500, "tools_refused"),
        (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            400,
            "tools_refused",
        ),
        ('"llama3.1:8b" does not support thinking', 400, "thinking_refused"),
        ("something else", 400, ""),
    ],
)
def test_refusals_that_can_be_helped_have_a_code(upstream: Upstream, message: str, status: int, code: str) -> None:
    upstream.play(refused(status, message))
    error = run(failure(backend(upstream)))
    assert (error.kind, error.code, error.retryable, len(upstream.requests)) == ("refused", code, False, 1)


def test_a_wires_own_sentence_is_not_wrapped_in_another() -> None:
    faults = BackendErrors(BackendSettings(name="local", url="http://h/v1"))
    assert str(faults.reported(BackendError("the backend answered 404: no such model"), 404)) == (
        "the backend 'local' (http://h/v1) answered 404: no such model"
    )


def test_redirects_are_not_followed(upstream: Upstream) -> None:
    upstream.play(whole(b"", status=307, headers={"location": f"{upstream.url}/other"}))
    error = run(failure(backend(upstream)))
    assert len(upstream.requests) == 1
    assert "/other: is its url correct?" in str(error)


@pytest.mark.parametrize("size", [100_000, 10_000_000])
def test_of_an_errors_body_only_so_much_is_read(upstream: Upstream, size: int) -> None:
    upstream.play(refused(400, "x" * size))
    assert len(str(run(failure(backend(upstream))))) < 66_000


@pytest.mark.parametrize("end", [RESET, CLOSE])
def test_an_error_whose_body_breaks_off_is_still_that_error(upstream: Upstream, end: str) -> None:
    upstream.play(answer(b"no such model", READ, end, status=404))
    error = run(failure(backend(upstream)))
    assert (error.status, error.kind) == (404, "refused")


def test_an_error_whose_body_never_ends_is_an_error_soon(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.backends.http.ERROR_SECONDS", 0.1)
    upstream.play(answer(b"half a mess", HANG, status=400))
    assert "half a mess" in str(run(failure(backend(upstream))))


# ── failures after the first byte ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (answer(sse("Good"), READ, RESET), "unavailable", "in the middle of its answer"),
        (answer(sse("Good"), CLOSE), "unavailable", "in the middle of its answer"),
        (
            [*answer(sse("Good"), end=False), READ, b"40\r\ndata: {", RESET],
            "unavailable",
            "in the middle of its answer",
        ),
        (answer(sse("Good"), b"data: {"), "protocol", "the stream ended before the answer did"),
        (answer(sse("Good")), "protocol", "the stream ended before the answer did"),
        (answer(sse("Good"), 0.05, b"data: \xff\x00garbage\n\n"), "protocol", "sent an unreadable response"),
        (
            answer(sse("Good"), 0.05, sse({"error": {"message": "out of memory"}})),
            "overloaded",
            "failed: out of memory",
        ),
        (answer(sse("Good") + b"data: \xff\x00garbage\n\n", HANG), "protocol", "sent an unreadable response"),
        (
            answer(sse("Good") + sse({"error": {"message": "out of memory"}}), HANG),
            "overloaded",
            "failed: out of memory",
        ),
        ([*answer(sse("Good"), end=False), 0.05, b"zz\r\nno chunk"], "protocol", "a response that is not HTTP"),
    ],
    ids=[
        "reset",
        "closed",
        "reset in a chunk",
        "half an event",
        "no end",
        "garbage",
        "error event",
        "garbage in the same read",
        "error event in the same read",
        "bad chunk",
    ],
)
def test_after_the_first_byte_nothing_is_tried_again(upstream: Upstream, script: Any, kind: str, words: str) -> None:
    upstream.play(script)
    before: list[Event] = []
    error = run(failure(backend(upstream), before))
    assert said(before) == "Good"
    assert error.kind == kind
    assert words in str(error)
    assert str(error).startswith("the backend 'local' (http://")
    assert len(upstream.requests) == 1


def test_something_that_is_not_http_is_told_apart(upstream: Upstream) -> None:
    upstream.play([b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE])
    error = run(failure(backend(upstream)))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "is not HTTP" in str(error)


def test_an_empty_answer_is_an_error(upstream: Upstream) -> None:
    upstream.play(answer())
    assert "the stream ended before the answer did" in str(run(failure(backend(upstream))))


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


def test_no_secret_is_in_any_message(upstream: Upstream) -> None:
    url = upstream.url.replace("//", "//user:pass-word-9@") + "/v1?token=query-secret-7"
    secrets = (KEY, "pass-word-9", "query-secret-7", "header-secret-8")
    scripts: list[Any] = [
        refused(401, f"Incorrect API key provided: {' '.join(secrets)}"),
        answer(sse("x"), sse({"error": {"message": " ".join(secrets)}})),
        answer(b"data: " + KEY.encode() + b"\n\n"),
        whole(b"", status=302, headers={"location": f"http://other/?k={KEY}"}),
        [RESET],
    ]
    for script in scripts:
        upstream.play(script)
        one = backend(url, headers={"x-key": "header-secret-8"}, retries=0)
        error = run(failure(one))
        logged = "".join(traceback.format_exception(error))
        shown = " ".join((str(error), repr(error), repr(one.settings), str(one.settings), logged))
        assert not [secret for secret in secrets if secret in shown], shown


def test_a_query_in_the_address_is_sent(upstream: Upstream) -> None:
    upstream.play(GOOD)
    run(heard(backend(upstream.url + "/v1?api-version=3")))
    assert upstream.requests[0].path == "/v1/chat/completions?api-version=3"


# ── the breaker ──────────────────────────────────────────────────────────────────────────────────


def test_a_backend_that_keeps_failing_is_left_alone(upstream: Upstream) -> None:
    upstream.play(refused(500, "oops"))

    async def turns() -> tuple[HttpBackend, list[BackendError]]:
        one = backend(upstream, retries=0, breaker_failures=3, breaker_seconds=60)
        errors = []
        for _ in range(5):
            with pytest.raises(BackendError) as raised:
                await anext(one.stream_response(ask(), {}))
            errors.append(raised.value)
        await one.close()
        return one, errors

    one, errors = run(turns())
    assert len(upstream.requests) == 3
    assert not one.is_available
    assert "is not used for" in str(errors[-1])
    assert errors[-1].retryable
    assert errors[-1].retry_after == pytest.approx(60, abs=2)


def test_a_server_that_refuses_requests_is_not_left_alone(upstream: Upstream) -> None:
    upstream.play(refused(400, "no"))

    async def turns() -> HttpBackend:
        one = backend(upstream, breaker_failures=1)
        for _ in range(3):
            with pytest.raises(BackendError):
                await anext(one.stream_response(ask(), {}))
        await one.close()
        return one

    assert run(turns()).is_available


def test_it_is_asked_again_after_its_rest(upstream: Upstream) -> None:
    now = [0.0]

    async def turns() -> str:
        settings = BackendSettings(name="local", url=upstream.url, retries=0, breaker_failures=1, breaker_seconds=5)
        one = HttpBackend(settings, TinyWire(), clock=lambda: now[0])
        upstream.play(refused(500, "oops"))
        with pytest.raises(BackendError):
            await anext(one.stream_response(ask(), {}))
        assert not one.is_available
        now[0] += 5
        assert one.is_available
        upstream.play(GOOD)
        try:
            return said([event async for events in one.stream_response(ask(), {}) for event in events])
        finally:
            assert one.is_available
            await one.close()

    assert run(turns()) == "Goodbye"


# ── everything else ──────────────────────────────────────────────────────────────────────────────


async def with_backend(one: HttpBackend, work: Callable[[HttpBackend], Awaitable[Any]]) -> Any:
    try:
        return await work(one)
    finally:
        await one.close()


def test_models_are_listed(upstream: Upstream) -> None:
    upstream.play(whole(json.dumps({"data": [{"id": "a", "max_model_len": 4096}, {"id": "b"}, {"no": "id"}]}).encode()))
    models = run(with_backend(backend(upstream), HttpBackend.list_models))
    assert [(model.name, model.context, model.tools) for model in models] == [("a", 4096, None), ("b", 0, None)]
    assert (upstream.requests[0].method, upstream.requests[0].path) == ("GET", "/v1/models")


@pytest.mark.parametrize(
    ("props", "context"),
    [(whole(b'{"default_generation_settings": {"n_ctx": 8192}}'), 8192), (refused(404, "no such path"), 131072)],
)
def test_rc6_llama_is_asked_what_it_allocated(upstream: Upstream, props: Any, context: int) -> None:
    """https://github.com/anomalyco/opencode/issues/1034: what a model was trained on says nothing of a server."""
    entry = {"id": "a b", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}
    upstream.play(whole(json.dumps({"data": [entry]}).encode()), props)
    (model,) = run(with_backend(backend(upstream), HttpBackend.list_models))
    assert model.context == context
    assert upstream.requests[1].path == "/props?model=a+b"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (refused(401, "bad key"), "answered 401"),
        (whole(b"<html>"), "/models did not return JSON"),
        (whole(b'{"data": "\xff"}'), "/models did not return JSON"),
        ([HANG], "did not respond to /models within 0.2 seconds"),
        ([RESET], "closed the connection without an answer"),
    ],
)
def test_a_list_that_cannot_be_had_says_why(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, script: Any, words: str
) -> None:
    monkeypatch.setattr("callwright.backends.http.LIST_SECONDS", 0.2)
    upstream.play(script)
    with pytest.raises(BackendError, match=words):
        run(with_backend(backend(upstream), HttpBackend.list_models))


def test_other_requests_are_passed_on(upstream: Upstream) -> None:
    upstream.play(refused(422, "odd"), whole(b"[1]"))

    async def both(one: HttpBackend) -> list[Any]:
        return [
            await one.forward_request("/v1/embeddings", b'{"input": "x"}'),
            await one.forward_request("/v1/things", b""),
        ]

    first, second = run(with_backend(backend(upstream), both))
    assert (first.status, first.headers["content-type"]) == (422, "application/json")
    assert (second.status, second.body) == (200, b"[1]")
    assert [(seen.method, seen.path) for seen in upstream.requests] == [
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/things"),
    ]


def test_what_is_passed_on_is_bounded(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.backends.http.MAX_RESPONSE_BYTES", 1000)
    upstream.play(whole(b"x" * 2000))
    with pytest.raises(BackendError, match="more than 1000 bytes"):
        run(with_backend(backend(upstream), lambda one: one.forward_request("/v1/embeddings", b"{}")))


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("http://h/v1", "/models", "http://h/v1/models"),
        ("http://h/v1/", "/models", "http://h/v1/models"),
        ("http://h/v1", "/v1/messages", "http://h/v1/messages"),
        ("http://h", "/v1/messages", "http://h/v1/messages"),
        ("http://h/", "/api/chat", "http://h/api/chat"),
        ("http://h/proxy/v1", "/v1/models?limit=5", "http://h/proxy/v1/models?limit=5"),
        ("http://h/v1?key=1", "/models?limit=5", "http://h/v1/models?limit=5&key=1"),
    ],
)
def test_addresses_and_paths_are_joined(url: str, path: str, expected: str) -> None:
    assert join_url(url, path) == expected
