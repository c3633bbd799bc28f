"""How much one caller, and all of them together, may ask for: turns at once, requests and tokens a minute, sizes.

A rate holds in every minute, not in every minute of the clock. Tokens are only known afterwards, so one turn may use
more than is left; the next waits until that is a minute ago. What is refused is told when to come back. Memory is one
entry for each turn of the last minute; nothing here waits.
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
"""When to come back after too many turns at once: one of them may end at any moment."""


class RateLimitError(RequestError):
    """A limit was reached; `retry_after` is when to come back."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, status=429, code="rate_limit_exceeded")
        self.retry_after = retry_after


class _SlidingWindow:
    """What was used in the last minute, and when."""

    def __init__(self) -> None:
        self._used: deque[tuple[float, int]] = deque()
        self._sum = 0

    def add(self, now: float, amount: int) -> None:
        self._used.append((now, amount))
        self._sum += amount

    def compute_wait(self, now: float, limit: int) -> float:
        """Seconds until less than the limit was used in the minute before."""
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
    """The counters. Settings are handed in with each request, so a reload holds at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: dict[str, _CallerUsage] = {}
        self._streams = 0

    @contextmanager
    def admit_turn(self, server: ServerSettings, key: KeySettings | None) -> Iterator[None]:
        """Around one turn. `TooManyError` before it begins, if there is no room for it."""
        if self._streams >= server.streams:
            raise RateLimitError(
                f"the gateway is busy: {server.streams} turns are running, as many as `streams` in its [server] table "
                "allows. Try again in a moment.",
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
        """A turn of this key used that many tokens."""
        if key and key.tokens_per_minute:
            self._get_caller(key).tokens.add(self._clock(), tokens)

    def _admit_caller(self, key: KeySettings) -> _CallerUsage:
        caller, now = self._get_caller(key), self._clock()
        if key.streams and caller.streams >= key.streams:
            raise RateLimitError(
                f"the key {key.name!r} has {key.streams} turns running, its limit. Wait until one of them ends.",
                _BUSY_SECONDS,
            )
        for what, window, limit in (
            ("requests", caller.requests, key.requests_per_minute),
            ("tokens", caller.tokens, key.tokens_per_minute),
        ):
            if limit and (seconds := window.compute_wait(now, limit)):
                raise RateLimitError(
                    f"the key {key.name!r} has used its {limit} {what} a minute. Try again in {seconds:.0f} seconds.",
                    seconds,
                )
        if key.requests_per_minute:
            caller.requests.add(now, 1)
        return caller

    def _get_caller(self, key: KeySettings) -> _CallerUsage:
        return self._callers.setdefault(key.name, _CallerUsage())


def limit_body(length: str, receive: Receive, limit: int) -> Receive:
    """A `receive` that raises `RequestError` 413 as soon as a body is, or says that its `length` is, over `limit`."""
    if length.isdecimal() and int(length) > limit:
        raise _build_too_large_error(limit)
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise _build_too_large_error(limit)
        return message

    return counted


def check_client_request(client_request: ClientRequest, server: ServerSettings) -> None:
    """Raise `RequestError` when a request asks for too many choices or has too long a prompt."""
    if not 1 <= client_request.choices <= server.choices:
        raise RequestError(f"n must be from 1 to {server.choices}, not {client_request.choices}.", param="n")
    size = count_prompt_characters(client_request.request)
    if size > server.prompt_characters:
        # The code by which agents know that they must condense the conversation.
        raise RequestError(
            f"the prompt has {size} characters; this gateway takes {server.prompt_characters}. Shorten the "
            "conversation, or raise `prompt_characters` in the [server] table.",
            code="context_length_exceeded",
        )


def count_prompt_characters(request: Request) -> int:
    """How long the messages of a request are, pictures aside."""
    return sum(count_part_characters(part) for message in request.messages for part in message.parts)


def count_part_characters(part: Part) -> int:
    """The characters of one part; a picture has none."""
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
        f"it is larger than the {limit} bytes that this gateway takes. Send less, or raise `body_bytes` in "
        "the [server] table.",
        status=413,
        code="request_too_large",
    )
