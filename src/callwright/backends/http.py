"""A backend over HTTP, on any wire.

One connection pool lives as long as the backend. A response is read as the server sends it: each read becomes one batch
of events, and a failure in the same read follows the batch at once. At most 128 KiB wait per response, so a slow reader
slows the server down. Closing a response closes its connection, which stops the server's generation. Failures before
the first byte are retried; later ones are raised.
"""

from __future__ import annotations

import asyncio
import random as randomness
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.circuit_breaker import CircuitBreaker
from callwright.backends.connection_pool import ConnectionPool, RequestAddress, encode_headers
from callwright.backends.errors import BackendErrors, TimeoutSetting
from callwright.backends.http_response import HttpResponse
from callwright.backends.model_lists import parse_loaded_models, parse_model_list, parse_slot_window
from callwright.backends.response_timeouts import ResponseTimeouts
from callwright.backends.retry import RetryPolicy, parse_retry_after
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.backends.trace_context import TRACEPARENT
from callwright.errors import BackendError, PolicyError, WireError
from callwright.events import Finish
from callwright.model import Request
from callwright.wire.base import ClientCodec
from callwright.wire.constraint import ConstraintFlavour, build_constraint_fields
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["HttpBackend", "ResponseBody", "StartedResponse", "join_url"]


class ResponseBody(Protocol):
    """A response that is being received, over HTTP or not."""

    @property
    def is_complete(self) -> bool:
        """Whether everything was received."""
        ...

    def get_header(self, name: str) -> str:
        """Return a header by its lower-case name; empty when it is missing."""
        ...

    async def read(self) -> bytes:
        """Read the next bytes; empty at the end."""
        ...

    def close(self) -> None:
        """Stop reading and release the connection."""
        ...


StartedResponse = tuple[ResponseBody, bytes]
"""A response and its first bytes."""

