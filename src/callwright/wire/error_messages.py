"""The words of an error: clients show them as they are, so they say who failed."""

from __future__ import annotations

from callwright.wire.base import ErrorResponse, ErrorSource

__all__ = ["error_text"]

_SOURCE_PREFIXES: dict[ErrorSource, str] = {
    "client": "The request cannot be served: ",
    "gateway": "The gateway failed: ",
    "backend": "The backend failed: ",
}


def error_text(error: ErrorResponse) -> str:
    """The message for the client's user."""
    return _SOURCE_PREFIXES[error.fault] + error.message
