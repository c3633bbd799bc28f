"""Decides which failures are retried, and after how long. Pure: randomness and the date are injected.

It sees only failures before the first byte of an answer. A retry after that would repeat what was already sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from callwright.errors import BackendError

__all__ = ["MAX_WAIT_SECONDS", "RetryPolicy", "parse_retry_after"]

MAX_WAIT_SECONDS = 30.0
"""Maximum seconds to wait for a server. When it asks for more, the client gets the error at once."""

_SECONDS = re.compile(r"\d{1,9}(\.\d*)?")


class RetryPolicy:
    """The retry policy of one backend: `times` retries, after `backoff` seconds that double each time.

    `random` returns numbers from 0 to 1. Half of each delay is jitter, so that requests which failed together do not
    return together.
    """

    def __init__(self, times: int, backoff: float, random: Callable[[], float]) -> None:
        self._times = times
        self._backoff = backoff
        self._random = random

    def compute_delay(self, attempt: int, failure: BackendError) -> float | None:
        """Compute the delay before the next attempt, in seconds; None to give up.

        A failure with salvage is not retried: the model has answered, and only its server could not parse the answer.
        """
        if attempt >= self._times or not failure.retryable or failure.salvage:
            return None
        requested = failure.retry_after or 0.0
        if requested > MAX_WAIT_SECONDS:
            return None
        delay = min(self._backoff * 2.0**attempt, MAX_WAIT_SECONDS) * (0.5 + self._random() / 2)
        return max(delay, requested)


def parse_retry_after(get_header: Callable[[str], str], now: datetime) -> float | None:
    """Parse the delay that a server requests: `Retry-After` in either form, or OpenAI's in milliseconds."""
    if _SECONDS.fullmatch(milliseconds := get_header("retry-after-ms").strip()):
        return float(milliseconds) / 1000
    value = get_header("retry-after").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp())
