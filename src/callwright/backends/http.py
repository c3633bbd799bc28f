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

from callwright.backends.base import Answer, Forwarded, ModelInfo
from callwright.backends.breaker import Breaker
from callwright.backends.connections import Address, Connections, head_lines
from callwright.backends.faults import Faults, Timer
from callwright.backends.incoming import Incoming
from callwright.backends.models import listed, loaded_by_llama, slot_window
from callwright.backends.retry import Retry, retry_after
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.backends.trace import TRACEPARENT
from callwright.backends.watch import Watch
from callwright.errors import BackendError, PolicyError, WireError
from callwright.events import Finish
from callwright.model import Request
from callwright.wire.base import ClientCodec
from callwright.wire.constraint import ConstraintFlavour, build_constraint_fields
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["Begun", "Coming", "HttpBackend", "joined"]


class Coming(Protocol):
    """An answer on its way, over HTTP or not."""

    @property
    def over(self) -> bool:
        """Nothing more is to be waited for."""
        ...

    def header(self, name: str) -> str:
        """One of its headers, by its name in small letters; empty when there is none."""
        ...

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        ...

    def close(self) -> None:
        """Nobody reads any more."""
        ...


Begun = tuple[Coming, bytes]
"""An answer whose first bytes came."""

ERROR_BYTES = 64 * 1024
ERROR_SECONDS = 5.0
"""How long a refusal's body may take; what came by then will do."""
WHOLE_BYTES = 64 * 1024 * 1024
LIST_SECONDS = 15.0
FAREWELL_SECONDS = 0.05
"""How long a server may take to end its answer after its last event; then its connection is not used again."""

