"""anthropic-python against `/v1/messages`: its stream helper, whole answers, and counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from tests.contract.weather import EXPECTED, MESSAGES_TOOL, MODELS, QUESTION, Chat, forecast

Turn = Callable[..., Message]


def client(base: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base, api_key="sk-fake", max_retries=0, timeout=120)


def helper(api: anthropic.Anthropic, **request: Any) -> Message:
    """The helper joins the deltas; each block's last event must say the same."""
    with api.messages.stream(**request) as stream:
        stopped = [event.content_block for event in stream if event.type == "content_block_stop"]
        message = stream.get_final_message()
    assert [block.type for block in stopped] == [block.type for block in message.content]
    return message


def whole(api: anthropic.Anthropic, **request: Any) -> Message:
    return api.messages.create(**request)


def text(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text").strip()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("turn", [helper, whole])
def test_a_tool_turn(gateway: str, turn: Turn, model: str) -> None:
    with client(gateway) as api:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        request = {"model": model, "max_tokens": 1000, "tools": [MESSAGES_TOOL]}
        first = turn(api, messages=messages, **request)
        calls = [block for block in first.content if block.type == "tool_use"]
        outputs = [
            {"type": "tool_result", "tool_use_id": call.id, "content": forecast(**call.input)}  # type: ignore[arg-type]
            for call in calls
        ]
        messages += [
            {"role": "assistant", "content": [block.to_dict() for block in first.content]},
            {"role": "user", "content": outputs},
        ]
        last = turn(api, messages=messages, **request)
    assert (first.stop_reason, last.stop_reason) == ("tool_use", "end_turn")
    assert first.usage.output_tokens > 0
    assert Chat(text(first), [call.input for call in calls], text(last)) == EXPECTED[model]


def test_tokens_are_counted(gateway: str) -> None:
    with client(gateway) as api:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        bare = api.messages.count_tokens(model="hermes", messages=messages)
        with_tools = api.messages.count_tokens(model="hermes", messages=messages, tools=[MESSAGES_TOOL])
    assert 0 < bare.input_tokens < with_tools.input_tokens
