"""Tool calls of the embedded model, which never learnt them, through the clients that people use.

`make embedded` does the same with a hundred prompts. Without the packages of the extra `local` these are skipped,
except in continuous integration.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from callwright.backends.embedded import is_embedded_available
from tests.embedded.trial import MAX_TOKENS, PROMPTS, SPECS, Answer, asked, joined, problem
from tests.integration.hosted import Hosted
from tests.support.sampling import FULL, full, sample

pytestmark = [
    pytest.mark.skipif(
        not is_embedded_available() and not os.environ.get("CI"), reason="the extra `local` is not installed"
    ),
    pytest.mark.timeout(600),
]

FEW = sample(PROMPTS[::13], 1)
OFFERED = sample(SPECS, 2)
CHAT_TOOLS: list[Any] = [{"type": "function", "function": spec} for spec in OFFERED]
"""To read about all of them takes a model on one thread ten seconds."""
SEED: dict[str, Any] = {} if FULL else {"seed": 6}
"""`make test` asks for the same answers each time, as far as the wire lets it; some that it may give are long."""
SECONDS = 300
TABLES = '[[backends]]\nname = "own"\nkind = "embedded"\nthreads = 1\n[[models]]\nname = "m"\n'
WAYS = ((False, "whole"), (True, "streamed"))
RESULT = "Sunny, 21 degrees, light wind from the south."


def both_ways(first: bool) -> pytest.MarkDecorator:
    """Streamed and in one piece; `make test` makes do with the first of them."""
    whole, streamed = (pytest.param(way, id=name, marks=() if way is first else full) for way, name in WAYS)
    return pytest.mark.parametrize("stream", [whole, streamed])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with Hosted(tmp_path_factory.mktemp("gateway"), TABLES) as gateway:
        # As `callwright serve` does when it starts.
        assert gateway.wait(gateway.service.state.engine.refresh_models()) == {}
        yield gateway


@pytest.fixture(scope="module")
def api(gateway: Hosted) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0, timeout=SECONDS) as api:
        yield api


@both_ways(first=True)
def test_every_answer_that_must_be_a_call_fits(api: openai.OpenAI, stream: bool) -> None:
    answers = {prompt: asked(api, "m", prompt, "required", stream=stream, tools=CHAT_TOOLS, **SEED) for prompt in FEW}
    assert {prompt: why for prompt, answer in answers.items() if (why := problem(answer))} == {}


def test_the_tool_that_must_be_called_is_called(api: openai.OpenAI) -> None:
    for name in sample([spec["name"] for spec in OFFERED], 1):
        choice = {"type": "function", "function": {"name": name}}
        answer = asked(api, "m", FEW[0], choice, stream=False, tools=CHAT_TOOLS, **SEED)
        assert problem(answer) == ""
        assert [called for called, _ in answer.calls] == [name]


@both_ways(first=False)
def test_a_tool_loop_of_two_rounds_ends_in_text(api: openai.OpenAI, stream: bool) -> None:
    request: dict[str, Any] = {"model": "m", "tools": CHAT_TOOLS, "max_tokens": MAX_TOKENS, **SEED}
    messages: list[Any] = [{"role": "user", "content": FEW[0]}]
    first = api.chat.completions.create(messages=messages, tool_choice="required", **request).choices[0]
    assert first.finish_reason == "tool_calls"
    messages.append(first.message.to_dict())
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in first.message.tool_calls or ()
    ]
    # Left to itself a model of this size calls on and on; a client ends its loop in this way.
    request |= {"messages": messages, "tool_choice": "none", "max_tokens": 48 if FULL else 16, "temperature": 0}
    if stream:
        last = joined(api.chat.completions.create(stream=True, **request))
        assert (last.calls, last.finish in ("stop", "length")) == ([], True)
        assert last.text.strip()
    else:
        choice = api.chat.completions.create(**request).choices[0]
        assert choice.message.tool_calls is None
        assert (choice.message.content or "").strip()


def test_a_model_that_may_call_makes_only_calls_that_fit(api: openai.OpenAI) -> None:
    for prompt in sample(FEW[:2], 1):
        answer = asked(api, "m", prompt, "auto", stream=True, tools=CHAT_TOOLS, max_tokens=MAX_TOKENS if FULL else 64)
        assert problem(answer, words=True) in ("", "no call", "cut off by the token limit")
        assert answer.calls or answer.text.strip()


@both_ways(first=True)
def test_calls_fit_over_messages(gateway: Hosted, stream: bool) -> None:
    tools: list[Any] = [{"input_schema": spec["parameters"], **spec} for spec in OFFERED]
    for tool in tools:
        del tool["parameters"]
    with anthropic.Anthropic(base_url=gateway.url, api_key="unused", max_retries=0, timeout=SECONDS) as api:
        for prompt in sample(FEW[:2], 1):
            request: dict[str, Any] = {"model": "m", "max_tokens": MAX_TOKENS, "tools": tools}
            request |= {"messages": [{"role": "user", "content": prompt}], "tool_choice": {"type": "any"}}
            if stream:
                with api.messages.stream(**request) as events:
                    message = events.get_final_message()
            else:
                message = api.messages.create(**request)
            calls = [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
            words = "".join(block.text for block in message.content if block.type == "text")
            assert message.stop_reason == "tool_use"
            assert problem(Answer(calls, words, "tool_calls")) == ""


@both_ways(first=False)
def test_calls_fit_over_responses(api: openai.OpenAI, stream: bool) -> None:
    for prompt in FEW[2:4] or FEW:
        request: dict[str, Any] = {"model": "m", "input": prompt, "max_output_tokens": MAX_TOKENS}
        request |= {"tools": [{"type": "function", **spec} for spec in OFFERED], "tool_choice": "required"}
        if stream:
            with api.responses.stream(**request) as events:
                response = events.get_final_response()
        else:
            response = api.responses.create(**request)
        calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
        assert response.status == "completed"
        assert problem(Answer(calls, response.output_text, "tool_calls")) == ""
