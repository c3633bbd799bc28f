"""ollama-python against `/api/*`: chat and generate, streamed and whole, and what it asks about models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ollama
import pytest

from tests.contract.weather import CHAT_TOOL, EXPECTED, MODELS, QUESTION, Chat, forecast

Turn = Callable[[ollama.Client, str, list[Any]], ollama.Message]


def stream(api: ollama.Client, model: str, messages: list[Any]) -> ollama.Message:
    chunks = list(api.chat(model=model, messages=messages, tools=[CHAT_TOOL], stream=True))
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].done_reason == "stop"
    return ollama.Message(
        role="assistant",
        content="".join(chunk.message.content or "" for chunk in chunks),
        tool_calls=[call for chunk in chunks for call in chunk.message.tool_calls or ()] or None,
    )


def whole(api: ollama.Client, model: str, messages: list[Any]) -> ollama.Message:
    response = api.chat(model=model, messages=messages, tools=[CHAT_TOOL])
    assert response.done
    assert (response.eval_count or 0) > 0
    return response.message


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("turn", [stream, whole])
def test_a_tool_turn(gateway: str, turn: Turn, model: str) -> None:
    with ollama.Client(host=gateway, timeout=120) as api:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        first = turn(api, model, messages)
        calls = [dict(call.function.arguments) for call in first.tool_calls or ()]
        messages.append(first)
        for call, arguments in zip(first.tool_calls or (), calls, strict=True):
            messages.append({"role": "tool", "tool_name": call.function.name, "content": forecast(**arguments)})
        last = turn(api, model, messages)
    assert Chat((first.content or "").strip(), calls, (last.content or "").strip()) == EXPECTED[model]


def test_generate_streams_what_it_says_whole(gateway: str) -> None:
    with ollama.Client(host=gateway, timeout=120) as api:
        said = api.generate(model="talk", prompt="Hello")
        pieces = [chunk.response for chunk in api.generate(model="talk", prompt="Hello", stream=True)]
    assert said.done
    assert said.response == "".join(pieces) == "Hello yourself."


def test_models_are_listed_and_shown(gateway: str) -> None:
    with ollama.Client(host=gateway, timeout=120) as api:
        assert set(MODELS) <= {model.model for model in api.list().models}
        shown = api.show("hermes")
    assert "tools" in (shown.capabilities or ())
