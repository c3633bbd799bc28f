"""Failures: what a turn that failed in Codex means. Pure; every line of the tables was seen with 0.166.0.

Codex tells the provider's status in some cases and hides it in others, and wraps what the provider said in words of
its own. What comes out is what any other backend would say of the same answer.
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
    "other": 400,  # the provider's body as it was, or what it said in a `response.failed` that may not be tried again
}
_FINISH_REASONS: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_INCOMPLETE = re.compile(r"Incomplete response returned, reason: (\w+)")
_DISCONNECTED = "stream disconnected before completion: "
_WRAPPED_MESSAGE = re.compile(r"unexpected status \d+ [^:]*: (.*?), url: .*", re.DOTALL)


def find_finish_reason(error: dict[str, Any]) -> FinishReason | None:
    """How a turn ended that was not allowed to go on; Codex calls that a failure too. None for other failures."""
    found = _INCOMPLETE.search(str(error.get("message")))
    return _FINISH_REASONS.get(found[1]) if found else None


def parse_turn_error(error: dict[str, Any]) -> BackendError:
    """What the error of a turn is to us."""
    said = str(error.get("message") or "no reason was given")
    info = error.get("codexErrorInfo")
    if said.startswith(_DISCONNECTED):
        message = f"the backend broke off in the middle of its answer: {said.removeprefix(_DISCONNECTED)}"
        return BackendError(message, kind="unavailable", retryable=True)
    if isinstance(info, dict):
        told = next((value for value in info.values() if isinstance(value, dict)), {})
        status = told.get("httpStatusCode")
        if not isinstance(status, int):
            message = f"the backend cannot reach its provider: {said}"
            return BackendError(message, kind="unavailable", retryable=True)
        wrapped = _WRAPPED_MESSAGE.fullmatch(said)
        return parse_backend_error(status, encode_json({"error": {"message": wrapped[1] if wrapped else said}}))
    status = _STATUSES.get(str(info), 500)
    return parse_backend_error(status, said.encode())


def build_login_error() -> BackendError:
    """There is no account to ask with."""
    message = "the backend has no account: run `callwright codex login`, then restart the gateway"
    return BackendError(message, kind="auth", status=401, code=LOGIN_NEEDED)
