"""The trace that a turn belongs to, in W3C's form, so that client, gateway and model server show up as one.

The gateway sets it for each request, and backends send it along; without one nothing is sent.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

__all__ = ["TRACEPARENT", "continue_trace"]

TRACEPARENT: ContextVar[str] = ContextVar("TRACEPARENT", default="")
_TRACEPARENT_PATTERN = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


def continue_trace(traceparent: str) -> str:
    """A step of our own in the trace that a client named, or in a new one (https://www.w3.org/TR/trace-context)."""
    found = _TRACEPARENT_PATTERN.fullmatch(traceparent)
    trace, flags = found.groups() if found else (secrets.token_hex(16), "00")
    return f"00-{trace}-{secrets.token_hex(8)}-{flags}"
