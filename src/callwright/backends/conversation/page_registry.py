"""The pages of a bridge: what each is answering, and which one gets the next request. No sockets, no clock.

A page is one script in one tab, across all its connections. After a lost connection the page keeps its requests for a
while. When it reconnects under the same id, both sides compare what arrived and continue. The page that created a
conversation continues it; if it is gone, any other page may try, since the service behind the pages may know it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from callwright.backends.conversation.contract import CONVERSATION_LOST
from callwright.backends.conversation.frames import (
    BridgeCloseCode,
    CreateFrame,
    DoneFrame,
    ErrorFrame,
    GatewayFrame,
    HelloFrame,
    OpenedFrame,
    PingFrame,
    SendFrame,
    StopFrame,
    TextFrame,
    WelcomeFrame,
)
from callwright.errors import BackendError

__all__ = ["BridgeConnection", "BridgePage", "PageRegistry", "PageRequest"]

_MAX_PENDING_CHARACTERS = 4_000_000
"""Maximum characters of one answer that wait to be read. Answers share a connection, so none can be slowed."""

FrameSender = Callable[[GatewayFrame | BridgeCloseCode], None]
"""Sends a frame to a page, or closes the connection, without waiting."""

AnswerFrame = OpenedFrame | TextFrame | DoneFrame | ErrorFrame


class PageRequest:
    """One request that a page is answering."""

    def __init__(self, frame: CreateFrame | SendFrame) -> None:
        self.frame = frame
        self.frame_count = 0
        """Number of frames received."""
        self.conversation = ""
        """Id of the created conversation."""
        self.is_complete = False
        """Whether the page has sent its last frame."""
        self._chunks: deque[str] = deque()
        self._pending_characters = 0
        self._failure: BackendError | None = None
        self._wake = asyncio.Event()

    def receive_frame(self, frame: AnswerFrame) -> None:
        """Process the page's next frame. Frames that arrived before a lost connection may be repeated."""
        if frame.n < self.frame_count or self.is_complete or self._failure:
            return
        if frame.n > self.frame_count:
            self.fail(BackendError(f"a page skipped frame {self.frame_count} of its answer"))
            return
        self.frame_count += 1
        match frame:
            case OpenedFrame():
                self.conversation = frame.conversation
            case TextFrame():
                if frame.text:
                    self._chunks.append(frame.text)
                self._pending_characters += len(frame.text)
                if self._pending_characters > _MAX_PENDING_CHARACTERS:
                    self.fail(
                        BackendError(f"a page sent {_MAX_PENDING_CHARACTERS} characters faster than they were read")
                    )
            case DoneFrame():
                self.is_complete = True
            case ErrorFrame():
                self.is_complete = True
                unknown = frame.code == "unknown_conversation"
                self.fail(BackendError(frame.message, kind="refused", code=CONVERSATION_LOST if unknown else ""))
        self._wake.set()

    def fail(self, failure: BackendError) -> None:
        """Raise this to the reader, after the text that arrived before it."""
        self._failure = self._failure or failure
        self._wake.set()

    async def read(self) -> str:
        """Read all text since the last read; empty at the end. Raises the failure of the answer."""
        while not self._chunks:
            if self._failure is not None:
                raise self._failure
            if self.is_complete:
                return ""
            self._wake.clear()
            await self._wake.wait()
        text = "".join(self._chunks)
        self._chunks.clear()
        self._pending_characters = 0
        return text


class BridgeConnection:
    """One connection of a page."""

    def __init__(self, page: BridgePage, send: FrameSender) -> None:
        self.page = page
        self.send = send

    def receive_frame(self, frame: AnswerFrame) -> None:
        """Process a frame. Frames of requests that are over are ignored."""
        if page_request := self.page.requests.get(frame.id):
            page_request.receive_frame(frame)

    def send_ping(self) -> None:
        """Send a ping."""
        self.send(PingFrame())


class BridgePage:
    """One page, connected or expected to reconnect."""

    def __init__(self, hello: HelloFrame) -> None:
        self.id = hello.page
        self.slots = hello.slots
        self.models = hello.models
        self.requests: dict[str, PageRequest] = {}
        self.connection: BridgeConnection | None = None

    def send_frame(self, frame: GatewayFrame | BridgeCloseCode) -> None:
        """Send a frame if connected. Otherwise it is not needed, or is sent after a reconnect."""
        if self.connection is not None:
            self.connection.send(frame)

    def has_free_slot(self) -> bool:
        """Whether it can take a request now."""
        return self.connection is not None and len(self.requests) < self.slots


class PageRegistry:
    """All pages of one bridge. `build_lost_error` builds the error for requests of a page that is gone."""

    def __init__(self, build_lost_error: Callable[[], BackendError]) -> None:
        self._pages: dict[str, BridgePage] = {}
        self._build_lost_error = build_lost_error
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[BridgePage]:
        """Iterate over the connected pages."""
        return iter([page for page in self._pages.values() if page.connection is not None])

    def add_connection(self, hello: HelloFrame, send: FrameSender) -> BridgeConnection:
        """Add a connection of a new or reconnecting page. A previous connection of that page is closed."""
        page = self._pages.setdefault(hello.page, BridgePage(hello))
        page.slots, page.models = hello.slots, hello.models
        page.send_frame(BridgeCloseCode.REPLACED)
        page.connection = BridgeConnection(page, send)
        send(WelcomeFrame({request_id: page_request.frame_count for request_id, page_request in page.requests.items()}))
        for page_request in page.requests.values():
            if not page_request.frame_count:  # it may have been lost; a page that has it ignores the repetition
                send(page_request.frame)
        self._notify_change()
        return page.connection

    def remove_connection(self, link: BridgeConnection) -> bool:
        """Remove a connection. Returns whether the page has none left."""
        if link.page.connection is not link:
            return False
        link.page.connection = None
        self._notify_change()
        return True

    def remove_page(self, page: BridgePage) -> None:
        """Remove a page that does not reconnect. Its requests fail."""
        if page.connection is None and self._pages.get(page.id) is page:
            del self._pages[page.id]
            for page_request in page.requests.values():
                page_request.fail(self._build_lost_error())

    def start_request(self, page: BridgePage, frame: CreateFrame | SendFrame) -> PageRequest:
        """Start a request on a page."""
        page_request = page.requests[frame.id] = PageRequest(frame)
        page.send_frame(frame)
        return page_request

    def end_request(self, page: BridgePage, page_request: PageRequest) -> None:
        """End a request, and tell the page to stop if it has not finished."""
        if page.requests.pop(page_request.frame.id, None) and not page_request.is_complete:
            page.send_frame(StopFrame(page_request.frame.id))
        self._notify_change()

    def find_free_page(self, owner: str) -> BridgePage | None:
        """Find the page for the next request: the owner of the conversation if connected, else the least busy page."""
        if (page := self._pages.get(owner)) and page.connection is not None:
            return page if page.has_free_slot() else None
        free = [page for page in self if page.has_free_slot()]
        return min(free, key=lambda page: len(page.requests), default=None)

    async def wait_for_change(self) -> None:
        """Wait until a page connects, disconnects or finishes a request."""
        await self._changed.wait()

    def _notify_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