# Those whose kind says it. Servers of the other kinds that take a form name themselves in their lists.
_FLAVOURS: dict[BackendKind, ConstraintFlavour | None] = {
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
        called: ClientCodec,
        *,
        models_path: str = "/models",
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.settings = settings
        self.wire = called.name
        self._called = called
        self._models_path = models_path
        self._faults = Faults(settings)
        self._retry = Retry(settings.retries, settings.backoff_seconds, random)
        self._breaker = Breaker(settings.breaker_failures, settings.breaker_seconds, clock)
        given = called.build_headers(settings.key) | settings.headers
        # Compression would hold a stream's events back on the server's side.
        self._headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "callwright"}
        self._headers |= {name.lower(): value for name, value in given.items()}
        self._url = settings.url
        try:
            head_lines(self._headers)
        except ValueError as problem:
            raise PolicyError(f"the backend {settings.name!r} cannot be asked: {problem}") from None
        self._told: ConstraintFlavour | None = None
        """What the server's list said of it."""
        self._connections = Connections(settings.connections, settings.connect_seconds)

    # ── a turn ─────────────────────────────────────────────────────────────────────────────────────

    async def answer(self, request: Request, extra: dict[str, Any]) -> Answer:
        """Ask the model."""
        begun = asyncio.get_running_loop().time()
        response, data = await self._ask(request, extra, begun)
        watch = Watch(self.settings, begun, response.close)
        reader = self._called.create_reader()
        try:
            while True:
                events = reader.feed(data) if data else reader.close()
                if events:
                    if not watch.started:
                        watch.start()
                        self._breaker.succeeded()
                    yield events
                    reader.raise_pending_error()
                if not data or (events and type(events[-1]) is Finish):
                    break
                watch.waits()
                data = await response.read()
                watch.reads()
            await _farewell(response)
        except (BackendError, WireError, OSError) as error:
            raise self._noted(self._faults.late(watch.late) if watch.late else self._failure(error)) from None
        finally:
            watch.close()
            response.close()

    async def _ask(self, request: Request, extra: dict[str, Any], begun: float) -> Begun:
        """Send the request until an answer begins, within the time that there is for it."""
        if not self._breaker.admit():
            raise self._faults.resting(self._breaker.rest)
        timers: tuple[Timer, ...] = ("first_token_seconds", "total_seconds")
        seconds, timer = min((getattr(self.settings, timer), timer) for timer in timers)
        try:
            async with asyncio.timeout_at(begun + seconds):
                return await self._tried(request, extra)
        except TimeoutError:
            raise self._noted(self._faults.late(timer)) from None

    async def _tried(self, request: Request, extra: dict[str, Any]) -> Begun:
        attempt = 0
        while True:
            try:
                return await self.send(request, extra)
            except BackendError as failure:
                self._noted(failure)
                wait = self._retry.wait(attempt, failure)
                if wait is None or not self.available:
                    raise
            attempt += 1
            await asyncio.sleep(wait)

    async def send(self, request: Request, extra: dict[str, Any]) -> Begun:
        """Send the request once."""
        address, head = self._place(self._called.get_path(request))
        if trace := TRACEPARENT.get():
            head = b"%btraceparent: %b\r\n" % (head, trace.encode())
        if self.flavour is not None:
            extra = extra | build_constraint_fields(self.flavour, request.constraint)
        body = self._called.encode_request(request, extra)
        try:
            response = await self._connections.ask(b"POST", address, head, body)
            data = b""
            try:
                if response.status >= 300:
                    raise await self._refusal(response)
                data = await response.read()
            finally:
                if not data:
                    response.close()
        except OSError as error:
            raise self._faults.broken(error) from None
        return response, data

    def _place(self, path: str, root: str = "") -> tuple[Address, bytes]:
        """Where a request goes, and its header lines: what the settings say comes before what the URL says."""
        try:
            address = Address.of(joined(root or self._url, path))
        except ValueError:
            raise BackendError(f"{self._faults.who} has a url that cannot be used", kind="unavailable") from None
        return address, head_lines({**address.headers, **self._headers})

    async def _refusal(self, response: Incoming) -> BackendError:
        if response.status < 400:
            return self._faults.redirected(response.status, response.header("location"))
        body = bytearray()
        with suppress(OSError):
            async with asyncio.timeout(ERROR_SECONDS):
                while len(body) < ERROR_BYTES and (data := await response.read()):
                    body += data
        failure = self._called.parse_error(response.status, bytes(body[:ERROR_BYTES]))
        return self._faults.said(failure, response.status, retry_after(response.header, datetime.now(UTC)))

    def _failure(self, error: BackendError | WireError | OSError) -> BackendError:
        """What went wrong inside an answer that had begun."""
        match error:
            case BackendError():
                return self._faults.said(error)
            case WireError():
                return self._faults.garbled(error)
            case _:
                return self._faults.broken(error)

    def _noted(self, failure: BackendError) -> BackendError:
        """The same failure, after it was counted. A server that refuses a request, or quotes its model, works."""
        if failure.kind in ("auth", "rate_limit", "refused") or failure.salvage:
            self._breaker.succeeded()
        else:
            self._breaker.failed()
        return failure

    # ── everything else ────────────────────────────────────────────────────────────────────────────

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models of the server's list; those that llama.cpp has in memory with the window of a slot."""
        answer = await self.fetch(self._models_path)
        found = listed(answer)
        self._told = next((info.server for info in found if info.server), self._told)
        windows = {name: await self._slot_window(name) for name in loaded_by_llama(answer)}
        return tuple(
            msgspec.structs.replace(model, context=windows.get(model.name) or model.context) for model in found
        )

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """From the settings, the kind or the server's own list."""
        setting = self.settings.constrain
        if setting != "auto":
            return None if setting == "none" else setting
        return _FLAVOURS.get(self.settings.kind, self._told)

    async def _slot_window(self, model: str) -> int:
        """0 where the server does not say, as a proxy that has the list only. It has this beside its `/v1`."""
        root = self._url.rstrip("/").removesuffix("/v1")
        # A server that routes among several models wants to know which: SillyTavern PR #4914.
        path = f"/props?{urlencode({'model': model})}"
        try:
            return slot_window(await self.fetch(path, root=root))
        except BackendError:
            return 0

    async def fetch(self, path: str, body: bytes = b"", *, root: str = "") -> Any:
        """A small JSON document, from another root than the backend's address if need be."""
        answer = await self._exchange(path, body, LIST_SECONDS, root)
        if answer.status >= 400:
            raise self._faults.said(self._called.parse_error(answer.status, answer.body[:ERROR_BYTES]), answer.status)
        try:
            return msgspec.json.decode(answer.body)
        except JSON_DECODE_ERRORS:
            raise self._faults.garbled(WireError(f"{path} gave no JSON")) from None

    async def forward(self, path: str, body: bytes) -> Forwarded:
        """Pass on a request that is not about a turn."""
        return await self._exchange(path, body, self.settings.first_token_seconds)

    async def _exchange(self, path: str, body: bytes, seconds: float, root: str = "") -> Forwarded:
        address, head = self._place(path, root)
        content = bytearray()
        try:
            async with asyncio.timeout(seconds):
                response = await self._connections.ask(b"POST" if body else b"GET", address, head, body)
                with closing(response):
                    while data := await response.read():
                        content += data
                        if len(content) > WHOLE_BYTES:
                            raise BackendError(f"{self._faults.who} sent more than {WHOLE_BYTES} bytes for {path}")
        except OSError as error:
            if type(error) is TimeoutError:
                late = f"{self._faults.who} did not answer {path} within {seconds:g} seconds"
                raise BackendError(late, kind="timeout", retryable=True) from None
            raise self._faults.broken(error) from None
        headers = {"content-type": response.header("content-type") or "application/json"}
        return Forwarded(response.status, headers, bytes(content))

    @property
    def available(self) -> bool:
        """False while it is left alone after failures."""
        return not self._breaker.rest

    async def close(self) -> None:
        """Give back every connection."""
        await self._connections.close()


async def _farewell(response: Coming) -> None:
    """Read to the end of an answer whose last event came, so that its connection can be used again."""
    if not response.over:
        with suppress(OSError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                while await response.read():
                    pass


@lru_cache(256)
def joined(url: str, path: str) -> str:
    """An address and a path after it; a `/v1` that both have counts once. A query of the address stays at the end."""
    parts = urlsplit(url)
    base = parts.path.rstrip("/")
    if base.endswith("/v1") and path.startswith("/v1/"):
        base = base.removesuffix("/v1")
    path, _, query = path.partition("?")
    return parts._replace(path=base + path, query="&".join(filter(None, (query, parts.query)))).geturl()
