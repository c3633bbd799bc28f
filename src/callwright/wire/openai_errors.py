"""OpenAI's error object, written for clients and read from the many servers that speak it with an accent.

Reading never raises: whatever the body is, a `BackendError` comes out of it, with the model's own output in `salvage`
where the server quotes it.
"""

from __future__ import annotations

import re

import msgspec

from callwright.errors import BackendError, BackendErrorKind
from callwright.wire.base import Problem
from callwright.wire.framing import UNREADABLE, encoded
from callwright.wire.problems import told

__all__ = ["error_body", "refusal"]

_FAULTS: dict[int, BackendErrorKind] = {
    401: "auth",
    403: "auth",
    408: "timeout",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_RETRYABLE = frozenset({408, 429})
_MOST_SHOWN = 2000
# llama.cpp quotes all that it could not read (llama.cpp #20532), Ollama the arguments of the call (ollama #12884).
_QUOTES = (
    re.compile(r"Failed to parse input at pos \d+: (.*)", re.DOTALL),
    re.compile(r"error parsing tool call: raw='(.*)', err=", re.DOTALL),
)


def error_body(problem: Problem) -> bytes:
    """The error that a client gets to see, as a body or as an event; the message says who failed."""
    error = {
        "message": told(problem),
        "type": problem.kind,
        "param": problem.param or None,
        "code": problem.code or None,
    }
    return encoded({"error": error})


def refusal(status: int, body: bytes) -> BackendError:
    """What an answer with that status means, or an error in a stream, whose status is 0 here.

    The complaint may be the object, what wraps it, or a bare text.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        found = _unwrapped(msgspec.json.decode(body))
    except UNREADABLE:
        found = text
    reported = status or _status(found)
    message = _message(found) or text or "no reason was given"
    salvage = _salvage(found, message)
    shown = message if len(message) <= _MOST_SHOWN else f"{message[:_MOST_SHOWN]}…"
    return BackendError(
        f"the backend answered {reported}: {shown}" if reported else f"the backend reported an error: {shown}",
        kind=_FAULTS.get(reported) or ("refused" if 400 <= reported < 500 else "unavailable"),
        retryable=not 300 <= reported < 500 or reported in _RETRYABLE,
        status=reported,
        salvage=salvage,
    )


def _unwrapped(value: object) -> object:
    """The error itself. Mistral and FastAPI servers put it under `detail`, some in a list."""
    while True:
        if isinstance(value, dict) and value.get("error"):
            value = value["error"]
        elif isinstance(value, dict) and "message" not in value and value.get("detail"):
            value = value["detail"]
        elif isinstance(value, list) and value:
            value = value[0]
        else:
            return value


def _status(error: object) -> int:
    """The HTTP status that an error in a stream names."""
    if not isinstance(error, dict):
        return 0
    candidates = (error.get(key) for key in ("status_code", "status", "code"))
    return next((value for value in candidates if type(value) is int and 400 <= value < 600), 0)


def _message(error: object) -> str:
    if isinstance(error, dict):
        error = next((error[key] for key in ("message", "msg") if isinstance(error.get(key), str)), "")
    return error.strip() if isinstance(error, str) else ""


def _salvage(error: object, message: str) -> str:
    """Groq has it in a field of its own (groq-typescript #103), others in the words of the message."""
    if isinstance(error, dict) and isinstance(error.get("failed_generation"), str):
        return str(error["failed_generation"])
    return next((found[1] for quote in _QUOTES if (found := quote.search(message))), "")
