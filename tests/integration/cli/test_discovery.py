"""Servers are known by what they answer: kind, models, and that it is not one of our own gateways."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.cli.discovery import ModelServer, discover_servers, find_server, identify_server
from callwright.cli.http_client import HttpReply
from callwright.errors import BackendError
from tests.integration.cli.gateway import KEY, gateway, pages, serving
from tests.support.clock import ClockLoop, pass_time

URL = "http://127.0.0.1:1"
LM_STUDIO_ERROR = {"error": "Unexpected endpoint or method. (GET /props)"}


def models(owner: str, *names: str, **more: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": owner, **more} for name in names]}


OLLAMA = {
    "/api/version": {"version": "0.13.0"},
    "/api/tags": {"models": [{"name": "nomic-embed-text:latest"}, {"name": "qwen3:8b", "model": "qwen3:8b"}]},
    "/v1/models": models("library", "nomic-embed-text:latest", "qwen3:8b"),
}
SERVERS: list[tuple[str, dict[str, Any], ModelServer | None]] = [
    (
        "Ollama; models that embed come last",
        OLLAMA,
        ModelServer(label="Ollama", kind="ollama", url=URL, models=("qwen3:8b", "nomic-embed-text:latest")),
    ),
    (
        "Ollama without models",
        {"/api/version": {"version": "0.13.0"}, "/api/tags": {"models": []}},
        ModelServer(label="Ollama", kind="ollama", url=URL, models=()),
    ),
    (
        "llama.cpp, which has some of Ollama's paths",
        {**OLLAMA, "/v1/models": models("llamacpp", "a.gguf"), "/props": {"build_info": "b8681"}},
        ModelServer(label="llama.cpp", kind="openai", url=f"{URL}/v1", models=("a.gguf",)),
    ),
    (
        "an old llama.cpp, known by its props",
        {"/v1/models": models("me", "a"), "/props": {"default_generation_settings": {}}},
        ModelServer(label="llama.cpp", kind="openai", url=f"{URL}/v1", models=("a",)),
    ),
    (
        "LM Studio, which answers every path with status 200",
        {
            "/v1/models": models("organization_owner", "text-embedding-nomic", "qwen/qwen3-8b"),
            "/api/version": LM_STUDIO_ERROR,
            "/api/tags": LM_STUDIO_ERROR,
            "/props": LM_STUDIO_ERROR,
        },
        ModelServer(
            label="LM Studio", kind="openai", url=f"{URL}/v1", models=("qwen/qwen3-8b", "text-embedding-nomic")
        ),
    ),
    (
        "vLLM",
        {"/v1/models": models("vllm", "Qwen/Qwen3-8B", max_model_len=40960)},
        ModelServer(label="vLLM", kind="openai", url=f"{URL}/v1", models=("Qwen/Qwen3-8B",)),
    ),
    (
        "something else that lists models",
        {"/v1/models": models("system", "gpt-x")},
        ModelServer(label="OpenAI-compatible server", kind="openai", url=f"{URL}/v1", models=("gpt-x",)),
    ),
    (
        "Anthropic",
        {"/v1/models": {"data": [{"id": "claude", "type": "model"}], "has_more": False}},
        ModelServer(label="Anthropic", kind="anthropic", url=URL, models=("claude",)),
    ),
    ("our own gateway, Ollama face and all", {**OLLAMA, "/v1/models": models("callwright", "qwen3:8b")}, None),
    ("a web page", {"/v1/models": "<html>", "/api/version": [], "/api/tags": 3, "/props": None}, None),
    ("Ollama's version alone", {"/api/version": {"version": "0.13.0"}}, None),
    ("nothing", {}, None),
]


def reply(answer: Any) -> HttpReply:
    return HttpReply(200, "application/json", json.dumps(answer).encode())


@pytest.mark.parametrize(("answers", "found"), [each[1:] for each in SERVERS], ids=[each[0] for each in SERVERS])
def test_a_server_is_known_by_its_answers(answers: dict[str, Any], found: ModelServer | None) -> None:
    assert identify_server(URL, {path: reply(answer) for path, answer in answers.items()}) == found


def test_an_answer_with_a_bad_status_counts_for_nothing() -> None:
    assert identify_server(URL, {"/v1/models": HttpReply(500, "application/json", b'{"data": []}')}) is None


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["data", "models", "id", "name", "version", "type"]), inner)
    ),
)


@given(st.dictionaries(st.sampled_from(["/v1/models", "/api/version", "/api/tags", "/props"]), junk | st.binary()))
def test_no_answer_whatsoever_makes_it_fail(answers: dict[str, Any]) -> None:
    replies = {
        path: HttpReply(200, "", answer) if isinstance(answer, bytes) else reply(answer)
        for path, answer in answers.items()
    }
    found = identify_server(URL, replies)
    assert found is None or all(isinstance(name, str) for name in found.models)


def test_servers_are_found_in_order_and_our_own_gateway_is_not_taken_for_one() -> None:
    with serving(pages(OLLAMA)) as ollama, serving(gateway()) as ours, serving(pages(SERVERS[5][1])) as vllm:
        found = asyncio.run(discover_servers([vllm, ours, "http://127.0.0.1:9", ollama], seconds=5))
    assert [(each.label, each.url) for each in found] == [("vLLM", f"{vllm}/v1"), ("Ollama", ollama)]


def test_servers_that_do_not_answer_cost_one_short_wait_together() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"

        async def one_wait() -> list[Any]:
            found = asyncio.create_task(discover_servers([url] * 10, seconds=300))
            await pass_time(301)
            assert found.done()
            return await found

        with asyncio.Runner(loop_factory=ClockLoop) as runner:
            assert runner.run(one_wait()) == []


@pytest.mark.parametrize(
    ("replies", "sentence"),
    [
        ({"/v1/models": 401}, "requires a key; pass it with --backend-key"),
        ({"/v1/models": {"hello": 1}}, "has no known model list; pass --model NAME"),
    ],
)
def test_an_address_that_was_named_explains_itself(replies: dict[str, Any], sentence: str) -> None:
    with serving(pages(replies)) as url, pytest.raises(BackendError, match=sentence):
        asyncio.run(find_server(url))


def test_an_address_where_nobody_is() -> None:
    with pytest.raises(BackendError, match="is the server running"):
        asyncio.run(find_server("http://127.0.0.1:9"))


def test_a_key_reaches_the_server() -> None:
    app = gateway(lambda path, _, body: body.replace(b"callwright", b"vllm"), key=KEY)
    with serving(app) as url:
        assert asyncio.run(find_server(url, key=KEY)).models == ("m",)
