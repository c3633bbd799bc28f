"""Pages: who is on the bridge, what each is answering, and which of them is asked next. No sockets, no clock.

A page is one script in one tab, whatever becomes of its connections. When one breaks the page keeps its requests for a
while; if it comes back under its name, both sides compare what arrived and go on. A conversation is continued by the
page that began it. If that is gone any other may try, since a service behind the pages may know it too.
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
"""Characters of one answer that may wait for whoever reads it; a connection serves several, so none can be slowed."""

FrameSender = Callable[[GatewayFrame | BridgeCloseCode], None]
"""Sends a frame to a page, or closes the connection, without waiting."""

AnswerFrame = OpenedFrame | TextFrame | DoneFrame | ErrorFrame


class PageRequest:
    """One request while a page answers it."""

    def __init__(self, frame: CreateFrame | SendFrame) -> None:
        self.frame = frame
        self.frame_count = 0
        """Frames of it that came."""
        self.conversation = ""
        """The one that was created."""
        self.is_complete = False
        """The page has said its last word on it."""
        self._chunks: deque[str] = deque()
        self._pending_characters = 0
        self._failure: BackendError | None = None
        self._wake = asyncio.Event()

    def receive_frame(self, frame: AnswerFrame) -> None:
        """The page's next frame. One that came before its connection broke may come again."""
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
        """Whoever reads gets this after what came before."""
        self._failure = self._failure or failure
        self._wake.set()

    async def read(self) -> str:
        """All text that came since the last time; none at the end. Raises what the answer failed with."""
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
        """What came over it. A request that nobody waits for any more is let go."""
        if serving := self.page.requests.get(frame.id):
            serving.receive_frame(frame)

    def send_ping(self) -> None:
        """Ask whether the page lives."""
        self.send(PingFrame())


class BridgePage:
    """One page, connected or soon to be back."""

    def __init__(self, hello: HelloFrame) -> None:
        self.id = hello.page
        self.slots = hello.slots
        self.models = hello.models
        self.requests: dict[str, PageRequest] = {}
        self.connection: BridgeConnection | None = None

    def send_frame(self, frame: GatewayFrame | BridgeCloseCode) -> None:
        """Send a frame, if there is a connection; else it is not needed, or sent when the page is back."""
        if self.connection is not None:
            self.connection.send(frame)

    def has_free_slot(self) -> bool:
        """Whether it can be asked now."""
        return self.connection is not None and len(self.requests) < self.slots


class PageRegistry:
    """All pages of one bridge."""

    def __init__(self, gone: Callable[[], BackendError]) -> None:
        self._pages: dict[str, BridgePage] = {}
        self._build_lost_error = gone
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[BridgePage]:
        """Those that are connected."""
        return iter([page for page in self._pages.values() if page.connection is not None])

    def add_connection(self, hello: HelloFrame, send: FrameSender) -> BridgeConnection:
        """A page connects, or is back. A connection that it had is closed: it has given that up."""
        page = self._pages.setdefault(hello.page, BridgePage(hello))
        page.slots, page.models = hello.slots, hello.models
        page.send_frame(BridgeCloseCode.REPLACED)
        page.connection = BridgeConnection(page, send)
        send(WelcomeFrame({name: serving.frame_count for name, serving in page.requests.items()}))
        for serving in page.requests.values():
            if not serving.frame_count:  # perhaps it never arrived; a page that has it takes no notice
                send(serving.frame)
        self._notify_change()
        return page.connection

    def remove_connection(self, link: BridgeConnection) -> bool:
        """A connection is over. Whether the page has none now."""
        if link.page.connection is not link:
            return False
        link.page.connection = None
        self._notify_change()
        return True

    def remove_page(self, page: BridgePage) -> None:
        """A page will not come back: what it was answering has failed."""
        if page.connection is None and self._pages.get(page.id) is page:
            del self._pages[page.id]
            for serving in page.requests.values():
                serving.fail(self._build_lost_error())

    def start_request(self, page: BridgePage, frame: CreateFrame | SendFrame) -> PageRequest:
        """Have a page answer a request."""
        serving = page.requests[frame.id] = PageRequest(frame)
        page.send_frame(frame)
        return serving

    def end_request(self, page: BridgePage, serving: PageRequest) -> None:
        """Nobody reads this answer any more."""
        if page.requests.pop(serving.frame.id, None) and not serving.is_complete:
            page.send_frame(StopFrame(serving.frame.id))
        self._notify_change()

    def find_free_page(self, owner: str) -> BridgePage | None:
        """The page to ask now: the owner of the conversation if it is here, else the one with least to do."""
        if (page := self._pages.get(owner)) and page.connection is not None:
            return page if page.has_free_slot() else None
        able = [page for page in self if page.has_free_slot()]
        return min(able, key=lambda page: len(page.requests), default=None)

    async def wait_for_change(self) -> None:
        """Wait until a page comes or goes, or has done something."""
        await self._changed.wait()

    def _notify_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
