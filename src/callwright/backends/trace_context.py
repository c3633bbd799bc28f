"""The W3C trace context of a turn, which joins client, gateway and model server in one trace.

The gateway sets it for each request, and backends send it. Without one nothing is sent.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar

__all__ = ["TRACEPARENT", "continue_trace"]

TRACEPARENT: ContextVar[str] = ContextVar("TRACEPARENT", default="")
_TRACEPARENT_PATTERN = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


def continue_trace(traceparent: str) -> str:
    """Create a span in the client's trace, or in a new trace (https://www.w3.org/TR/trace-context)."""
    match = _TRACEPARENT_PATTERN.fullmatch(traceparent)
    trace, flags = match.groups() if match else (secrets.token_hex(16), "00")
    return f"00-{trace}-{secrets.token_hex(8)}-{flags}"
