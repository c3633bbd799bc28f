"""openai-python against `/v1/chat/completions`: raw chunks, its stream helper, and whole answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.contract.weather import CHAT_TOOL, EXPECTED, MODELS, QUESTION, Chat, forecast

Turn = Callable[[openai.OpenAI, str, list[Any]], dict[str, Any]]
"""One request; the assistant's message as it goes back into the history."""


def client(base: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120)


def raw(api: openai.OpenAI, model: str, messages: list[Any]) -> dict[str, Any]:
    """Chunks joined by hand, strictly as documented: everything but the arguments comes once."""
    text, calls, finish = "", [], []
    ids = set()
    with api.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL], stream=True) as stream:
        for number, chunk in enumerate(stream):
            ids.add((chunk.id, chunk.created, chunk.model, chunk.object))
            [choice] = chunk.choices
            assert (choice.delta.role == "assistant") == (number == 0)
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                if piece.id:
                    assert piece.index == len(calls)
                    assert piece.type == "function"
                    calls.append({"id": piece.id, "type": "function", "function": {"name": piece.function.name}})
                    calls[-1]["function"]["arguments"] = piece.function.arguments
                else:
                    assert piece.type is piece.function.name is None
                    calls[piece.index]["function"]["arguments"] += piece.function.arguments
            finish += [choice.finish_reason] if choice.finish_reason else []
    assert len(ids) == 1
    assert finish == ["tool_calls" if calls else "stop"]
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def helper(api: openai.OpenAI, model: str, messages: list[Any]) -> dict[str, Any]:
    with api.chat.completions.stream(
        model=model, messages=messages, tools=[CHAT_TOOL], stream_options={"include_usage": True}
    ) as stream:
        done = [event.arguments for event in stream if event.type == "tool_calls.function.arguments.done"]
        completion = stream.get_final_completion()
    message = completion.choices[0].message
    assert done == [call.function.arguments for call in message.tool_calls or ()]
    assert completion.usage
    assert completion.usage.completion_tokens > 0
    return message.to_dict()


def whole(api: openai.OpenAI, model: str, messages: list[Any]) -> dict[str, Any]:
    completion = api.chat.completions.create(model=model, messages=messages, tools=[CHAT_TOOL])
    [choice] = completion.choices
    assert choice.finish_reason == ("tool_calls" if choice.message.tool_calls else "stop")
    assert completion.usage
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    return choice.message.to_dict()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("turn", [raw, helper, whole])
def test_a_tool_turn(gateway: str, turn: Turn, model: str) -> None:
    with client(gateway) as api:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        first = turn(api, model, messages)
        calls = [json.loads(call["function"]["arguments"]) for call in first["tool_calls"]]
        messages.append(first)
        for call, arguments in zip(first["tool_calls"], calls, strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": forecast(**arguments)})
        last = turn(api, model, messages)
    assert Chat((first["content"] or "").strip(), calls, last["content"].strip()) == EXPECTED[model]


def test_models_are_listed_and_shown(gateway: str) -> None:
    with client(gateway) as api:
        assert set(MODELS) <= {model.id for model in api.models.list()}
        assert api.models.retrieve("hermes").id == "hermes"


def test_an_unknown_model_is_not_found(gateway: str) -> None:
    with client(gateway) as api, pytest.raises(openai.NotFoundError) as caught:
        api.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "Hello"}])
    assert caught.value.code == "model_not_found"


def test_a_request_without_tools_gets_markup_as_text(gateway: str) -> None:
    """Cline 2 and older agents read it there (C-4b)."""
    with client(gateway) as api:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        streamed = api.chat.completions.create(model="markup", messages=messages, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
        message = api.chat.completions.create(model="markup", messages=messages).choices[0].message
    assert text == message.content == "<get_weather>\n<city>Oslo</city>\n</get_weather>"
    assert message.tool_calls is None