MAX_ERROR_BYTES = 64 * 1024
ERROR_SECONDS = 5.0
"""Maximum time to read the body of an error. Whatever arrived by then is used."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
LIST_SECONDS = 15.0
DRAIN_SECONDS = 0.05
"""How long to wait for the end of a response after its last event. The connection is not reused after that."""

# Kinds that determine the format. For other kinds the server's list of models identifies the server.
_KIND_FLAVOURS: dict[BackendKind, ConstraintFlavour | None] = {
    "ollama": "ollama",
    "responses": None,
    "anthropic": None,
    "conversation": None,
    "harmony": None,
}


class HttpBackend:
    """A server at `settings.url` that uses the codec's wire. `random` returns numbers from 0 to 1."""

    def __init__(
        self,
        settings: BackendSettings,
        codec: ClientCodec,
        *,
        models_path: str = "/models",
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.settings = settings
        self.wire = codec.name
        self._codec = codec
        self._models_path = models_path
        self._errors = BackendErrors(settings)
        self._retry = RetryPolicy(settings.retries, settings.backoff_seconds, random)
        self._breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_seconds, clock)
        headers = codec.build_headers(settings.key) | settings.headers
        # A server that compresses would delay events.
        self._headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "callwright"}
        self._headers |= {name.lower(): value for name, value in headers.items()}
        self._url = settings.url
        try:
            encode_headers(self._headers)
        except ValueError as problem:
            raise PolicyError(f"the settings of the backend {settings.name!r} are invalid: {problem}") from None
        self._detected_flavour: ConstraintFlavour | None = None
        """The format that the server's list of models indicates."""
        self._connections = ConnectionPool(settings.connections, settings.connect_seconds)

    # ── a turn ─────────────────────────────────────────────────────────────────────────────────────

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the model's answer."""
        started_at = asyncio.get_running_loop().time()
        response, data = await self._start_response(request, extra, started_at)
        timeouts = ResponseTimeouts(self.settings, started_at, response.close)
        reader = self._codec.create_reader()
        try:
            while True:
                events = reader.feed(data) if data else reader.close()
                if events:
                    if not timeouts.has_started:
                        timeouts.mark_started()
                        self._breaker.record_success()
                    yield events
                    reader.raise_pending_error()
                if not data or (events and type(events[-1]) is Finish):
                    break
                timeouts.begin_read()
                data = await response.read()
                timeouts.end_read()
            await _drain_response(response)
        except (BackendError, WireError, OSError) as error:
            raise self._record_failure(
                self._errors.timed_out(timeouts.expired_timer) if timeouts.expired_timer else self._convert_error(error)
            ) from None
        finally:
            timeouts.close()
            response.close()

    async def _start_response(self, request: Request, extra: dict[str, Any], started_at: float) -> StartedResponse:
        """Send the request until a response begins, within the time limit."""
        if not self._breaker.allow_request():
            raise self._errors.circuit_open(self._breaker.remaining_seconds)
        timers: tuple[TimeoutSetting, ...] = ("first_token_seconds", "total_seconds")
        seconds, timer = min((getattr(self.settings, timer), timer) for timer in timers)
        try:
            async with asyncio.timeout_at(started_at + seconds):
                return await self._send_with_retries(request, extra)
        except TimeoutError:
            raise self._record_failure(self._errors.timed_out(timer)) from None

    async def _send_with_retries(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        attempt = 0
        while True:
            try:
                return await self.send_request(request, extra)
            except BackendError as failure:
                self._record_failure(failure)
                wait = self._retry.compute_delay(attempt, failure)
                if wait is None or not self.is_available:
                    raise
            attempt += 1
            await asyncio.sleep(wait)

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send the request once, and read the first bytes of the response."""
        address, head = self._build_request_head(self._codec.get_path(request))
        if trace := TRACEPARENT.get():
            head = b"%btraceparent: %b\r\n" % (head, trace.encode())
        if self.flavour is not None:
            extra = extra | build_constraint_fields(self.flavour, request.constraint)
        body = self._codec.encode_request(request, extra)
        try:
            response = await self._connections.send_request(b"POST", address, head, body)
            data = b""
            try:
                if response.status >= 300:
                    raise await self._read_refusal(response)
                data = await response.read()
            finally:
                if not data:
                    response.close()
        except OSError as error:
            raise self._errors.connection_lost(error) from None
        return response, data

    def _build_request_head(self, path: str, root: str = "") -> tuple[RequestAddress, bytes]:
        """Build the address and the header lines of a request. Headers of the settings override those of the URL."""
        try:
            address = RequestAddress.from_url(join_url(root or self._url, path))
        except ValueError:
            raise BackendError(f"{self._errors.subject} has an invalid url", kind="unavailable") from None
        return address, encode_headers({**address.headers, **self._headers})

    async def _read_refusal(self, response: HttpResponse) -> BackendError:
        if response.status < 400:
            return self._errors.unexpected_redirect(response.status, response.get_header("location"))
        body = bytearray()
        with suppress(OSError):
            async with asyncio.timeout(ERROR_SECONDS):
                while len(body) < MAX_ERROR_BYTES and (data := await response.read()):
                    body += data
        failure = self._codec.parse_error(response.status, bytes(body[:MAX_ERROR_BYTES]))
        return self._errors.reported(
            failure, response.status, parse_retry_after(response.get_header, datetime.now(UTC))
        )

    def _convert_error(self, error: BackendError | WireError | OSError) -> BackendError:
        """Convert an error in the middle of a response."""
        match error:
            case BackendError():
                return self._errors.reported(error)
            case WireError():
                return self._errors.invalid_bytes(error)
            case _:
                return self._errors.connection_lost(error)

    def _record_failure(self, failure: BackendError) -> BackendError:
        """Count a failure and return it. A server that refuses a request, or quotes its model's text, is working."""
        if failure.kind in ("auth", "rate_limit", "refused") or failure.salvage:
            self._breaker.record_success()
        else:
            self._breaker.record_failure()
        return failure

    # ── other requests ─────────────────────────────────────────────────────────────────────────────

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models of the server. Models loaded by llama.cpp have the context window of one slot."""
        answer = await self.fetch_json(self._models_path)
        found = parse_model_list(answer)
        self._detected_flavour = next((info.server for info in found if info.server), self._detected_flavour)
        windows = {name: await self._fetch_slot_window(name) for name in parse_loaded_models(answer)}
        return tuple(
            msgspec.structs.replace(model, context=windows.get(model.name) or model.context) for model in found
        )

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """The format set in the settings, implied by the kind, or detected from the list of models."""
        setting = self.settings.constrain
        if setting != "auto":
            return None if setting == "none" else setting
        return _KIND_FLAVOURS.get(self.settings.kind, self._detected_flavour)

    async def _fetch_slot_window(self, model: str) -> int:
        """Fetch the window of one slot; 0 when the server does not report it. The endpoint lies beside `/v1`."""
        root = self._url.rstrip("/").removesuffix("/v1")
        # A server that routes among several models needs the model's name: SillyTavern PR #4914.
        path = f"/props?{urlencode({'model': model})}"
        try:
            return parse_slot_window(await self.fetch_json(path, root=root))
        except BackendError:
            return 0

    async def fetch_json(self, path: str, body: bytes = b"", *, root: str = "") -> Any:
        """Fetch a small JSON document, from `root` instead of the backend's URL when given."""
        answer = await self._fetch_response(path, body, LIST_SECONDS, root)
        if answer.status >= 400:
            raise self._errors.reported(
                self._codec.parse_error(answer.status, answer.body[:MAX_ERROR_BYTES]), answer.status
            )
        try:
            return msgspec.json.decode(answer.body)
        except JSON_DECODE_ERRORS:
            raise self._errors.invalid_bytes(WireError(f"{path} did not return JSON")) from None

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Forward a request that is no turn."""
        return await self._fetch_response(path, body, self.settings.first_token_seconds)

    async def _fetch_response(self, path: str, body: bytes, seconds: float, root: str = "") -> ForwardedResponse:
        address, head = self._build_request_head(path, root)
        content = bytearray()
        try:
            async with asyncio.timeout(seconds):
                response = await self._connections.send_request(b"POST" if body else b"GET", address, head, body)
                with closing(response):
                    while data := await response.read():
                        content += data
                        if len(content) > MAX_RESPONSE_BYTES:
                            raise BackendError(
                                f"{self._errors.subject} sent more than {MAX_RESPONSE_BYTES} bytes for {path}"
                            )
        except OSError as error:
            if type(error) is TimeoutError:
                message = f"{self._errors.subject} did not respond to {path} within {seconds:g} seconds"
                raise BackendError(message, kind="timeout", retryable=True) from None
            raise self._errors.connection_lost(error) from None
        headers = {"content-type": response.get_header("content-type") or "application/json"}
        return ForwardedResponse(response.status, headers, bytes(content))

    @property
    def is_available(self) -> bool:
        """False while the circuit breaker is open after failures."""
        return not self._breaker.remaining_seconds

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()


async def _drain_response(response: ResponseBody) -> None:
    """Read a response to its end after the last event, so that its connection can be reused."""
    if not response.is_complete:
        with suppress(OSError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await response.read():
                    pass


@lru_cache(256)
def join_url(url: str, path: str) -> str:
    """Append a path to a URL. A `/v1` in both counts once; the URL's query stays at the end."""
    parts = urlsplit(url)
    base = parts.path.rstrip("/")
    if base.endswith("/v1") and path.startswith("/v1/"):
        base = base.removesuffix("/v1")
    path, _, query = path.partition("?")
    return parts._replace(path=base + path, query="&".join(filter(None, (query, parts.query)))).geturl()
