"""pydantic-ai's agent, on chat and on Responses, streamed and whole: the agent runs the tool by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import TextPart, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.contract.weather import EXPECTED, MODELS, QUESTION, Chat, forecast
from tests.support.sampling import sample_pairs


async def converse(kind: type[Any], base: str, model: str, streamed: bool) -> Chat:
    async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api:
        agent = Agent(kind(model, provider=OpenAIProvider(openai_client=api)))

        @agent.tool_plain
        def get_weather(city: str, days: int) -> str:
            """The weather of the next days."""
            return forecast(city, days)

        if streamed:
            async with agent.run_stream_events(QUESTION) as events:
                [result] = [event.result async for event in events if event.event_kind == "agent_run_result"]
        else:
            result = await agent.run(QUESTION)
    said = result.all_messages()[1].parts
    text = "".join(part.content for part in said if isinstance(part, TextPart))
    calls = [part.args_as_dict() for part in said if isinstance(part, ToolCallPart)]
    return Chat(text.strip(), calls, result.output.strip())


@pytest.mark.parametrize(
    ("model", "kind", "streamed"), sample_pairs(MODELS, (OpenAIChatModel, OpenAIResponsesModel), (True, False))
)
def test_a_tool_turn(gateway: str, kind: type[Any], streamed: bool, model: str) -> None:
    assert asyncio.run(converse(kind, gateway, model, streamed)) == EXPECTED[model]
