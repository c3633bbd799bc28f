"""Retry: which failures are worth another try, and after how long. Pure: randomness and the date are handed in.

Only what failed before the first byte of an answer gets here; after it, another try would repeat what was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from callwright.errors import BackendError

__all__ = ["MAX_WAIT_SECONDS", "RetryPolicy", "parse_retry_after"]

MAX_WAIT_SECONDS = 30.0
"""Seconds. A server that asks for more is not waited for: whoever asked us is told, and may go elsewhere."""

_SECONDS = re.compile(r"\d{1,9}(\.\d*)?")


class RetryPolicy:
    """The rule of one backend: `times` more tries, after `backoff` seconds that double each time.

    `random` gives numbers from 0 to 1. Half of each wait is jitter, so that turns which failed together do not come
    back together.
    """

    def __init__(self, times: int, backoff: float, random: Callable[[], float]) -> None:
        self._times = times
        self._backoff = backoff
        self._random = random

    def compute_delay(self, attempt: int, failure: BackendError) -> float | None:
        """Seconds to wait after that many earlier tries and this failure; None to give up.

        A failure with salvage is an answer: the model has spoken, and only its server could not read it.
        """
        if attempt >= self._times or not failure.retryable or failure.salvage:
            return None
        asked = failure.retry_after or 0.0
        if asked > MAX_WAIT_SECONDS:
            return None
        own = min(self._backoff * 2.0**attempt, MAX_WAIT_SECONDS) * (0.5 + self._random() / 2)
        return max(own, asked)


def parse_retry_after(header: Callable[[str], str], now: datetime) -> float | None:
    """The seconds that a server asks to wait, from `Retry-After` in either of its forms or OpenAI's in milliseconds."""
    if _SECONDS.fullmatch(milliseconds := header("retry-after-ms").strip()):
        return float(milliseconds) / 1000
    value = header("retry-after").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp())
