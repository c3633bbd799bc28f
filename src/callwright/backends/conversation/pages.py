"""Pages: who is on the bridge, what each is answering, and which of them is asked next. No sockets, no clock.

A page is one script in one tab, whatever becomes of its connections. When one breaks the page keeps its requests for a
while; if it comes back under its name, both sides compare what arrived and go on. A conversation is continued by the
page that began it. If that is gone any other may try, since a service behind the pages may know it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from callwright.backends.conversation.contract import LOST
from callwright.backends.conversation.frames import (
    Code,
    Create,
    Done,
    Failed,
    Hello,
    Opened,
    Ping,
    Said,
    Send,
    Stop,
    ToPage,
    Welcome,
)
from callwright.errors import BackendError

__all__ = ["Link", "Page", "Pages", "Serving"]

_HELD = 4_000_000
"""Characters of one answer that may wait for whoever reads it; a connection serves several, so none can be slowed."""

Outlet = Callable[[ToPage | Code], None]
"""Sends a frame to a page, or closes the connection, without waiting."""

Answering = Opened | Said | Done | Failed


class Serving:
    """One request while a page answers it."""

    def __init__(self, frame: Create | Send) -> None:
        self.frame = frame
        self.count = 0
        """Frames of it that came."""
        self.conversation = ""
        """The one that was created."""
        self.over = False
        """The page has said its last word on it."""
        self._pieces: deque[str] = deque()
        self._held = 0
        self._failure: BackendError | None = None
        self._wake = asyncio.Event()

    def take(self, frame: Answering) -> None:
        """The page's next frame. One that came before its connection broke may come again."""
        if frame.n < self.count or self.over or self._failure:
            return
        if frame.n > self.count:
            self.fail(BackendError(f"a page skipped frame {self.count} of its answer"))
            return
        self.count += 1
        match frame:
            case Opened():
                self.conversation = frame.conversation
            case Said():
                if frame.text:
                    self._pieces.append(frame.text)
                self._held += len(frame.text)
                if self._held > _HELD:
                    self.fail(BackendError(f"a page sent {_HELD} characters faster than they were read"))
            case Done():
                self.over = True
            case Failed():
                self.over = True
                unknown = frame.code == "unknown_conversation"
                self.fail(BackendError(frame.message, kind="refused", code=LOST if unknown else ""))
        self._wake.set()

    def fail(self, failure: BackendError) -> None:
        """Whoever reads gets this after what came before."""
        self._failure = self._failure or failure
        self._wake.set()

    async def read(self) -> str:
        """All text that came since the last time; none at the end. Raises what the answer failed with."""
        while not self._pieces:
            if self._failure is not None:
                raise self._failure
            if self.over:
                return ""
            self._wake.clear()
            await self._wake.wait()
        text = "".join(self._pieces)
        self._pieces.clear()
        self._held = 0
        return text


class Link:
    """One connection of a page."""

    def __init__(self, page: Page, send: Outlet) -> None:
        self.page = page
        self.send = send

    def take(self, frame: Answering) -> None:
        """What came over it. A request that nobody waits for any more is let go."""
        if serving := self.page.serving.get(frame.id):
            serving.take(frame)

    def ping(self) -> None:
        """Ask whether the page lives."""
        self.send(Ping())


class Page:
    """One page, connected or soon to be back."""

    def __init__(self, hello: Hello) -> None:
        self.id = hello.page
        self.room = hello.room
        self.models = hello.models
        self.serving: dict[str, Serving] = {}
        self.link: Link | None = None

    def tell(self, frame: ToPage | Code) -> None:
        """Send a frame, if there is a connection; else it is not needed, or sent when the page is back."""
        if self.link is not None:
            self.link.send(frame)

    def has_room(self) -> bool:
        """Whether it can be asked now."""
        return self.link is not None and len(self.serving) < self.room


class Pages:
    """All pages of one bridge."""

    def __init__(self, gone: Callable[[], BackendError]) -> None:
        self._pages: dict[str, Page] = {}
        self._gone = gone
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[Page]:
        """Those that are connected."""
        return iter([page for page in self._pages.values() if page.link is not None])

    def join(self, hello: Hello, send: Outlet) -> Link:
        """A page connects, or is back. A connection that it had is closed: it has given that up."""
        page = self._pages.setdefault(hello.page, Page(hello))
        page.room, page.models = hello.room, hello.models
        page.tell(Code.REPLACED)
        page.link = Link(page, send)
        send(Welcome({name: serving.count for name, serving in page.serving.items()}))
        for serving in page.serving.values():
            if not serving.count:  # perhaps it never arrived; a page that has it takes no notice
                send(serving.frame)
        self._change()
        return page.link

    def leave(self, link: Link) -> bool:
        """A connection is over. Whether the page has none now."""
        if link.page.link is not link:
            return False
        link.page.link = None
        self._change()
        return True

    def forget(self, page: Page) -> None:
        """A page will not come back: what it was answering has failed."""
        if page.link is None and self._pages.get(page.id) is page:
            del self._pages[page.id]
            for serving in page.serving.values():
                serving.fail(self._gone())

    def ask(self, page: Page, frame: Create | Send) -> Serving:
        """Have a page answer a request."""
        serving = page.serving[frame.id] = Serving(frame)
        page.tell(frame)
        return serving

    def end(self, page: Page, serving: Serving) -> None:
        """Nobody reads this answer any more."""
        if page.serving.pop(serving.frame.id, None) and not serving.over:
            page.tell(Stop(serving.frame.id))
        self._change()

    def free(self, owner: str) -> Page | None:
        """The page to ask now: the owner of the conversation if it is here, else the one with least to do."""
        if (page := self._pages.get(owner)) and page.link is not None:
            return page if page.has_room() else None
        able = [page for page in self if page.has_room()]
        return min(able, key=lambda page: len(page.serving), default=None)

    async def change(self) -> None:
        """Wait until a page comes or goes, or has done something."""
        await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
