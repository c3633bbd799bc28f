"""The text of an error: clients show it unchanged, so it says who failed."""

from __future__ import annotations

from callwright.wire.base import ErrorResponse, ErrorSource

__all__ = ["error_text"]

_SOURCE_PREFIXES: dict[ErrorSource, str] = {
    "client": "The request cannot be served: ",
    "gateway": "The gateway failed: ",
    "backend": "The backend failed: ",
}


def error_text(error: ErrorResponse) -> str:
    """Return the message for the client's user."""
    return _SOURCE_PREFIXES[error.fault] + error.message
