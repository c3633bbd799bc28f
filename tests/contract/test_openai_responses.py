"""openai-python against `/v1/responses`: its stream helper and whole answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.contract.weather import EXPECTED, MODELS, QUESTION, RESPONSES_TOOL, Chat, forecast

Turn = Callable[..., Response]


def client(base: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120)


def helper(api: openai.OpenAI, **request: Any) -> Response:
    """The helper rebuilds the answer from the deltas; the last event must say the same."""
    with api.responses.stream(**request) as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert [event.sequence_number for event in events] == sorted({event.sequence_number for event in events})
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == response.output_text
    written = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    assert written == "".join(item.arguments for item in response.output if item.type == "function_call")
    return response


def whole(api: openai.OpenAI, **request: Any) -> Response:
    return api.responses.create(**request)


def results(response: Response) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The arguments of each call, and the items that answer them."""
    calls = [item for item in response.output if item.type == "function_call"]
    arguments = [json.loads(call.arguments) for call in calls]
    return arguments, [
        {"type": "function_call_output", "call_id": call.call_id, "output": forecast(**each)}
        for call, each in zip(calls, arguments, strict=True)
    ]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("turn", [helper, whole])
def test_a_tool_turn(gateway: str, turn: Turn, model: str) -> None:
    with client(gateway) as api:
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        first = turn(api, model=model, input=items, tools=[RESPONSES_TOOL])
        calls, outputs = results(first)
        items += [item.to_dict() for item in first.output] + outputs
        last = turn(api, model=model, input=items, tools=[RESPONSES_TOOL])
    assert first.status == last.status == "completed"
    assert first.usage
    assert first.usage.output_tokens > 0
    assert Chat(first.output_text.strip(), calls, last.output_text.strip()) == EXPECTED[model]


@pytest.mark.parametrize("turn", [helper, whole])
def test_a_turn_continues_from_the_id_of_the_last(gateway: str, turn: Turn) -> None:
    with client(gateway) as api:
        first = turn(api, model="hermes", input=QUESTION, tools=[RESPONSES_TOOL])
        _, outputs = results(first)
        last = turn(api, model="hermes", input=outputs, previous_response_id=first.id, tools=[RESPONSES_TOOL])
    assert last.output_text == EXPECTED["hermes"].answer
