"""What clients make of a turn that breaks off: an error of their own, at once, never a hang and never half a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import ollama
import openai
import pytest
from langchain_openai import ChatOpenAI

from tests.contract.weather import CHAT_TOOL, MESSAGES_TOOL, NAME, QUESTION, RESPONSES_TOOL
from tests.support.upstream import CLOSE, RESET, Step, Upstream, answer, refused, sse

MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]


def _call(arguments: str, **more: Any) -> bytes:
    call = {"index": 0, "function": {"arguments": arguments}, **more}
    return sse({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})


START = _call("", id="call_1", type="function", function={"name": NAME, "arguments": ""})
FAULTS: dict[str, list[Step]] = {
    "the connection dies in a call": answer(sse("Let me look."), START, _call('{"ci'), 0.05, RESET),
    "the stream ends in a call": answer(sse("Let me look."), START, _call('{"ci')),
    "the stream ends in text": answer(sse("Let me"), CLOSE),
    "the server reports an error": answer(sse("Let me"), sse({"error": {"message": "out of memory"}})),
    "the server sends garbage": answer(sse("Let me"), b"data: {no json\n\n"),
}


def chat_raw(base: str) -> None:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api:
        list(api.chat.completions.create(model="broken", messages=MESSAGES, tools=[CHAT_TOOL], stream=True))


def chat_helper(base: str) -> None:
    with (
        openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api,
        api.chat.completions.stream(model="broken", messages=MESSAGES, tools=[CHAT_TOOL]) as stream,
    ):
        stream.get_final_completion()


def chat_whole(base: str) -> None:
    with openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api:
        api.chat.completions.create(model="broken", messages=MESSAGES, tools=[CHAT_TOOL])


def responses_helper(base: str) -> None:
    with (
        openai.OpenAI(base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api,
        api.responses.stream(model="broken", input=QUESTION, tools=[RESPONSES_TOOL]) as stream,
    ):
        failed = [event for event in stream if event.type == "response.failed"]
        assert len(failed) == 1
        assert failed[0].response.error
        raise openai.OpenAIError(failed[0].response.error.message)


def messages_helper(base: str) -> None:
    with (
        anthropic.Anthropic(base_url=base, api_key="sk-fake", max_retries=0, timeout=120) as api,
        api.messages.stream(model="broken", max_tokens=100, messages=MESSAGES, tools=[MESSAGES_TOOL]) as stream,
    ):
        stream.get_final_message()


def messages_whole(base: str) -> None:
    with anthropic.Anthropic(base_url=base, api_key="sk-fake", max_retries=0, timeout=120) as api:
        api.messages.create(model="broken", max_tokens=100, messages=MESSAGES, tools=[MESSAGES_TOOL])


def ollama_stream(base: str) -> None:
    with ollama.Client(host=base, timeout=120) as api:
        list(api.chat(model="broken", messages=MESSAGES, tools=[CHAT_TOOL], stream=True))


def ollama_whole(base: str) -> None:
    with ollama.Client(host=base, timeout=120) as api:
        api.chat(model="broken", messages=MESSAGES, tools=[CHAT_TOOL])


def langchain_stream(base: str) -> None:
    with openai.DefaultHttpxClient(timeout=120) as http:
        llm = ChatOpenAI(model="broken", base_url=f"{base}/v1", api_key="sk-fake", max_retries=0, http_client=http)
        list(llm.bind_tools([CHAT_TOOL]).stream(QUESTION))


CLIENTS = [
    chat_raw,
    chat_helper,
    chat_whole,
    responses_helper,
    messages_helper,
    messages_whole,
    ollama_stream,
    ollama_whole,
    langchain_stream,
]
ERRORS = (openai.OpenAIError, anthropic.AnthropicError, ollama.ResponseError)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_says_that_the_backend_failed(
    gateway: str, faulty: Upstream, client: Callable[[str], None], fault: str
) -> None:
    faulty.play(FAULTS[fault])
    with pytest.raises(ERRORS, match="faulty"):
        client(gateway)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refusal_before_the_first_byte_is_an_error_with_a_status(
    gateway: str, faulty: Upstream, client: Callable[[str], None]
) -> None:
    faulty.play(refused(500, "out of memory"))
    with pytest.raises(ERRORS, match="out of memory") as caught:
        client(gateway)
    assert caught.value.status_code >= 500


def test_a_call_cut_by_the_token_limit_is_not_passed_on_as_complete(gateway: str) -> None:
    with openai.OpenAI(base_url=f"{gateway}/v1", api_key="sk-fake", max_retries=0, timeout=120) as api:
        whole = api.chat.completions.create(model="cut", messages=MESSAGES, tools=[CHAT_TOOL]).choices[0]
        streamed = api.chat.completions.create(model="cut", messages=MESSAGES, tools=[CHAT_TOOL], stream=True)
        finish = [chunk.choices[0].finish_reason for chunk in streamed if chunk.choices]
    assert whole.finish_reason == "length"
    assert finish[-1] == "length"
    for call in whole.message.tool_calls or ():
        json.loads(call.function.arguments)
