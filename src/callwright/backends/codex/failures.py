"""Interprets failed turns of Codex. Pure; every row of the tables was observed with 0.166.0.

Codex reports the provider's status in some cases and hides it in others, and wraps the provider's message in its own
text. The result is the error that any other backend would report for the same response.
"""

from __future__ import annotations

import re
from typing import Any

from callwright.backends.errors import LOGIN_NEEDED
from callwright.errors import BackendError
from callwright.events import FinishReason
from callwright.wire.framing import encode_json
from callwright.wire.openai_errors import parse_backend_error

__all__ = ["build_login_error", "find_finish_reason", "parse_turn_error"]

_STATUSES = {
    "contextWindowExceeded": 400,
    "badRequest": 400,
    "cyberPolicy": 400,
    "misalignmentPolicyViolation": 400,
    "unauthorized": 401,
    "modelNotFound": 404,
    "rateLimitExceeded": 429,
    "usageLimitExceeded": 429,
    "internalServerError": 500,
    "serverOverloaded": 503,
    "other": 400,  # the provider's body, or the message of a `response.failed` that must not be retried
}
_FINISH_REASONS: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_INCOMPLETE = re.compile(r"Incomplete response returned, reason: (\w+)")
_DISCONNECTED = "stream disconnected before completion: "
_WRAPPED_MESSAGE = re.compile(r"unexpected status \d+ [^:]*: (.*?), url: .*", re.DOTALL)


def find_finish_reason(error: dict[str, Any]) -> FinishReason | None:
    """Find the finish reason of a truncated turn, which Codex reports as a failure. None for other failures."""
    found = _INCOMPLETE.search(str(error.get("message")))
    return _FINISH_REASONS.get(found[1]) if found else None


def parse_turn_error(error: dict[str, Any]) -> BackendError:
    """Convert the error of a turn."""
    text = str(error.get("message") or "no reason was given")
    info = error.get("codexErrorInfo")
    if text.startswith(_DISCONNECTED):
        message = f"the backend closed the connection in the middle of its answer: {text.removeprefix(_DISCONNECTED)}"
        return BackendError(message, kind="unavailable", retryable=True)
    if isinstance(info, dict):
        details = next((value for value in info.values() if isinstance(value, dict)), {})
        status = details.get("httpStatusCode")
        if not isinstance(status, int):
            message = f"the backend cannot reach its provider: {text}"
            return BackendError(message, kind="unavailable", retryable=True)
        wrapped = _WRAPPED_MESSAGE.fullmatch(text)
        return parse_backend_error(status, encode_json({"error": {"message": wrapped[1] if wrapped else text}}))
    status = _STATUSES.get(str(info), 500)
    return parse_backend_error(status, text.encode())


def build_login_error() -> BackendError:
    """Build the error for a missing account."""
    message = "the backend has no account: run `callwright codex login`, then restart the gateway"
    return BackendError(message, kind="auth", status=401, code=LOGIN_NEEDED)
