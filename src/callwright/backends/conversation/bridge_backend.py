"""The bridge: conversations that web pages serve. They connect to the gateway, which hands their connections over here.

The id of a conversation is the page's name and the page's own id. A request waits for a page: for `connect_seconds`
while there is none, for `first_token_seconds` while all are busy. A page whose connection breaks has `GRACE_SECONDS` to
come back and go on; one that says goodbye does not.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Any

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.conversation.contract import ServiceConversation, StatefulBackend, flatten_request
from callwright.backends.conversation.frames import CreateFrame, HelloFrame, SendFrame
from callwright.backends.conversation.page_registry import (
    BridgeConnection,
    BridgePage,
    FrameSender,
    PageRegistry,
    PageRequest,
)
from callwright.backends.errors import BackendErrors
from callwright.backends.response_timeouts import ResponseTimeouts
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Finish, TextDelta
from callwright.model import Request

__all__ = ["GRACE_SECONDS", "BridgeBackend"]

GRACE_SECONDS = 5.0


class BridgeBackend(StatefulBackend):
    """The pages that connect with this backend's token."""

    wire = "conversation"
    flavour = None

    def __init__(self, settings: BackendSettings) -> None:
        self.settings = settings
        self._errors = BackendErrors(settings)
        self._token = _hash_token(settings.key)
        self._pages = PageRegistry(self._build_page_lost_error)
        self._departure_timers: dict[BridgePage, asyncio.TimerHandle] = {}
        self._retired = asyncio.Event()

    # ── for whoever has the connections ──────────────────────────────────────────────────────────

    def accepts_token(self, token: str) -> bool:
        """Whether a page with this token may join. Takes the same time for every token."""
        return hmac.compare_digest(_hash_token(token), self._token) and bool(self.settings.key)

    def connect_page(self, hello: HelloFrame, send: FrameSender) -> BridgeConnection:
        """A page connects, or is back."""
        link = self._pages.add_connection(hello, send)
        if timer := self._departure_timers.pop(link.page, None):
            timer.cancel()
        return link

    def disconnect_page(self, link: BridgeConnection, *, goodbye: bool) -> None:
        """A connection is over; after a goodbye the page does not come back."""
        if self._pages.remove_connection(link):
            seconds = 0.0 if goodbye else GRACE_SECONDS
            self._departure_timers[link.page] = asyncio.get_running_loop().call_later(
                seconds, self._remove_page, link.page
            )

    def retire(self) -> None:
        """Another backend takes this one's place: pages are to connect anew."""
        self._retired.set()

    async def wait_until_released(self, link: BridgeConnection) -> None:
        """Wait until a page is no longer needed here: this is retired, and the page has answered what it was asked."""
        await self._retired.wait()
        while link.page.requests:
            await self._pages.wait_for_change()

    def _remove_page(self, page: BridgePage) -> None:
        self._departure_timers.pop(page, None)
        self._pages.remove_page(page)

    # ── a turn ───────────────────────────────────────────────────────────────────────────────────

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Ask in a conversation that nobody will go on with."""
        return self.stream_conversation(request, ServiceConversation())

    async def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Have a page say it, and read what comes back."""
        begun = asyncio.get_running_loop().time()
        frame, owner = _build_frame(request, conversation)
        page = await self._wait_for_page(owner, begun)
        conversation.has_received = True
        serving = self._pages.start_request(page, frame)
        watch = ResponseTimeouts(self.settings, begun, lambda: serving.fail(self._build_page_lost_error()))
        try:
            while text := await serving.read():
                watch.end_read()
                if not watch.has_started:
                    watch.mark_started()
                yield [TextDelta(text)]
                watch.begin_read()
            conversation.id = self._build_conversation_id(page, serving) or conversation.id
            yield [Finish("stop")]
        except BackendError as failure:
            raise (
                self._errors.timed_out(watch.expired_timer) if watch.expired_timer else self._errors.reported(failure)
            ) from None
        finally:
            watch.close()
            self._pages.end_request(page, serving)

    async def _wait_for_page(self, owner: str, begun: float) -> BridgePage:
        """The page that is to answer, as soon as there is one."""
        nobody = self.settings.connect_seconds
        while (page := self._pages.find_free_page(owner)) is None:
            crowded = any(True for _ in self._pages)
            seconds = self.settings.first_token_seconds if crowded else nobody
            try:
                async with asyncio.timeout_at(begun + min(seconds, self.settings.total_seconds)):
                    await self._pages.wait_for_change()
            except TimeoutError:
                raise (
                    self._errors.timed_out("first_token_seconds") if crowded else self._build_no_page_error()
                ) from None
        return page

    def _build_conversation_id(self, page: BridgePage, serving: PageRequest) -> str:
        if isinstance(serving.frame, CreateFrame):
            if not serving.conversation:
                raise BackendError("the backend began a conversation without a name: no `opened` came from the page")
            return f"{page.id}/{serving.conversation}"
        return ""

    def _build_no_page_error(self) -> BackendError:
        message = f"{self._errors.subject} has no page connected to its bridge: open one, and see docs/bridge.md"
        return BackendError(message, kind="unavailable", retryable=True)

    def _build_page_lost_error(self) -> BackendError:
        message = "the backend lost the page that was answering: it was closed or its connection broke"
        return BackendError(message, kind="unavailable", retryable=True)

    # ── everything else ──────────────────────────────────────────────────────────────────────────

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The models that the pages name. Without a page there are none to ask."""
        if not self.is_available:
            raise self._build_no_page_error()
        names: Iterable[str] = dict.fromkeys(name for page in self._pages for name in page.models)
        return tuple(ModelInfo(name=name, tools=False) for name in names)

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Pages answer turns, and nothing else."""
        raise BackendError(f"{self._errors.subject} has no {path}", kind="refused", status=501)

    @property
    def is_available(self) -> bool:
        """Whether a page is connected."""
        return any(True for _ in self._pages)

    async def close(self) -> None:
        """Let every page go."""
        self.retire()
        for timer in self._departure_timers.values():
            timer.cancel()


def _build_frame(request: Request, conversation: ServiceConversation) -> tuple[CreateFrame | SendFrame, str]:
    """The frame that asks, and the page that has the conversation."""
    prompt, system = flatten_request(request)
    owner, _, own = conversation.id.partition("/")
    name = f"req_{secrets.token_hex(8)}"
    if own:
        return SendFrame(name, own, prompt, request.model, system), owner
    return CreateFrame(name, prompt, request.model, system), owner


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
