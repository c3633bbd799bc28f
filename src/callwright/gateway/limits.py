"""How much one caller, and all of them together, may ask for: turns at once, requests and tokens a minute, sizes.

Rates are buckets that refill evenly: a minute's worth may come at once, then one by one. Tokens are only known
afterwards, so a turn may overdraw its bucket; the next waits until it is paid back. What is refused is told when to
come back. State is one small object per key; nothing here waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from callwright.errors import RequestError
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.model import Part, Reasoning, Request, Text, ToolCall, ToolResult
from callwright.wire.base import Ask

__all__ = ["Limits", "TooManyError", "check_ask", "limited", "prompt_characters"]

_BUSY_SECONDS = 1.0
"""When to come back after too many turns at once: one of them may end at any moment."""


class TooManyError(RequestError):
    """A limit was reached; `retry_after` is when to come back."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, status=429, code="rate_limit_exceeded")
        self.retry_after = retry_after


class _Bucket:
    """What is left of a rate; it may be overdrawn."""

    def __init__(self, per_minute: int, now: float) -> None:
        self.per_minute = per_minute
        self._level = float(per_minute)
        self._at = now

    def wait(self, now: float, need: float) -> float:
        """Seconds until there is that much in it."""
        self._level = min(self.per_minute, self._level + (now - self._at) * self.per_minute / 60)
        self._at = now
        return max(0.0, (need - self._level) * 60 / self.per_minute)

    def take(self, amount: float) -> None:
        self._level -= amount


class _Caller:
    """What one key has used."""

    def __init__(self) -> None:
        self.streams = 0
        self._buckets: dict[str, _Bucket] = {}

    def bucket(self, what: str, per_minute: int, now: float) -> _Bucket:
        """A reload that changes a rate starts a new bucket."""
        found = self._buckets.get(what)
        if found is None or found.per_minute != per_minute:
            found = self._buckets[what] = _Bucket(per_minute, now)
        return found


class Limits:
    """The counters. Settings are handed in with each request, so a reload holds at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: dict[str, _Caller] = {}
        self._streams = 0

    @contextmanager
    def turn(self, server: ServerSettings, key: KeySettings | None) -> Iterator[None]:
        """Around one turn. `TooManyError` before it begins, if there is no room for it."""
        if self._streams >= server.streams:
            raise TooManyError(
                f"The gateway is busy: {server.streams} turns are running, as many as `streams` in its [server] table "
                "allows. Try again in a moment.",
                _BUSY_SECONDS,
            )
        caller = self._admit(key) if key else _Caller()
        self._streams += 1
        caller.streams += 1
        try:
            yield
        finally:
            self._streams -= 1
            caller.streams -= 1

    def spend(self, key: KeySettings | None, tokens: int) -> None:
        """A turn of this key used that many tokens."""
        if key and key.tokens_per_minute:
            now = self._clock()
            bucket = self._caller(key).bucket("tokens", key.tokens_per_minute, now)
            bucket.wait(now, 0)
            bucket.take(tokens)

    def _admit(self, key: KeySettings) -> _Caller:
        caller, now = self._caller(key), self._clock()
        if key.streams and caller.streams >= key.streams:
            raise TooManyError(
                f"The key {key.name!r} has {key.streams} turns running, its limit. Wait until one of them ends.",
                _BUSY_SECONDS,
            )
        rates = [("requests", key.requests_per_minute), ("tokens", key.tokens_per_minute)]
        buckets = [(what, caller.bucket(what, rate, now)) for what, rate in rates if rate]
        for what, bucket in buckets:
            if seconds := bucket.wait(now, 1):
                raise TooManyError(
                    f"The key {key.name!r} has used its {bucket.per_minute} {what} a minute. Try again in "
                    f"{seconds:.0f} seconds.",
                    seconds,
                )
        for what, bucket in buckets:
            if what == "requests":
                bucket.take(1)
        return caller

    def _caller(self, key: KeySettings) -> _Caller:
        return self._callers.setdefault(key.name, _Caller())


def limited(scope: Scope, receive: Receive, limit: int) -> Receive:
    """A `receive` that raises `RequestError` 413 as soon as a body is, or says that it is, larger than `limit`."""
    length = Headers(scope=scope).get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise _too_large(limit)
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise _too_large(limit)
        return message

    return counted


def check_ask(ask: Ask, server: ServerSettings) -> None:
    """Raise `RequestError` when a request asks for too many choices or has too long a prompt."""
    if not 1 <= ask.choices <= server.choices:
        raise RequestError(f"n must be from 1 to {server.choices}, not {ask.choices}.", param="n")
    size = prompt_characters(ask.request)
    if size > server.prompt_characters:
        # The code by which agents know that they must condense the conversation.
        raise RequestError(
            f"the prompt has {size} characters; this gateway takes {server.prompt_characters}. Shorten the "
            "conversation, or raise `prompt_characters` in the [server] table.",
            code="context_length_exceeded",
        )


def prompt_characters(request: Request) -> int:
    """How long the messages of a request are, pictures aside."""
    return sum(_length(part) for message in request.messages for part in message.parts)


def _length(part: Part) -> int:
    match part:
        case Text() | Reasoning():
            return len(part.text)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return len(part.content)
        case _:
            return 0


def _too_large(limit: int) -> RequestError:
    return RequestError(
        f"The request is larger than the {limit} bytes that this gateway takes. Send less, or raise `body_bytes` in "
        "the [server] table.",
        status=413,
        code="request_too_large",
    )
