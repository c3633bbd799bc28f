"""Limits for each caller and for the whole service: concurrent turns, requests and tokens per minute, sizes.

A rate applies to any 60 seconds, not to minutes of the clock. The tokens of a turn are known only afterwards, so one
turn may exceed the limit; the next is refused until the excess is a minute old. Each refusal says when to retry. Memory
is one entry for each turn of the last minute. Nothing here waits.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from callwright.errors import RequestError
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.model import Part, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire.base import ClientRequest

__all__ = [
    "RateLimitError",
    "RateLimiter",
    "check_client_request",
    "count_part_characters",
    "count_prompt_characters",
    "limit_body",
]

_MINUTE_SECONDS = 60.0
_BUSY_SECONDS = 1.0
"""`Retry-After` when too many turns are running: one of them may end at any moment."""


class RateLimitError(RequestError):
    """A limit was reached. `retry_after` is the number of seconds to wait."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, status=429, code="rate_limit_exceeded")
        self.retry_after = retry_after


class _SlidingWindow:
    """The amounts used in the last 60 seconds, each with its time."""

    def __init__(self) -> None:
        self._used: deque[tuple[float, int]] = deque()
        self._sum = 0

    def add(self, now: float, amount: int) -> None:
        self._used.append((now, amount))
        self._sum += amount

    def compute_wait(self, now: float, limit: int) -> float:
        """Compute the seconds until the last minute's use is below the limit."""
        while self._used and self._used[0][0] <= now - _MINUTE_SECONDS:
            self._sum -= self._used.popleft()[1]
        left = self._sum
        for at, amount in self._used if left >= limit else ():
            left -= amount
            if left < limit:
                return at + _MINUTE_SECONDS - now
        return 0.0


class _CallerUsage:
    """What one key has used."""

    def __init__(self) -> None:
        self.streams = 0
        self.requests = _SlidingWindow()
        self.tokens = _SlidingWindow()


class RateLimiter:
    """Counts the use of all callers. Settings are passed with each request, so a reload takes effect at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: dict[str, _CallerUsage] = {}
        self._streams = 0

    @contextmanager
    def admit_turn(self, server: ServerSettings, key: KeySettings | None) -> Iterator[None]:
        """Count one turn while it runs. Raises `RateLimitError` before it begins when a limit is reached."""
        if self._streams >= server.streams:
            raise RateLimitError(
                f"the gateway is busy: it runs {server.streams} turns, the limit set by `streams` in its [server] "
                "table. Try again in a moment.",
                _BUSY_SECONDS,
            )
        caller = self._admit_caller(key) if key else _CallerUsage()
        self._streams += 1
        caller.streams += 1
        try:
            yield
        finally:
            self._streams -= 1
            caller.streams -= 1

    def add_tokens(self, key: KeySettings | None, tokens: int) -> None:
        """Add the tokens that a finished turn of this key used."""
        if key and key.tokens_per_minute:
            self._get_caller(key).tokens.add(self._clock(), tokens)

    def _admit_caller(self, key: KeySettings) -> _CallerUsage:
        caller, now = self._get_caller(key), self._clock()
        if key.streams and caller.streams >= key.streams:
            raise RateLimitError(
                f"the key {key.name!r} has {key.streams} turns running, which is its limit. Wait until one ends.",
                _BUSY_SECONDS,
            )
        for what, window, limit in (
            ("requests", caller.requests, key.requests_per_minute),
            ("tokens", caller.tokens, key.tokens_per_minute),
        ):
            if limit and (seconds := window.compute_wait(now, limit)):
                raise RateLimitError(
                    f"the key {key.name!r} has used its {limit} {what} per minute. Try again in {seconds:.0f} seconds.",
                    seconds,
                )
        if key.requests_per_minute:
            caller.requests.add(now, 1)
        return caller

    def _get_caller(self, key: KeySettings) -> _CallerUsage:
        return self._callers.setdefault(key.name, _CallerUsage())


def limit_body(length: str, receive: Receive, limit: int) -> Receive:
    """Wrap `receive` so that it raises `RequestError` 413 once the body, or its declared `length`, exceeds `limit`."""
    if length.isdecimal() and int(length) > limit:
        raise _build_too_large_error(limit)
    total = 0

    async def receive_limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise _build_too_large_error(limit)
        return message

    return receive_limited


def check_client_request(client_request: ClientRequest, server: ServerSettings) -> None:
    """Raise `RequestError` when a request has too many choices or too long a prompt."""
    if not 1 <= client_request.choices <= server.choices:
        raise RequestError(f"n must be between 1 and {server.choices}, not {client_request.choices}.", param="n")
    size = count_prompt_characters(client_request.request)
    if size > server.prompt_characters:
        # Agents condense the conversation when they see this code.
        raise RequestError(
            f"the prompt has {size} characters, and this gateway accepts {server.prompt_characters}. Shorten the "
            "conversation, or raise `prompt_characters` in the [server] table.",
            code="context_length_exceeded",
        )


def count_prompt_characters(request: Request) -> int:
    """Count the characters of a request's messages, images excluded."""
    return sum(count_part_characters(part) for message in request.messages for part in message.parts)


def count_part_characters(part: Part) -> int:
    """Count the characters of one part; 0 for an image."""
    match part:
        case Text() | Reasoning():
            return len(part.text)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return len(part.content)
        case _:
            return 0


def _build_too_large_error(limit: int) -> RequestError:
    return RequestError(
        f"the body is larger than the {limit} bytes that this gateway accepts. Send less, or raise `body_bytes` in "
        "the [server] table.",
        status=413,
        code="request_too_large",
    )
