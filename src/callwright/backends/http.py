"""HTTP: a model behind a server that speaks one of our wires.

One pool of connections for the life of the backend. An answer is read as the server sends it: one read, one list of
events, nothing in between; a failure in the same read comes after them, at once. Not reading is what slows a server
down: at most 128 KiB wait per answer. Closing an answer closes its connection, which is how servers learn that nobody
listens any more. What fails before the first byte is tried again; after it, the error is passed on.
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
    """An answer on its way, over HTTP or not."""

    @property
    def is_complete(self) -> bool:
        """Nothing more is to be waited for."""
        ...

    def get_header(self, name: str) -> str:
        """One of its headers, by its name in small letters; empty when there is none."""
        ...

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        ...

    def close(self) -> None:
        """Nobody reads any more."""
        ...


StartedResponse = tuple[ResponseBody, bytes]
"""An answer whose first bytes came."""

MAX_ERROR_BYTES = 64 * 1024
ERROR_SECONDS = 5.0
"""How long a refusal's body may take; what came by then will do."""
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
LIST_SECONDS = 15.0
DRAIN_SECONDS = 0.05
"""How long a server may take to end its answer after its last event; then its connection is not used again."""

# Those whose kind says it. Servers of the other kinds that take a form name themselves in their lists.
_KIND_FLAVOURS: dict[BackendKind, ConstraintFlavour | None] = {
    "ollama": "ollama",
    "responses": None,
    "anthropic": None,
    "conversation": None,
    "harmony": None,
}


class HttpBackend:
    """A server at `settings.url` that is called on a wire. `random` gives numbers from 0 to 1."""

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
        given = codec.build_headers(settings.key) | settings.headers
        # Compression would hold a stream's events back on the server's side.
        self._headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "callwright"}
        self._headers |= {name.lower(): value for name, value in given.items()}
        self._url = settings.url
        try:
            encode_headers(self._headers)
        except ValueError as problem:
            raise PolicyError(f"the backend {settings.name!r} cannot be asked: {problem}") from None
        self._detected_flavour: ConstraintFlavour | None = None
        """What the server's list said of it."""
        self._connections = ConnectionPool(settings.connections, settings.connect_seconds)

    # ── a turn ─────────────────────────────────────────────────────────────────────────────────────

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Ask the model."""
        begun = asyncio.get_running_loop().time()
        response, data = await self._start_response(request, extra, begun)
        watch = ResponseTimeouts(self.settings, begun, response.close)
        reader = self._codec.create_reader()
        try:
            while True:
                events = reader.feed(data) if data else reader.close()
                if events:
                    if not watch.has_started:
                        watch.mark_started()
                        self._breaker.record_success()
                    yield events
                    reader.raise_pending_error()
                if not data or (events and type(events[-1]) is Finish):
                    break
                watch.begin_read()
                data = await response.read()
                watch.end_read()
            await _drain_response(response)
        except (BackendError, WireError, OSError) as error:
            raise self._record_failure(
                self._errors.timed_out(watch.expired_timer) if watch.expired_timer else self._convert_error(error)
            ) from None
        finally:
            watch.close()
            response.close()

    async def _start_response(self, request: Request, extra: dict[str, Any], started_at: float) -> StartedResponse:
        """Send the request until an answer begins, within the time that there is for it."""
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
        """Send the request once."""
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
        """Where a request goes, and its header lines: what the settings say comes before what the URL says."""
        try:
            address = RequestAddress.from_url(join_url(root or self._url, path))
        except ValueError:
            raise BackendError(f"{self._errors.subject} has a url that cannot be used", kind="unavailable") from None
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
        """What went wrong inside an answer that had begun."""
        match error:
            case BackendError():
                return self._errors.reported(error)
            case WireError():
                return self._errors.invalid_bytes(error)
            case _:
                return self._errors.connection_lost(error)

    def _record_failure(self, failure: BackendError) -> BackendError:
        """The same failure, after it was counted. A server that refuses a request, or quotes its model, works."""
        if failure.kind in ("auth", "rate_limit", "refused") or failure.salvage:
            self._breaker.record_success()
        else:
            self._breaker.record_failure()
        return failure

    # ── everything else ────────────────────────────────────────────────────────────────────────────

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The models of the server's list; those that llama.cpp has in memory with the window of a slot."""
        answer = await self.fetch_json(self._models_path)
        found = parse_model_list(answer)
        self._detected_flavour = next((info.server for info in found if info.server), self._detected_flavour)
        windows = {name: await self._fetch_slot_window(name) for name in parse_loaded_models(answer)}
        return tuple(
            msgspec.structs.replace(model, context=windows.get(model.name) or model.context) for model in found
        )

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """From the settings, the kind or the server's own list."""
        setting = self.settings.constrain
        if setting != "auto":
            return None if setting == "none" else setting
        return _KIND_FLAVOURS.get(self.settings.kind, self._detected_flavour)

    async def _fetch_slot_window(self, model: str) -> int:
        """0 where the server does not say, as a proxy that has the list only. It has this beside its `/v1`."""
        root = self._url.rstrip("/").removesuffix("/v1")
        # A server that routes among several models wants to know which: SillyTavern PR #4914.
        path = f"/props?{urlencode({'model': model})}"
        try:
            return parse_slot_window(await self.fetch_json(path, root=root))
        except BackendError:
            return 0

    async def fetch_json(self, path: str, body: bytes = b"", *, root: str = "") -> Any:
        """A small JSON document, from another root than the backend's address if need be."""
        answer = await self._fetch_response(path, body, LIST_SECONDS, root)
        if answer.status >= 400:
            raise self._errors.reported(
                self._codec.parse_error(answer.status, answer.body[:MAX_ERROR_BYTES]), answer.status
            )
        try:
            return msgspec.json.decode(answer.body)
        except JSON_DECODE_ERRORS:
            raise self._errors.invalid_bytes(WireError(f"{path} gave no JSON")) from None

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Pass on a request that is not about a turn."""
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
                late = f"{self._errors.subject} did not answer {path} within {seconds:g} seconds"
                raise BackendError(late, kind="timeout", retryable=True) from None
            raise self._errors.connection_lost(error) from None
        headers = {"content-type": response.get_header("content-type") or "application/json"}
        return ForwardedResponse(response.status, headers, bytes(content))

    @property
    def is_available(self) -> bool:
        """False while it is left alone after failures."""
        return not self._breaker.remaining_seconds

    async def close(self) -> None:
        """Give back every connection."""
        await self._connections.close()


async def _drain_response(response: ResponseBody) -> None:
    """Read to the end of an answer whose last event came, so that its connection can be used again."""
    if not response.is_complete:
        with suppress(OSError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await response.read():
                    pass


@lru_cache(256)
def join_url(url: str, path: str) -> str:
    """An address and a path after it; a `/v1` that both have counts once. A query of the address stays at the end."""
    parts = urlsplit(url)
    base = parts.path.rstrip("/")
    if base.endswith("/v1") and path.startswith("/v1/"):
        base = base.removesuffix("/v1")
    path, _, query = path.partition("?")
    return parts._replace(path=base + path, query="&".join(filter(None, (query, parts.query)))).geturl()
