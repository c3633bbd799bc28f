"""Circuit breaker: stops sending requests to a backend after consecutive failures. Pure: the clock is injected.

When its time is over, one request is let through. If it succeeds, the breaker closes; if it fails or never reports
back, the breaker stays open for the same time again. A lost result therefore cannot block a backend for good.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """The breaker of one backend. `failures=0` disables it."""

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float]) -> None:
        self._limit = failures or float("inf")
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._open_until = float("-inf")

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the next request is let through; 0 when requests are allowed."""
        return max(0.0, self._open_until - self._clock())

    def allow_request(self) -> bool:
        """Whether a request may be sent now. The first one after a pause blocks the others until it reports back."""
        if self.remaining_seconds:
            return False
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds
        return True

    def record_success(self) -> None:
        """Record a success and close the breaker."""
        self._failures = 0
        self._open_until = float("-inf")

    def record_failure(self) -> None:
        """Record a failure, and open the breaker when there were too many."""
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds
