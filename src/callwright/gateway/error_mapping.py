"""Maps exceptions to the errors that clients see: a status, who is at fault, and what to do.

Pure: exceptions in, `ErrorResponse`s out. A message begins in lower case, because each wire puts in front of it who
failed. 402 and 422 are never used: Copilot Chat 0.66 takes the first for its own quota and the second for a content
filter. The text of an unexpected exception is never shown, because it may contain anything.
"""

from __future__ import annotations

import msgspec

from callwright.backends.errors import LOGIN_NEEDED, is_context_overflow
from callwright.errors import BackendError, BackendErrorKind, RequestError, StoreError, WireError
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
    """How one kind of backend failure is reported to clients."""

    status: int
    kind: str
    advice: str


_FAILURES: dict[BackendErrorKind, _FailureResponse] = {
    "auth": _FailureResponse(
        502,
        "server_error",
        "The gateway's own key for this backend is wrong, not yours. Correct `key` in its [[backends]] table.",
    ),
    "rate_limit": _FailureResponse(429, "rate_limit_error", "Wait, then try again."),
    "overloaded": _FailureResponse(503, "overloaded_error", "Try again in a moment."),
    "unavailable": _FailureResponse(
        503, "server_error", "Check that it is running and that its [[backends]] table is correct."
    ),
    "timeout": _FailureResponse(
        504, "timeout_error", "Shorten the prompt, or raise the timeouts in its [[backends]] table."
    ),
    "refused": _FailureResponse(
        502, "server_error", "Change the request or the model's settings so that the backend accepts it."
    ),
    "protocol": _FailureResponse(
        502, "server_error", "It does not use the protocol that `kind` in its [[backends]] table names. Correct `kind`."
    ),
    "unusable": _FailureResponse(
        502, "server_error", "Try again, or use another model. `callwright serve --journal full` records what it wrote."
    ),
}
_CONNECTION_LOST_ADVICE = "Try again. If it happens again, look into the log of the backend's server."


def map_error(error: BaseException, *, request_id: str = "", backend_status: int = 0) -> ErrorResponse:
    """Map an exception to the error for the client. A profile's `backend_status` replaces the status of backend
    failures."""
    match error:
        case RequestError():
            return _map_request_error(error)
        case BackendError():
            return _map_backend_error(error, backend_status)
        case WireError():
            return _map_backend_error(BackendError(str(error)), backend_status)
        case StoreError():
            return ErrorResponse(
                status=503,
                message=f"{_end_sentence(str(error))} Check that the database of the [store] table is running.",
                fault="gateway",
                kind="server_error",
                code="store_unavailable",
            )
        case _:
            return ErrorResponse(
                status=500,
                message="this is a bug in Callwright. Please report it with the log entries of the request id "
                f"{request_id or '(none)'}.",
                fault="gateway",
                kind="server_error",
                code="internal_error",
            )


def build_shutdown_error() -> ErrorResponse:
    """Build the error for turns that still run when the time to shut down is over."""
    return ErrorResponse(
        status=503,
        message="it is shutting down and could not wait for this turn to finish. Try again in a moment.",
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
        status = 400  # the backend will never accept this request, and clients retry a 5xx
    if backend_status and error.kind != "rate_limit":
        status = backend_status
    message = str(error).strip()
    if is_context_overflow(error):
        return _build_too_long_error(message)
    if error.code == LOGIN_NEEDED:
        return ErrorResponse(
            status=401, message=_end_sentence(message), fault="backend", kind=_ERROR_TYPES[401], code=LOGIN_NEEDED
        )
    advice = _CONNECTION_LOST_ADVICE if error.kind == "protocol" and error.retryable else failure.advice
    return ErrorResponse(
        status=status,
        message=f"{_end_sentence(message)} {advice}",
        fault="backend",
        kind="invalid_request_error" if status == 400 else failure.kind,
        code=f"backend_{error.kind}",
        retry_after=error.retry_after,
    )


def _build_too_long_error(message: str) -> ErrorResponse:
    """Build the error that makes agents condense: OpenAI's clients look at the code, Claude Code at the message."""
    return ErrorResponse(
        status=400,
        message=f"prompt is too long: {_end_sentence(message)} Shorten the conversation, or use a model with a larger "
        "context window.",
        fault="backend",
        code="context_length_exceeded",
    )


def _end_sentence(message: str) -> str:
    return message if message.endswith((".", "?", "!")) else f"{message}."
