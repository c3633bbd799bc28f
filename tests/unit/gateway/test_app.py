"""The routes: what each answers, who may call it, and what is said to those who may not."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator

import pytest
from starlette.routing import Route

from callwright.errors import BackendError
from callwright.gateway.auth import PUBLIC_PATHS
from callwright.gateway.openapi import OPERATIONS
from tests.support.asgi import Answer, call
from tests.unit.gateway.stubs import GUEST, TEAM, StubBackend, StubEngine, gateway

TURNS = ["/v1/chat/completions", "/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"]
SHAPES = {
    "/v1/chat/completions": "openai_chat",
    "/v1/models": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
    "/api/chat": "ollama",
    "/api/tags": "ollama",
    "/metrics": "openai_chat",
}


def ask(app, method: str, path: str, body=b"", **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(call(app, method, path, headers=sent, body=body))


# Routes


@pytest.mark.parametrize("path", TURNS)
def test_turns_reach_their_handler_and_stream(path: str) -> None:
    answer = ask(gateway()[0], "POST", path, b'{"a": 1}')
    assert answer.status == 200
    assert answer.chunks == [b"data: ", b'{"a": 1}']


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    app, _ = gateway()
    inner = app._app._app._app._others
    routes = {
        (method.lower(), re.sub(r":path", "", route.path))
        for route in inner.routes
        if isinstance(route, Route)  # OpenAPI has no words for WebSockets; docs/bridge.md has
        for method in route.methods - {"HEAD"}
    }
    assert routes == {(each.method, each.path) for each in OPERATIONS}
    assert {each.path for each in OPERATIONS if each.is_public} == PUBLIC_PATHS


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_no_described_route_fails_on_a_body_that_means_nothing(operation) -> None:
    app, _ = gateway()
    for body in (b"", b"[]", b"{", b"null", b'{"model": 7}', b'{"model": "x"}', b"\xff", b"[" * 100_000):
        answer = ask(app, operation.method.upper(), operation.path.replace("{id}", "x"), body)
        if "count_tokens" not in operation.path:  # its body is the wire's to check, and the wire is a stub here
            assert answer.status < 500, (body[:20], answer.body)


@pytest.mark.parametrize("path", ["/", "/health", "/healthz", "/readyz", "/api/hello", "/api/version", "/docs"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_simple_pages_take_get_and_head(method: str, path: str) -> None:
    assert ask(gateway()[0], method, path).status == 200


def test_the_root_names_callwright_and_comforts_ollamas_clients() -> None:
    text = ask(gateway()[0], "GET", "/").body.decode()
    assert "Callwright" in text
    assert "Ollama is running" in text


def test_an_unknown_path_names_the_nearest() -> None:
    answer = ask(gateway()[0], "POST", "/v1/chat/completion")
    assert answer.status == 404
    assert "/v1/chat/completions" in answer.json["error"]["message"]
    assert answer.json["wire"] == "openai_chat"


def test_a_wrong_method_says_which_is_right() -> None:
    answer = ask(gateway()[0], "GET", "/v1/messages")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.json["wire"] == "anthropic"


def test_a_slash_too_many_is_no_redirect() -> None:
    assert ask(gateway()[0], "POST", "/v1/chat/completions/").status == 404


def test_readiness_tells_of_backends_and_of_shutting_down() -> None:
    engine = StubEngine(ready={"a": "http://10.0.0.7 refused the connection", "b": ""})
    app, service = gateway(TEAM, engine=engine)
    ready = ask(app, "GET", "/readyz")
    assert (ready.status, ready.json["backends"]) == (200, {"a": False, "b": True})
    assert b"10.0.0.7" not in ready.body
    service.is_stopping = True
    stopping = ask(app, "GET", "/readyz")
    assert (stopping.status, stopping.json["status"]) == (503, "stopping")
    assert engine.asked == 1
    dead = ask(gateway(engine=StubEngine(ready={"a": "gone"}))[0], "GET", "/readyz")
    assert (dead.status, dead.json["backends"]) == (503, {"a": False})


def test_tokens_are_counted_before_a_prompt_is_sent() -> None:
    body = b'{"model": "coder", "messages": [{"content": "' + b"word " * 100 + b'"}]}'
    counted = ask(gateway()[0], "POST", "/v1/messages/count_tokens", body).json["input_tokens"]
    assert 100 <= counted <= 110


def test_an_unexpected_exception_is_a_readable_500_with_the_request_id() -> None:
    async def broken(scope, receive, send) -> None:
        raise ZeroDivisionError("secret detail")

    answer = ask(gateway(turn=broken)[0], "POST", "/v1/messages", x_request_id="abc-1", origin="app://obsidian.md")
    assert (answer.status, answer.json["wire"]) == (500, "anthropic")
    assert "abc-1" in answer.json["error"]["message"]
    assert b"secret detail" not in answer.body
    assert answer.headers["access-control-allow-origin"] == "app://obsidian.md"
    assert answer.headers["x-request-id"] == "abc-1"
    assert isinstance(answer.raised, ZeroDivisionError)


def test_a_backends_failure_before_the_first_byte_has_its_status_and_time_to_wait() -> None:
    async def limited(scope, receive, send) -> None:
        raise BackendError("slow down", kind="rate_limit", retry_after=2.2)

    answer = ask(gateway(turn=limited)[0], "POST", "/v1/chat/completions")
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")


# Request ids


def test_a_request_id_comes_back_when_it_is_fit_and_is_made_when_not() -> None:
    app, _ = gateway()
    assert ask(app, "GET", "/", x_request_id="8f1f0b18-2fb3").headers["x-request-id"] == "8f1f0b18-2fb3"
    for unfit in ("", "a b", "x" * 129, 'a"b', "é"):
        made = ask(app, "GET", "/", x_request_id=unfit).headers["x-request-id"]
        assert re.fullmatch(r"req_[0-9a-f]{24}", made)
    assert ask(app, "GET", "/").headers["x-request-id"] != ask(app, "GET", "/").headers["x-request-id"]


# Keys


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {TEAM.key}"},
        {"authorization": f"bearer  {TEAM.key}"},
        {"x_api_key": TEAM.key},
        {"api_key": TEAM.key},
        {"authorization": "Bearer ", "x_api_key": TEAM.key},
    ],
)
@pytest.mark.parametrize("path", TURNS)
def test_a_key_opens_by_every_header_that_clients_use(path: str, headers: dict[str, str]) -> None:
    assert ask(gateway(TEAM)[0], "POST", path, **headers).status == 200


@pytest.mark.parametrize(("path", "wire"), SHAPES.items())
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"x_api_key": TEAM.key + " "}])
def test_without_a_key_the_answer_is_401_in_the_wires_own_shape(path: str, wire: str, headers: dict[str, str]) -> None:
    for method in ("GET", "POST"):
        answer = ask(gateway(TEAM, GUEST)[0], method, path, **headers)
        assert (answer.status, answer.json["wire"]) == (401, wire)
        assert answer.json["error"]["type"] == "authentication_error"
        assert "www-authenticate" in answer.headers
        assert TEAM.key not in answer.body.decode()


def test_only_health_and_greetings_need_no_key() -> None:
    app, _ = gateway(TEAM)
    for operation in OPERATIONS:
        answer = ask(app, operation.method.upper(), operation.path.replace("{id}", "coder"))
        assert (answer.status == 401) == (operation.path not in PUBLIC_PATHS), operation.path


def test_a_browser_may_use_basic_to_read_but_not_to_spend() -> None:
    app, _ = gateway(TEAM)
    basic = "Basic " + base64.b64encode(f"me:{TEAM.key}".encode()).decode()
    assert ask(app, "GET", "/docs", authorization=basic).status == 200
    assert ask(app, "POST", "/v1/chat/completions", authorization=basic).status == 401
    for broken in ("Basic !!!", "Basic " + base64.b64encode(b"nocolon").decode(), "Basic"):
        assert ask(app, "GET", "/docs", authorization=broken).status == 401


def test_a_key_sees_only_its_models() -> None:
    app, _ = gateway(TEAM, GUEST)
    guest = {"x_api_key": GUEST.key}
    names = [each["id"] for each in ask(app, "GET", "/v1/models", **guest).json["data"]]
    assert names == ["coder", "gpt-4o"]
    assert ask(app, "GET", "/v1/models/org/small", **guest).status == 404
    assert ask(app, "GET", "/v1/models/org/small", x_api_key=TEAM.key).status == 200
    refused = ask(app, "POST", "/v1/embeddings", b'{"model": "org/small"}', **guest)
    assert (refused.status, refused.json["error"]["code"]) == (403, "model_not_allowed")


def test_no_keys_and_a_public_address_is_closed_to_all() -> None:
    app, _ = gateway(host="0.0.0.0")
    assert ask(app, "GET", "/v1/models").status == 401
    assert ask(app, "GET", "/v1/models", x_api_key="anything").status == 401


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8787", "localhost", "localhost:1", "[::1]:8787", "[::1]", "x.localhost:80"]
)
def test_without_keys_this_machine_may_call(host: str) -> None:
    assert ask(gateway()[0], "GET", "/v1/models", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example:8787", "localhost.evil.example", "10.0.0.1", "[::2]:80", "", "]["])
def test_without_keys_a_name_that_was_made_to_point_here_may_not(host: str) -> None:
    answer = ask(gateway()[0], "GET", "/v1/models", host=host)
    assert (answer.status, answer.json["error"]["code"]) == (403, "host_not_allowed")
    assert ask(gateway(TEAM)[0], "GET", "/v1/models", host=host, x_api_key=TEAM.key).status == 200


# Limits


def test_a_large_body_is_refused_with_413_in_the_wires_shape() -> None:
    app, _ = gateway(body_bytes=10)
    for path in (*TURNS, "/v1/embeddings", "/api/show", "/v1/messages/count_tokens"):
        answer = ask(app, "POST", path, b"x" * 11, content_length="11")
        assert answer.status == 413
        # Closed now, the connection would be reset under a client that is still sending: it would see no answer.
        assert "connection" not in answer.headers
        assert answer.json["error"]["code"] == "request_too_large"


def test_a_body_that_hides_its_length_is_refused_too() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    assert ask(gateway(body_bytes=5000)[0], "POST", "/v1/chat/completions", endless()).status == 413


def test_too_many_turns_are_429_with_a_time_to_come_back() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def wait(scope, receive, send) -> None:
            await gate.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        app, service = gateway(turn=wait, streams=1)
        first = asyncio.create_task(call(app, "POST", "/api/chat"))
        await asyncio.sleep(0)
        assert service.metrics.registry.get_sample_value("callwright_active_turns") == 1
        second = await call(app, "POST", "/v1/messages")
        assert (second.status, second.headers["retry-after"], second.json["wire"]) == (429, "1", "anthropic")
        assert (await call(app, "GET", "/v1/models")).status == 200
        gate.set()
        assert (await first).status == 200
        assert service.metrics.registry.get_sample_value("callwright_active_turns") == 0

    asyncio.run(main())


# Passed on


@pytest.mark.parametrize(
    ("path", "kind", "target"),
    [
        ("/v1/embeddings", "openai", "/embeddings"),
        ("/v1/completions", "completions", "/completions"),
        ("/api/embed", "ollama", "/api/embed"),
        ("/api/embeddings", "ollama", "/api/embeddings"),
    ],
)
def test_what_is_no_turn_is_passed_on_with_the_backends_model(path: str, kind: str, target: str) -> None:
    backend = StubBackend(kind)
    app, _ = gateway(engine=StubEngine(backends=(StubBackend("anthropic"), backend)))
    answer = ask(app, "POST", path, b'{"model": "gpt-4o", "input": "x"}')
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert backend.forwarded == [(target, {"model": "upstream-name", "input": "x"})]
    assert "set-cookie" not in answer.headers


def test_a_backend_without_it_is_501_and_an_unknown_model_404() -> None:
    app, _ = gateway(engine=StubEngine(backends=(StubBackend("anthropic"),)))
    answer = ask(app, "POST", "/v1/embeddings", b'{"model": "coder"}')
    assert (answer.status, "kind openai" in answer.json["error"]["message"]) == (501, True)
    assert ask(app, "POST", "/api/embed", b'{"model": "nobody"}').status == 404
