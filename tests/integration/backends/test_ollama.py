"""Ollama: it asks again without `think` where a model refuses that, and knows what each model can do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from callwright.backends.base import ModelInfo
from callwright.backends.errors import TOOLS_REFUSED
from callwright.backends.ollama import OllamaBackend
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from tests.support.tiny_wire import TinyWire, ask
from tests.support.upstream import DONE, Upstream, answer, refused, sse, whole

GOOD = answer(sse("hi"), DONE)
NO_THINKING = refused(400, '"llama3.1:8b" does not support thinking')


def ollama(server: Upstream) -> OllamaBackend:
    settings = BackendSettings(name="ollama", kind="ollama", url=server.url, retries=1, backoff_seconds=0.001)
    return OllamaBackend(settings, TinyWire())


async def turns(one: OllamaBackend, *requests: Any) -> None:
    try:
        for request, extra in requests:
            async for _ in one.stream_response(request, extra):
                pass
    finally:
        await one.close()


def test_thinking_that_is_refused_is_left_out_and_remembered(upstream: Upstream) -> None:
    upstream.play(NO_THINKING, GOOD)
    think = {"think": True, "keep_alive": "5m"}
    asyncio.run(turns(ollama(upstream), (ask(reasoning_effort="high", seed=1), think), (ask(seed=2), think)))
    assert [seen.json for seen in upstream.requests] == [
        {"model": "m", "reasoning_effort": "high", "seed": 1, **think},
        {"model": "m", "seed": 1, "keep_alive": "5m"},
        {"model": "m", "seed": 2, "keep_alive": "5m"},
    ]


def test_each_model_has_a_memory_of_its_own(upstream: Upstream) -> None:
    upstream.play(NO_THINKING, GOOD)
    requests = [(ask(model="a"), {"think": True}), (ask(model="b"), {"think": True})]
    asyncio.run(turns(ollama(upstream), *requests))
    assert [seen.json.get("think") for seen in upstream.requests] == [True, None, True]


def test_a_model_that_refuses_whatever_it_is_told_is_an_error(upstream: Upstream) -> None:
    upstream.play(NO_THINKING)
    with pytest.raises(BackendError, match="does not support thinking"):
        asyncio.run(turns(ollama(upstream), (ask(), {"think": True})))
    assert len(upstream.requests) == 2


def test_a_model_that_refuses_tools_is_told_apart(upstream: Upstream) -> None:
    upstream.play(whole(b'{"error":"registry.ollama.ai/library/gemma3:4b does not support tools"}', status=400))
    with pytest.raises(BackendError) as raised:
        asyncio.run(turns(ollama(upstream), (ask(), {})))
    assert (raised.value.kind, raised.value.code) == ("refused", TOOLS_REFUSED)


def test_models_are_shown_one_by_one_and_a_broken_one_does_not_hide_the_others(upstream: Upstream) -> None:
    tags = {"models": [{"model": f"m{number}"} for number in range(3)]}
    show = {"capabilities": ["tools"], "model_info": {"llama.context_length": 8192}}
    shows = (refused(500, "broken"), whole(json.dumps(show).encode()), whole(json.dumps(show).encode()))
    upstream.play(whole(json.dumps(tags).encode()), *shows, refused(404, "page not found"))

    async def models() -> tuple[ModelInfo, ...]:
        one = ollama(upstream)
        try:
            return await one.list_models()
        finally:
            await one.close()

    found = asyncio.run(models())
    assert [model.name for model in found] == ["m0", "m1", "m2"]
    assert sorted(model.context for model in found) == [0, 8192, 8192]
    assert [(seen.method, seen.path) for seen in upstream.requests] == [
        ("GET", "/api/tags"),
        *[("POST", "/api/show")] * 3,
        ("GET", "/api/ps"),
    ]
    assert {seen.json["model"] for seen in upstream.requests[1:4]} == {"m0", "m1", "m2"}


def test_rc6_the_window_is_the_one_that_is_allocated_and_not_the_one_of_the_training(upstream: Upstream) -> None:
    """https://github.com/anomalyco/opencode/issues/1034: 4096 tokens are allocated for a model of 131072."""
    tags = {"models": [{"model": "qwen3:latest"}, {"model": "other:latest"}]}
    show = {"model_info": {"qwen3.context_length": 131072}}
    running = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 4096}]}
    said = [whole(json.dumps(each).encode()) for each in (tags, show, show, running)]
    upstream.play(*said)

    async def models() -> tuple[ModelInfo, ...]:
        one = ollama(upstream)
        try:
            return await one.list_models()
        finally:
            await one.close()

    assert {model.name: model.context for model in asyncio.run(models())} == {
        "qwen3:latest": 4096,
        "other:latest": 131072,
    }
