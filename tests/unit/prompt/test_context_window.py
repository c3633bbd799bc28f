"""The window: what does not fit is refused with its numbers, or condensed from its oldest part; never cut unseen."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.model import Message, Request, Text, ToolCall, ToolResult
from callwright.prompt.context_window import PromptBudget, fit_to_window
from callwright.prompt.history_repair import repair_history
from tests.unit.prompt.conversations import parts_of, sound

LONG = "long " * 100


def count(request: Request) -> int:
    """A token for every four characters, and one for every message."""
    texts = (getattr(part, "text", "") or getattr(part, "content", "") for part in parts_of(request.messages))
    return len(request.messages) + sum(len(text) // 4 for text in texts)


def conversation(*messages: Message) -> Request:
    return Request("m", messages)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def looked(number: int, body: str = LONG) -> tuple[Message, Message]:
    call = ToolCall(f"c{number}", "read", "{}")
    return Message("assistant", (call,)), Message("tool", (ToolResult(call.id, body, "read"),))


SYSTEM = Message("system", (Text("Be brief."),))
LOOP = conversation(SYSTEM, user("first"), *looked(1), user("now this"), *looked(2), *looked(3), *looked(4))


def test_what_fits_is_not_touched() -> None:
    assert fit_to_window(LOOP, PromptBudget(10_000, 100), count, condense=True) == (LOOP, ())


def test_rc6_a_prompt_that_does_not_fit_is_refused_with_the_numbers() -> None:
    """https://github.com/anomalyco/opencode/issues/1068: prompt=9928, limit=4096, and nobody was told."""
    with pytest.raises(RequestError) as caught:
        fit_to_window(LOOP, PromptBudget(300, 50), count)
    assert caught.value.code == "context_length_exceeded"
    message = str(caught.value)
    assert re.search(rf"\b{count(LOOP)} tokens", message)
    assert re.search(r"maximum context length is 300 tokens, of which 50 ", message)
    assert "prompt is too long" in message, "the words that agents look for"


def test_the_oldest_results_go_first_and_the_newest_stays() -> None:
    short, repairs = fit_to_window(LOOP, PromptBudget(400, 0), count, condense=True)
    bodies = [part.content for part in parts_of(short.messages) if isinstance(part, ToolResult)]
    assert [body == LONG for body in bodies] == [False, False, True, True]
    assert bodies[0].startswith("[500 characters of this result were left out")
    assert len(short.messages) == len(LOOP.messages)
    assert [repair.kind for repair in repairs] == ["condensed"]


def test_rc6_rounds_go_next_and_never_the_users_last_message() -> None:
    """https://github.com/ollama/ollama/issues/18107: no user query found in messages."""
    short, _ = fit_to_window(LOOP, PromptBudget(170, 0), count, condense=True)
    marker, *rest = short.messages[1:]
    assert short.messages[0] == SYSTEM
    assert "left out" in marker.parts[0].text  # type: ignore[union-attr]
    assert rest == [user("now this"), *looked(4)]


def test_what_must_stay_and_does_not_fit_is_refused() -> None:
    with pytest.raises(RequestError, match="even condensed the prompt is too long"):
        fit_to_window(conversation(user("x" * 4000)), PromptBudget(500, 0), count, condense=True)


def test_half_of_the_window_is_the_prompts() -> None:
    assert PromptBudget(1000, 100).max_prompt_tokens == 900
    assert PromptBudget(1000, 32_000).max_prompt_tokens == 500


@given(sound(), st.integers(10, 600))
def test_condensed_is_a_sound_conversation_that_fits_and_has_what_matters(
    messages: tuple[Message, ...], window: int
) -> None:
    request = Request("m", messages)
    try:
        short, repairs = fit_to_window(request, PromptBudget(window, 0), count, condense=True)
    except RequestError:
        assume(False)
        return
    assert count(short) <= window
    assert bool(repairs) == (short != request) == (count(request) > window)
    assert repair_history(short.messages) == (short.messages, ())
    instructions = [message for message in messages if message.role == "system"]
    assert [message for message in short.messages if message.role == "system"] == instructions
    last = max(at for at, message in enumerate(messages) if message.role == "user")
    assert messages[last] in short.messages
    if messages[-1].role == "tool":
        answered = max(at for at, message in enumerate(messages) if message.role == "assistant")
        assert short.messages[-len(messages[answered:]) :] == messages[answered:]


@given(sound(), st.integers(10, 600))
def test_no_more_is_left_out_than_needed(messages: tuple[Message, ...], window: int) -> None:
    request = Request("m", messages)
    try:
        short, _ = fit_to_window(request, PromptBudget(window, 0), count, condense=True)
    except RequestError:
        assume(False)
        return
    assume(len(short.messages) == len(messages) and short != request)
    newest = max(at for at, (one, other) in enumerate(zip(short.messages, messages, strict=True)) if one != other)
    with_it = (*short.messages[:newest], messages[newest], *short.messages[newest + 1 :])
    assert count(Request("m", with_it)) > window
