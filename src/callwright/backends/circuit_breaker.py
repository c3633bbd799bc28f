"""Breaker: leaves a backend alone after failures in a row. Pure: the clock is handed in.

After the rest one turn is let through to see. If it succeeds all may come; if it fails, or is never heard of again,
the backend rests for as long once more. So nothing that is forgotten can keep a backend out for good.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """One backend's record of late. `failures` of 0 never breaks."""

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float]) -> None:
        self._limit = failures or float("inf")
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._open_until = float("-inf")

    @property
    def remaining_seconds(self) -> float:
        """Seconds for which it is still left alone; 0 when it may be asked."""
        return max(0.0, self._open_until - self._clock())

    def allow_request(self) -> bool:
        """Whether a turn may go there now. The first one after a rest keeps the others out until it is back."""
        if self.remaining_seconds:
            return False
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds
        return True

    def record_success(self) -> None:
        """It works."""
        self._failures = 0
        self._open_until = float("-inf")

    def record_failure(self) -> None:
        """It does not."""
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._seconds
