"""OpenAI's error object: written for clients, and read from the many servers that vary it.

Reading never raises: whatever the body is, the result is a `BackendError`, with the model's own output in `salvage` if
the server quotes it.
"""

from __future__ import annotations

import re

import msgspec

from callwright.errors import BackendError, BackendErrorKind
from callwright.wire.base import ErrorResponse
from callwright.wire.framing import JSON_DECODE_ERRORS, encode_json

__all__ = ["encode_error_body", "parse_backend_error"]

_FAULT_BY_STATUS: dict[int, BackendErrorKind] = {
    401: "auth",
    403: "auth",
    408: "timeout",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_RETRYABLE_STATUSES = frozenset({408, 429})
_MAX_MESSAGE_CHARACTERS = 2000
# llama.cpp quotes all that it could not parse (llama.cpp #20532), Ollama the arguments of the call (ollama #12884).
_OUTPUT_QUOTES = (
    re.compile(r"Failed to parse input at pos \d+: (.*)", re.DOTALL),
    re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL),
)


def encode_error_body(error_response: ErrorResponse) -> bytes:
    """Encode the error that a client sees, as a body or as an event; the message says who failed."""
    error = {
        "message": error_response.text,
        "type": error_response.kind,
        "param": error_response.param or None,
        "code": error_response.code or None,
    }
    return encode_json({"error": error})


def parse_backend_error(status: int, body: bytes) -> BackendError:
    """Return the error for an answer with that status, or for an error in a stream, whose status is 0 here.

    The body may be the error object, an object around it, or plain text.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        error = _unwrap_error(msgspec.json.decode(body))
    except JSON_DECODE_ERRORS:
        error = text
    reported = status or _find_status(error)
    message = _find_message(error) or text or "no reason was given"
    salvage = _find_salvage(error, message)
    shown = message if len(message) <= _MAX_MESSAGE_CHARACTERS else f"{message[:_MAX_MESSAGE_CHARACTERS]}…"
    return BackendError(
        f"the backend answered {reported}: {shown}" if reported else f"the backend reported an error: {shown}",
        kind=_FAULT_BY_STATUS.get(reported) or ("refused" if 400 <= reported < 500 else "unavailable"),
        retryable=not 300 <= reported < 500 or reported in _RETRYABLE_STATUSES,
        status=reported,
        salvage=salvage,
    )


def _unwrap_error(value: object) -> object:
    """Return the error object itself. Mistral and FastAPI servers put it under `detail`, some in a list."""
    while True:
        if isinstance(value, dict) and value.get("error"):
            value = value["error"]
        elif isinstance(value, dict) and "message" not in value and value.get("detail"):
            value = value["detail"]
        elif isinstance(value, list) and value:
            value = value[0]
        else:
            return value


def _find_status(error: object) -> int:
    """Return the HTTP status that an error in a stream contains."""
    if not isinstance(error, dict):
        return 0
    candidates = (error.get(key) for key in ("status_code", "status", "code"))
    return next((value for value in candidates if type(value) is int and 400 <= value < 600), 0)


def _find_message(error: object) -> str:
    if isinstance(error, dict):
        error = next((error[key] for key in ("message", "msg") if isinstance(error.get(key), str)), "")
    return error.strip() if isinstance(error, str) else ""


def _find_salvage(error: object, message: str) -> str:
    """Return the model's output. Groq has a field for it (groq-typescript #103), others quote it in the message."""
    if isinstance(error, dict) and isinstance(error.get("failed_generation"), str):
        return str(error["failed_generation"])
    return next((match[1] for quote in _OUTPUT_QUOTES if (match := quote.search(message))), "")
