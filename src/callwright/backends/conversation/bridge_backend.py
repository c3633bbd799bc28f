"""The bridge: conversations served by web pages. Pages connect to the gateway, which passes their connections on.

The id of a conversation consists of the page's id and the page's own conversation id. A request waits for a page: up to
`connect_seconds` while none is connected, up to `first_token_seconds` while all are busy. A page that loses its
connection has `GRACE_SECONDS` to reconnect and continue; a page that closes it has not.
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
    """Serves turns through the pages that connect with this backend's token."""

    wire = "conversation"
    flavour = None

    def __init__(self, settings: BackendSettings) -> None:
        self.settings = settings
        self._errors = BackendErrors(settings)
        self._token = _hash_token(settings.key)
        self._pages = PageRegistry(self._build_page_lost_error)
        self._departure_timers: dict[BridgePage, asyncio.TimerHandle] = {}
        self._retired = asyncio.Event()

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    def accepts_token(self, token: str) -> bool:
        """Whether a page with this token may connect. Takes the same time for every token."""
        return hmac.compare_digest(_hash_token(token), self._token) and bool(self.settings.key)

    def connect_page(self, hello: HelloFrame, send: FrameSender) -> BridgeConnection:
        """Register the connection of a page, new or reconnecting."""
        link = self._pages.add_connection(hello, send)
        if timer := self._departure_timers.pop(link.page, None):
            timer.cancel()
        return link

    def disconnect_page(self, link: BridgeConnection, *, goodbye: bool) -> None:
        """Remove a connection. After a `goodbye` the page is removed at once, otherwise after the grace period."""
        if self._pages.remove_connection(link):
            seconds = 0.0 if goodbye else GRACE_SECONDS
            self._departure_timers[link.page] = asyncio.get_running_loop().call_later(
                seconds, self._remove_page, link.page
            )

    def retire(self) -> None:
        """Release all pages, so that they connect to the backend that replaces this one."""
        self._retired.set()

    async def wait_until_released(self, link: BridgeConnection) -> None:
        """Wait until this backend is retired and the page has finished its requests."""
        await self._retired.wait()
        while link.page.requests:
            await self._pages.wait_for_change()

    def _remove_page(self, page: BridgePage) -> None:
        self._departure_timers.pop(page, None)
        self._pages.remove_page(page)

    # ── a turn ───────────────────────────────────────────────────────────────────────────────────

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the answer of a new conversation that is not continued later."""
        return self.stream_conversation(request, ServiceConversation())

    async def stream_conversation(self, request: Request, conversation: ServiceConversation) -> EventStream:
        """Send the request to a page and stream its answer."""
        started_at = asyncio.get_running_loop().time()
        frame, owner = _build_frame(request, conversation)
        page = await self._wait_for_page(owner, started_at)
        conversation.has_received = True
        page_request = self._pages.start_request(page, frame)
        timeouts = ResponseTimeouts(self.settings, started_at, lambda: page_request.fail(self._build_page_lost_error()))
        try:
            while text := await page_request.read():
                timeouts.end_read()
                if not timeouts.has_started:
                    timeouts.mark_started()
                yield [TextDelta(text)]
                timeouts.begin_read()
            conversation.id = self._build_conversation_id(page, page_request) or conversation.id
            yield [Finish("stop")]
        except BackendError as failure:
            raise (
                self._errors.timed_out(timeouts.expired_timer)
                if timeouts.expired_timer
                else self._errors.reported(failure)
            ) from None
        finally:
            timeouts.close()
            self._pages.end_request(page, page_request)

    async def _wait_for_page(self, owner: str, started_at: float) -> BridgePage:
        """Wait for the page that is to answer, and return it."""
        while (page := self._pages.find_free_page(owner)) is None:
            has_pages = any(True for _ in self._pages)
            seconds = self.settings.first_token_seconds if has_pages else self.settings.connect_seconds
            try:
                async with asyncio.timeout_at(started_at + min(seconds, self.settings.total_seconds)):
                    await self._pages.wait_for_change()
            except TimeoutError:
                raise (
                    self._errors.timed_out("first_token_seconds") if has_pages else self._build_no_page_error()
                ) from None
        return page

    def _build_conversation_id(self, page: BridgePage, page_request: PageRequest) -> str:
        if isinstance(page_request.frame, CreateFrame):
            if not page_request.conversation:
                raise BackendError("the backend sent no id for its new conversation: the `opened` frame is missing")
            return f"{page.id}/{page_request.conversation}"
        return ""

    def _build_no_page_error(self) -> BackendError:
        message = f"{self._errors.subject} has no page connected to its bridge: open one, see docs/bridge.md"
        return BackendError(message, kind="unavailable", retryable=True)

    def _build_page_lost_error(self) -> BackendError:
        message = "the backend lost the page that was answering: it was closed or lost its connection"
        return BackendError(message, kind="unavailable", retryable=True)

    # ── other requests ───────────────────────────────────────────────────────────────────────────

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models that the connected pages name. Raises `BackendError` without a page."""
        if not self.is_available:
            raise self._build_no_page_error()
        names: Iterable[str] = dict.fromkeys(name for page in self._pages for name in page.models)
        return tuple(ModelInfo(name=name, tools=False) for name in names)

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Raise `BackendError`: pages only answer turns."""
        raise BackendError(f"{self._errors.subject} does not support {path}", kind="refused", status=501)

    @property
    def is_available(self) -> bool:
        """Whether a page is connected."""
        return any(True for _ in self._pages)

    async def close(self) -> None:
        """Release every page."""
        self.retire()
        for timer in self._departure_timers.values():
            timer.cancel()


def _build_frame(request: Request, conversation: ServiceConversation) -> tuple[CreateFrame | SendFrame, str]:
    """Build the frame of a request. Returns it with the id of the page that has the conversation."""
    prompt, system = flatten_request(request)
    owner, _, page_conversation = conversation.id.partition("/")
    request_id = f"req_{secrets.token_hex(8)}"
    if page_conversation:
        return SendFrame(request_id, page_conversation, prompt, request.model, system), owner
    return CreateFrame(request_id, prompt, request.model, system), owner


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
