"""Limits: who waits, for how long, and who is never made to wait."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RequestError
from callwright.gateway.limits import (
    RateLimiter,
    RateLimitError,
    check_client_request,
    count_prompt_characters,
    limit_body,
)
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.model import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire.base import ClientRequest


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


SERVER = ServerSettings(streams=2)


def key(**limits: int) -> KeySettings:
    return KeySettings(name="team", key="k", **limits)


def test_turns_at_once_are_bounded_for_all_and_a_place_is_given_back() -> None:
    limits = RateLimiter(Clock())
    with limits.admit_turn(SERVER, None), limits.admit_turn(SERVER, key()):
        with pytest.raises(RateLimitError, match="busy") as caught, limits.admit_turn(SERVER, None):
            pass
        assert caught.value.retry_after > 0
    with limits.admit_turn(SERVER, None):
        pass


def test_turns_at_once_are_bounded_for_each_key_alone() -> None:
    limits, one = RateLimiter(Clock()), key(streams=1)
    with limits.admit_turn(SERVER, one):
        with pytest.raises(RateLimitError, match="'team' has 1 turns"), limits.admit_turn(SERVER, one):
            pass
        with limits.admit_turn(SERVER, KeySettings(name="other", key="o", streams=1)):
            pass


def test_a_turn_that_fails_gives_its_place_back() -> None:
    limits = RateLimiter(Clock())
    for _ in range(5):
        with pytest.raises(ZeroDivisionError), limits.admit_turn(ServerSettings(streams=1), key(streams=1)):
            raise ZeroDivisionError


def test_a_request_may_come_when_the_oldest_of_its_rate_is_a_minute_ago() -> None:
    clock = Clock()
    limits, three = RateLimiter(clock), key(requests_per_minute=3)
    for _ in range(3):
        with limits.admit_turn(SERVER, three):
            clock.now += 10
    with pytest.raises(RateLimitError, match="3 requests per minute") as caught, limits.admit_turn(SERVER, three):
        pass
    assert caught.value.retry_after == 30
    clock.now += 30
    with limits.admit_turn(SERVER, three):
        pass
    with pytest.raises(RateLimitError), limits.admit_turn(SERVER, three):
        pass


def test_a_refused_request_costs_nothing() -> None:
    clock = Clock()
    limits, one = RateLimiter(clock), key(requests_per_minute=1)
    with limits.admit_turn(SERVER, one):
        pass
    for _ in range(50):
        with pytest.raises(RateLimitError), limits.admit_turn(SERVER, one):
            pass
    clock.now += 60
    with limits.admit_turn(SERVER, one):
        pass


def test_one_turn_may_use_more_tokens_than_are_left_and_the_next_waits() -> None:
    clock = Clock()
    limits, thrifty = RateLimiter(clock), key(tokens_per_minute=600)
    with limits.admit_turn(SERVER, thrifty):
        limits.add_tokens(thrifty, 1200)
    with pytest.raises(RateLimitError, match="600 tokens") as caught, limits.admit_turn(SERVER, thrifty):
        pass
    assert caught.value.retry_after == 60
    clock.now += 60
    with limits.admit_turn(SERVER, thrifty):
        pass


def test_a_changed_rate_holds_at_once() -> None:
    limits = RateLimiter(Clock())
    with limits.admit_turn(SERVER, key(requests_per_minute=1)):
        pass
    with limits.admit_turn(SERVER, key(requests_per_minute=2)):
        pass
    with pytest.raises(RateLimitError), limits.admit_turn(SERVER, key(requests_per_minute=2)):
        pass


@given(st.integers(1, 30), st.lists(st.floats(0, 30), max_size=80))
def test_no_minute_ever_sees_more_than_the_rate_and_who_waits_as_told_comes_in(rate: int, pauses: list[float]) -> None:
    clock = Clock()
    limits, limit = RateLimiter(clock), key(requests_per_minute=rate)
    admitted, waits = [], []
    for pause in pauses:
        clock.now += pause
        try:
            with limits.admit_turn(SERVER, limit):
                admitted.append(clock.now)
        except RateLimitError as error:
            waits.append(error.retry_after)
            clock.now += error.retry_after + 1e-6
            with limits.admit_turn(SERVER, limit):
                admitted.append(clock.now)
    assert all(0 < wait <= 60 for wait in waits)
    for start in admitted:
        assert sum(start <= at < start + 60 for at in admitted) <= rate


def body_of(size: int, limit: int, length: str, piece: int = 10) -> int:
    """How many bytes were read before the end."""
    read = 0

    async def receive():
        nonlocal read
        step = min(piece, size - read)
        read += step
        return {"type": "http.request", "body": b"x" * step, "more_body": read < size}

    async def read_all() -> None:
        counted = limit_body(length, receive, limit)
        while (await counted())["more_body"]:
            pass

    try:
        asyncio.run(read_all())
    except RequestError as error:
        return -read if error.status == 413 else 1
    return read


def test_a_body_is_refused_by_its_length_before_anything_is_read() -> None:
    assert body_of(10_000, 100, "10000") == 0


def test_a_body_without_a_length_is_read_no_further_than_the_limit() -> None:
    assert body_of(10_000, 100, "") == -110
    assert body_of(10_000, 100, "7") == -110
    assert body_of(10_000, 100, "-5") == -110


def test_a_body_of_exactly_the_limit_is_taken() -> None:
    assert body_of(100, 100, "100") == 100


def ask(text: str = "hi", choices: int = 1) -> ClientRequest:
    return ClientRequest(request=Request(model="m", messages=(Message("user", (Text(text),)),)), choices=choices)


@pytest.mark.parametrize("choices", [0, -1, 9])
def test_choices_out_of_range_are_refused_by_name(choices: int) -> None:
    with pytest.raises(RequestError, match="n must be between 1 and 8") as caught:
        check_client_request(ask(choices=choices), ServerSettings())
    assert caught.value.param == "n"


def test_a_prompt_that_is_too_long_tells_agents_to_condense() -> None:
    server = ServerSettings(prompt_characters=10)
    check_client_request(ask("x" * 10), server)
    with pytest.raises(RequestError) as caught:
        check_client_request(ask("x" * 11), server)
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")


def test_every_part_of_a_prompt_counts_but_pictures() -> None:
    parts = (
        Text("ab"),
        Reasoning("cde"),
        Image("data:" + "x" * 999),
        ToolCall("1", "fg", "{}"),
        ToolResult("1", "hij"),
    )
    assert count_prompt_characters(Request(model="m", messages=(Message("user", parts),))) == 2 + 3 + 4 + 3
