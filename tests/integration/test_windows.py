"""The window that a server really has is known, whoever tells it, and a prompt beyond it is never cut (P-14)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.integration.hosted import Hosted, Reply, backend, model
from tests.integration.turns import spoken
from tests.integration.wires import CHAT, WIRES, Call, Round, Wire
from tests.support.upstream import Script, Upstream, answer, refused, whole

WINDOW = 1500
LONG = "word " * 3000
"""3000 tokens: beyond the window, and within one that is twice as large."""
ROUNDS = [Round(f"c{number}", Call("get_weather", {"city": "Oslo"}), LONG) for number in range(2)]
SHORT = [Round("c", Call("get_weather", {"city": "Oslo"}), "3 °C")]


class Source(NamedTuple):
    """Who says how large the window is."""

    asks: tuple[tuple[str, Any], ...] = ()
    """What the server is asked when it is asked what it has, and what it says."""
    backend: Mapping[str, Any] = MappingProxyType({})
    model: Mapping[str, Any] = MappingProxyType({})


def _loaded(size: int) -> dict[str, Any]:
    return {"models": [{"name": "m:latest", "model": "m:latest", "context_length": size}]}


def _ollama(shown: dict[str, Any], loaded: Any) -> Source:
    tags = {"models": [{"name": "m:latest", "model": "m:latest"}]}
    return Source((("/api/tags", tags), ("/api/show", shown), ("/api/ps", loaded)), {"kind": "ollama"})


TRAINED = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 32768}, "capabilities": ["tools"]}
LISTED = {"id": "m", "object": "model"}
SOURCES = {
    "the configuration": Source(model={"context": WINDOW}),
    "num_ctx in the configuration": Source(model={"options": {"num_ctx": WINDOW}}),
    "/api/show, the model": _ollama({"model_info": {"llama.context_length": WINDOW}}, {"models": []}),
    "/api/show, its parameters": _ollama({**TRAINED, "parameters": f"stop x\nnum_ctx {WINDOW}"}, {"models": []}),
    "/api/ps": _ollama(TRAINED, _loaded(WINDOW)),
    "/v1/models of vLLM": Source((("/v1/models", {"data": [{**LISTED, "max_model_len": WINDOW}]}),)),
    "/v1/models of llama.cpp": Source((("/v1/models", {"data": [{**LISTED, "meta": {"n_ctx": WINDOW}}]}),)),
    "/v1/models of LM Studio": Source((("/v1/models", {"data": [{**LISTED, "loaded_context_length": WINDOW}]}),)),
    "/v1/models of OpenRouter": Source((("/v1/models", {"data": [{**LISTED, "context_length": WINDOW}]}),)),
    "/props": Source(
        (
            ("/v1/models", {"data": [{**LISTED, "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]}),
            ("/props?model=m", {"default_generation_settings": {"n_ctx": WINDOW}}),
        )
    ),
}
OLLAMA_ANSWER = answer(
    json.dumps({"model": "m", "message": {"role": "assistant", "content": "Cold."}, "done": False}).encode() + b"\n",
    json.dumps({"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}).encode() + b"\n",
    content_type="application/x-ndjson",
)


def said(source: Source) -> Script:
    return OLLAMA_ANSWER if source.backend.get("kind") == "ollama" else spoken("Cold.")


def asked_what_it_has(gateway: Hosted, server: Upstream, source: Source) -> None:
    """As `callwright serve` does when it starts."""
    before = len(server.requests)
    server.play(*(whole(json.dumps(found).encode()) for _, found in source.asks), said(source))
    gateway.wait(gateway.service.state.engine.refresh_models())
    told = [seen.path for seen in server.requests[before:]]
    assert told == [path for path, _ in source.asks] or not source.asks
    server.play(said(source))


@pytest.mark.parametrize("name", SOURCES)
def test_a_prompt_beyond_the_window_is_refused_with_the_numbers_before_it_is_sent(
    tmp_path: Path, upstream: Upstream, name: str
) -> None:
    source = SOURCES[name]
    upstream.play(said(source))
    tables = backend("main", upstream.url, **source.backend) + model("m", "main", **source.model)
    with Hosted(tmp_path, tables) as gateway:
        asked_what_it_has(gateway, upstream, source)
        before = len(upstream.requests)
        reply = gateway.post(CHAT.path, CHAT.body("m", stream=True, rounds=ROUNDS))
        assert (reply.status, CHAT.problem(reply.json)[1]) == (400, "context_length_exceeded")
        assert f"maximum context length is {WINDOW} tokens" in reply.json["error"]["message"]
        assert len(upstream.requests) == before, "nothing was sent"
        assert CHAT.streamed(gateway.post(CHAT.path, CHAT.body("m", stream=True, rounds=SHORT)).body).text == "Cold."


@pytest.mark.parametrize("tools", ["native", "taught"])
@pytest.mark.parametrize("name", ["the configuration", "/api/ps", "/props"])
def test_it_is_condensed_where_that_is_set(tmp_path: Path, upstream: Upstream, name: str, tools: str) -> None:
    source = SOURCES[name]
    upstream.play(said(source))
    diet = {"overflow": "condense", "reserve": 100}
    tables = backend("main", upstream.url, **source.backend) + model(
        "m", "main", **source.model, tool_limits=diet, tools=tools
    )
    with Hosted(tmp_path, tables) as gateway:
        asked_what_it_has(gateway, upstream, source)
        reply = gateway.post(CHAT.path, CHAT.body("m", stream=True, rounds=[*ROUNDS, *SHORT]))
        assert CHAT.streamed(reply.body).text == "Cold."
    told = upstream.requests[-1].body.decode()
    assert "left out: the conversation is too long" in told
    assert "3 °C" in told, "what the model has not seen yet stays"
    assert len(told) < len(LONG)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with Upstream(spoken("Cold.")) as server:
        tables = backend("main", server.url) + model("m", "main", context=WINDOW)
        with Hosted(tmp_path_factory.mktemp("gateway"), tables) as gateway:
            yield gateway


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_every_client_is_told_in_the_words_by_which_it_condenses(narrow: Hosted, wire: Wire, stream: bool) -> None:
    reply = narrow.post(wire.path, wire.body("m", stream=stream, rounds=ROUNDS))
    message, name = wire.problem(reply.json)
    assert reply.status == 400
    assert "prompt is too long" in message
    assert name in ("", "context_length_exceeded", "invalid_request_error")


# ── other backends ───────────────────────────────────────────────────────────────────────────────


def two(tmp_path: Path, first: Upstream, second: Upstream, *sizes: int) -> tuple[Hosted, Any]:
    """A model at two servers that say how large their windows are; 0: they do not."""
    tables = backend("one", first.url) + backend("two", second.url) + model("m", ["one", "two"])
    lists = [{"data": [{**LISTED, "max_model_len": size} if size else LISTED]} for size in sizes]
    return Hosted(tmp_path, tables), zip((first, second), lists, strict=True)


def ask(gateway: Hosted, lists: Any, *answers: Script) -> Reply:
    servers = []
    for server, listed in lists:
        server.play(whole(json.dumps(listed).encode()))
        servers.append(server)
    gateway.wait(gateway.service.state.engine.refresh_models())
    for server, script in zip(servers, answers, strict=True):
        server.requests.clear()
        server.play(script)
    return gateway.post(CHAT.path, CHAT.body("m", stream=True, rounds=ROUNDS))


@pytest.mark.parametrize("larger", [20_000, 0], ids=["known", "unknown"])
def test_a_prompt_too_long_for_one_backend_goes_to_the_next_that_may_have_room(
    tmp_path: Path, upstream: Upstream, larger: int
) -> None:
    with Upstream() as other:
        hosted, lists = two(tmp_path, upstream, other, WINDOW, larger)
        with hosted as gateway:
            reply = ask(gateway, lists, spoken("First."), spoken("Second."))
        assert CHAT.streamed(reply.body).text == "Second."
        assert (len(upstream.requests), len(other.requests)) == (0, 1)


@pytest.mark.parametrize("sizes", [(WINDOW, 1000), (1000, WINDOW)], ids=["larger first", "larger last"])
def test_where_none_has_room_the_largest_window_is_told(
    tmp_path: Path, upstream: Upstream, sizes: tuple[int, int]
) -> None:
    with Upstream() as other:
        hosted, lists = two(tmp_path, upstream, other, *sizes)
        with hosted as gateway:
            reply = ask(gateway, lists, spoken("First."), spoken("Second."))
        assert (reply.status, len(upstream.requests), len(other.requests)) == (400, 0, 0)
        assert f"maximum context length is {WINDOW} tokens" in reply.json["error"]["message"]


def test_a_server_that_says_itself_that_the_prompt_is_too_long_is_followed_by_the_next(
    tmp_path: Path, upstream: Upstream
) -> None:
    too_long = refused(400, "This model's maximum context length is 4096 tokens.")
    with Upstream() as other:
        hosted, lists = two(tmp_path, upstream, other, 0, 0)
        with hosted as gateway:
            assert CHAT.streamed(ask(gateway, lists, too_long, spoken("Second.")).body).text == "Second."
    with Upstream() as other, Hosted(tmp_path, backend("one", other.url) + model("m", "one")) as gateway:
        other.play(too_long)
        reply = gateway.post(CHAT.path, CHAT.body("m", stream=True))
        assert (reply.status, reply.json["error"]["code"]) == (400, "context_length_exceeded")
