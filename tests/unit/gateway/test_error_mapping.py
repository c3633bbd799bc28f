"""Exceptions become problems that say who failed and what to do."""

from __future__ import annotations

from typing import get_args

import pytest

from callwright.errors import BackendError, BackendErrorKind, MisuseError, RequestError, WireError
from callwright.gateway import error_mapping
from callwright.gateway.limits import RateLimitError

STATUSES = {
    "auth": 502,
    "rate_limit": 429,
    "overloaded": 503,
    "unavailable": 503,
    "timeout": 504,
    "refused": 502,
    "protocol": 502,
    "unusable": 502,
}


@pytest.mark.parametrize("kind", get_args(BackendErrorKind))
def test_each_backend_failure_has_its_status_and_blames_the_backend(kind) -> None:
    problem = error_mapping.map_error(BackendError("it said no.", kind=kind, retry_after=7))
    assert problem.status == STATUSES[kind]
    assert problem.fault == "backend"
    assert problem.code == f"backend_{kind}"
    assert problem.message.startswith("it said no. ")
    assert problem.retry_after == 7


def test_a_wrong_upstream_key_is_never_taken_for_the_clients() -> None:
    problem = error_mapping.map_error(BackendError("401", kind="auth", status=401))
    assert problem.status not in (401, 403)
    assert "not yours" in problem.message


@pytest.mark.parametrize(("status", "expected"), [(400, 400), (404, 400), (422, 400), (500, 502), (0, 502)])
def test_what_the_backend_will_never_take_is_not_worth_a_retry(status: int, expected: int) -> None:
    assert error_mapping.map_error(BackendError("no tools", kind="refused", status=status)).status == expected


@pytest.mark.parametrize("kind", get_args(BackendErrorKind))
def test_copilots_status_shows_the_message_but_a_rate_limit_stays_one(kind) -> None:
    problem = error_mapping.map_error(BackendError("no", kind=kind), backend_status=424)
    assert problem.status == (429 if kind == "rate_limit" else 424)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (RequestError("messages[2].content must be text", param="messages[2].content"), 400, "invalid_request_error"),
        (RequestError("no model", status=404, code="model_not_found"), 404, "not_found_error"),
        (RequestError("too large", status=413), 413, "invalid_request_error"),
        (RequestError("not allowed", status=403), 403, "permission_error"),
        (RequestError("misread", status=422), 400, "invalid_request_error"),
        (RequestError("misread", status=402), 400, "invalid_request_error"),
    ],
)
def test_request_errors_keep_their_status_unless_clients_misread_it(error, status: int, kind: str) -> None:
    problem = error_mapping.map_error(error, backend_status=424)
    assert (problem.status, problem.kind, problem.fault) == (status, kind, "client")
    assert str(error) in problem.message
    assert (problem.param, problem.code) == (error.param, error.code)


def test_a_reached_limit_says_when_to_come_back() -> None:
    problem = error_mapping.map_error(RateLimitError("busy", 2.5))
    assert (problem.status, problem.retry_after, problem.code) == (429, 2.5, "rate_limit_exceeded")


def test_garbage_from_a_backend_is_its_fault() -> None:
    problem = error_mapping.map_error(WireError("not SSE"))
    assert problem.status == 502
    assert "`kind`" in problem.message


def test_an_answer_that_broke_off_says_nothing_of_settings() -> None:
    problem = error_mapping.map_error(BackendError("the stream ended before the answer did", retryable=True))
    assert problem.message == (
        "the stream ended before the answer did. "
        "Try again. If it happens again, look into the log of the backend's server."
    )


@pytest.mark.parametrize("error", [ValueError("password=hunter2"), MisuseError("hunter2"), KeyError("hunter2")])
def test_what_an_unexpected_exception_says_is_not_shown(error) -> None:
    problem = error_mapping.map_error(error, request_id="req_1")
    assert (problem.status, problem.fault) == (500, "gateway")
    assert "hunter2" not in problem.message
    assert "req_1" in problem.message
