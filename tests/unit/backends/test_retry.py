"""Which failures are tried again, after how long; and when a backend is left alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.circuit_breaker import CircuitBreaker
from callwright.backends.retry import MAX_WAIT_SECONDS, RetryPolicy, parse_retry_after
from callwright.errors import BackendError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PASSING = BackendError("busy", kind="overloaded", retryable=True)
seconds = st.floats(0, 1000)
chance = st.floats(0, 1)


def _header(headers: dict[str, str]) -> Callable[[str], str]:
    return lambda name: headers.get(name, "")


@given(st.integers(0, 20), st.floats(0.01, 10), chance)
def test_waits_double_and_half_of_each_is_jitter(attempt: int, backoff: float, luck: float) -> None:
    wait = RetryPolicy(100, backoff, lambda: luck).compute_delay(attempt, PASSING)
    full = min(backoff * 2**attempt, MAX_WAIT_SECONDS)
    assert wait is not None
    assert full / 2 <= wait <= full


@pytest.mark.parametrize(("luck", "delay"), [(0.0, 2.0), (0.5, 3.0), (1.0, 4.0)])
def test_the_jitter_is_what_the_random_number_says(luck: float, delay: float) -> None:
    assert RetryPolicy(5, 1.0, lambda: luck).compute_delay(2, PASSING) == delay


@given(seconds, chance)
def test_a_server_that_names_a_time_is_not_asked_before_it(asked: float, luck: float) -> None:
    failure = BackendError("slow down", retryable=True, retry_after=asked)
    wait = RetryPolicy(1, 0.5, lambda: luck).compute_delay(0, failure)
    assert wait is None if asked > MAX_WAIT_SECONDS else wait is not None and wait >= asked


@pytest.mark.parametrize(
    ("attempt", "failure"),
    [
        (2, PASSING),
        (0, BackendError("no such model", kind="refused")),
        (0, BackendError("cannot parse", retryable=True, status=500, salvage="<tool_call>")),
    ],
    ids=["no tries left", "it would fail again", "the model has spoken"],
)
def test_what_is_not_tried_again(attempt: int, failure: BackendError) -> None:
    assert RetryPolicy(2, 0.5, lambda: 0.5).compute_delay(attempt, failure) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:15 GMT"}, 10.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:15 -0000"}, 10.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 99 Jan 2026 03:00:00 GMT"}, None),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(headers: dict[str, str], expected: float | None) -> None:
    assert parse_retry_after(_header(headers), NOW) == expected


@given(st.text())
def test_retry_after_never_fails(value: str) -> None:
    wait = parse_retry_after(_header({"retry-after": value}), NOW)
    assert wait is None or wait >= 0


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)))
def test_a_date_is_as_good_as_its_seconds(date: datetime) -> None:
    date = date.replace(microsecond=0)
    assert parse_retry_after(_header({"retry-after": format_datetime(date, usegmt=True)}), NOW) == max(
        0.0, (date - NOW).total_seconds()
    )


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def broken(failures: int = 3) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(failures, 10.0, clock)
    for _ in range(failures):
        assert breaker.allow_request()
        breaker.record_failure()
    return breaker, clock


def test_failures_in_a_row_close_the_way_for_a_while() -> None:
    breaker, clock = broken()
    assert not breaker.allow_request()
    assert breaker.remaining_seconds == 10.0
    clock.now += 9.9
    assert not breaker.allow_request()


def test_a_success_between_failures_starts_the_count_anew() -> None:
    breaker = CircuitBreaker(2, 10.0, Clock())
    for _ in range(5):
        breaker.record_failure()
        breaker.record_success()
    assert breaker.allow_request()


def test_after_the_rest_one_goes_to_see_and_the_others_wait() -> None:
    breaker, clock = broken()
    clock.now += 10
    assert [breaker.allow_request() for _ in range(3)] == [True, False, False]
    breaker.record_success()
    assert [breaker.allow_request() for _ in range(3)] == [True, True, True]


def test_one_failure_after_the_rest_is_enough_for_another() -> None:
    breaker, clock = broken()
    clock.now += 10
    assert breaker.allow_request()
    breaker.record_failure()
    assert breaker.remaining_seconds == 10.0


def test_a_scout_that_never_comes_back_costs_one_rest() -> None:
    breaker, clock = broken()
    clock.now += 10
    assert breaker.allow_request()
    clock.now += 10
    assert breaker.allow_request()


def test_zero_failures_never_breaks() -> None:
    breaker = CircuitBreaker(0, 10.0, Clock())
    for _ in range(1000):
        breaker.record_failure()
    assert breaker.allow_request()


@given(st.lists(st.sampled_from(["allow_request", "record_failure", "record_success", "wait"])))
def test_whatever_happens_it_is_open_again_after_one_rest(moves: list[str]) -> None:
    clock = Clock()
    breaker = CircuitBreaker(2, 10.0, clock)
    for move in moves:
        if move == "wait":
            clock.now += 4
        else:
            getattr(breaker, move)()
        assert 0 <= breaker.remaining_seconds <= 10
    clock.now += 10
    assert breaker.allow_request()
