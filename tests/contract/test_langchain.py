"""langchain-openai's loop, on chat and on Responses, streamed and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from tests.contract.weather import CHAT_TOOL, EXPECTED, MODELS, QUESTION, Chat, forecast
from tests.support.sampling import sample_pairs


def stream(llm: Any, messages: list[AnyMessage]) -> AIMessage:
    first, *others = llm.stream(messages)
    for chunk in others:
        first += chunk
    return first


def whole(llm: Any, messages: list[AnyMessage]) -> AIMessage:
    return llm.invoke(messages)


@pytest.mark.parametrize(("model", "responses", "turn"), sample_pairs(MODELS, (False, True), (stream, whole)))
def test_a_tool_turn(gateway: str, turn: Callable[..., AIMessage], responses: bool, model: str) -> None:
    with openai.DefaultHttpxClient(timeout=120) as http:
        llm = ChatOpenAI(
            model=model,
            base_url=f"{gateway}/v1",
            api_key="sk-fake",
            max_retries=0,
            use_responses_api=responses,
            http_client=http,
        ).bind_tools([CHAT_TOOL])
        messages: list[Any] = [HumanMessage(QUESTION)]
        first = turn(llm, messages)
        assert first.invalid_tool_calls == []
        messages.append(first)
        for call in first.tool_calls:
            messages.append(ToolMessage(forecast(**call["args"]), tool_call_id=call["id"], name=call["name"]))
        last = turn(llm, messages)
    assert Chat(first.text.strip(), [call["args"] for call in first.tool_calls], last.text.strip()) == EXPECTED[model]
