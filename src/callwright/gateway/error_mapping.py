"""What a client gets to see of an exception: its status, whose fault it is, and what to do. The wires write who failed.

Pure: exceptions in, `Problem`s out. Their messages are halves of sentences: each wire puts before them who failed.
Never 402 or 422: Copilot Chat 0.66 takes the first for its own quota and the
second for a content filter. What an unexpected exception says is never shown: it may hold anything.
"""

from __future__ import annotations

import msgspec

from callwright.backends.context_overflow import is_context_overflow
from callwright.backends.errors import LOGIN_NEEDED
from callwright.errors import BackendError, BackendErrorKind, RequestError, WireError
from callwright.gateway.limits import RateLimitError
from callwright.wire.base import ErrorResponse

__all__ = ["build_shutdown_error", "map_error"]

# OpenAI's `error.type` by status.
_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_MISREAD_STATUSES = {402, 422}


class _FailureResponse(msgspec.Struct, frozen=True):
    """What one kind of backend failure is to a client."""

    status: int
    kind: str
    advice: str


_FAILURES: dict[BackendErrorKind, _FailureResponse] = {
    "auth": _FailureResponse(
        502,
        "server_error",
        "The gateway's own key for this backend is wrong, not yours: correct `key` in its [[backends]] table.",
    ),
    "rate_limit": _FailureResponse(429, "rate_limit_error", "Wait, then try again."),
    "overloaded": _FailureResponse(503, "overloaded_error", "Try again in a moment."),
    "unavailable": _FailureResponse(
        503, "server_error", "Check that it is running and that its [[backends]] table is right."
    ),
    "timeout": _FailureResponse(
        504, "timeout_error", "Make the prompt smaller, or the time in its [[backends]] table longer."
    ),
    "refused": _FailureResponse(
        502, "server_error", "Change the request, or the model's settings, so that it accepts it."
    ),
    "protocol": _FailureResponse(
        502, "server_error", "It does not speak what the `kind` in its [[backends]] table says: correct one of the two."
    ),
    "unusable": _FailureResponse(
        502, "server_error", "Try again, or use another model; `callwright serve --journal full` keeps what it wrote."
    ),
}
_CONNECTION_LOST_ADVICE = "Try again; if it happens again, the log of its server may say why."


def map_error(error: BaseException, *, request_id: str = "", backend_status: int = 0) -> ErrorResponse:
    """The problem that an exception is to a client; `backend_status` is its profile's."""
    match error:
        case RequestError():
            return _map_request_error(error)
        case BackendError():
            return _map_backend_error(error, backend_status)
        case WireError():
            return _map_backend_error(BackendError(str(error)), backend_status)
        case _:
            return ErrorResponse(
                status=500,
                message="this is a bug in Callwright. Its log has the details under the request id "
                f"{request_id or '(none)'}; please report it with them.",
                fault="gateway",
                kind="server_error",
                code="internal_error",
            )


def build_shutdown_error() -> ErrorResponse:
    """For turns that are still running when the service's time to shut down is over."""
    return ErrorResponse(
        status=503,
        message="it is shutting down and could not wait for this turn any longer. Try again in a moment.",
        fault="gateway",
        kind="server_error",
        code="shutting_down",
    )


def _map_request_error(error: RequestError) -> ErrorResponse:
    status = 400 if error.status in _MISREAD_STATUSES else error.status
    return ErrorResponse(
        status=status,
        message=str(error),
        fault="client",
        kind=_ERROR_TYPES.get(status, "invalid_request_error"),
        code=error.code,
        param=error.param,
        retry_after=error.retry_after if isinstance(error, RateLimitError) else None,
    )


def _map_backend_error(error: BackendError, backend_status: int) -> ErrorResponse:
    failure = _FAILURES[error.kind]
    status = failure.status
    if error.kind == "refused" and 400 <= error.status < 500:
        status = 400  # it is this request that the backend will never take: a client that retries a 5xx must not
    if backend_status and error.kind != "rate_limit":
        status = backend_status
    said = str(error).strip()
    if is_context_overflow(error):
        return _build_too_long_error(said)
    if error.code == LOGIN_NEEDED:
        return ErrorResponse(
            status=401, message=_end_sentence(said), fault="backend", kind=_ERROR_TYPES[401], code=LOGIN_NEEDED
        )
    return ErrorResponse(
        status=status,
        message=f"{_end_sentence(said)} {_CONNECTION_LOST_ADVICE if error.kind == 'protocol' and error.retryable else failure.advice}",
        fault="backend",
        kind="invalid_request_error" if status == 400 else failure.kind,
        code=f"backend_{error.kind}",
        retry_after=error.retry_after,
    )


def _build_too_long_error(message: str) -> ErrorResponse:
    """In the words by which agents know that they must condense: the code for OpenAI's, the message for Claude Code."""
    return ErrorResponse(
        status=400,
        message=f"prompt is too long: {_end_sentence(message)} Shorten the conversation, or give the model a larger window.",
        fault="backend",
        code="context_length_exceeded",
    )


def _end_sentence(message: str) -> str:
    return message if message.endswith((".", "?", "!")) else f"{message}."
