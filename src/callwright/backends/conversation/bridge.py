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

from callwright.backends.base import Answer, Forwarded, ModelInfo
from callwright.backends.conversation.contract import Conversation, Keeper, checked
from callwright.backends.conversation.frames import Create, Hello, Send
from callwright.backends.conversation.pages import Link, Outlet, Page, Pages, Serving
from callwright.backends.faults import Faults
from callwright.backends.settings import BackendSettings
from callwright.backends.watch import Watch
from callwright.errors import BackendError
from callwright.events import Finish, TextDelta
from callwright.model import Request

__all__ = ["GRACE_SECONDS", "BridgeBackend"]

GRACE_SECONDS = 5.0


class BridgeBackend(Keeper):
    """The pages that connect with this backend's token."""

    wire = "conversation"
    flavour = None

    def __init__(self, settings: BackendSettings) -> None:
        self.settings = settings
        self._faults = Faults(settings)
        self._token = _digest(settings.key)
        self._pages = Pages(self._gone)
        self._leaving: dict[Page, asyncio.TimerHandle] = {}
        self._retired = asyncio.Event()

    # ── for whoever has the connections ──────────────────────────────────────────────────────────

    def admits(self, token: str) -> bool:
        """Whether a page with this token may join. Takes the same time for every token."""
        return hmac.compare_digest(_digest(token), self._token) and bool(self.settings.key)

    def join(self, hello: Hello, send: Outlet) -> Link:
        """A page connects, or is back."""
        link = self._pages.join(hello, send)
        if timer := self._leaving.pop(link.page, None):
            timer.cancel()
        return link

    def leave(self, link: Link, *, goodbye: bool) -> None:
        """A connection is over; after a goodbye the page does not come back."""
        if self._pages.leave(link):
            seconds = 0.0 if goodbye else GRACE_SECONDS
            self._leaving[link.page] = asyncio.get_running_loop().call_later(seconds, self._forget, link.page)

    def retire(self) -> None:
        """Another backend takes this one's place: pages are to connect anew."""
        self._retired.set()

    async def released(self, link: Link) -> None:
        """Wait until a page is no longer needed here: this is retired, and the page has answered what it was asked."""
        await self._retired.wait()
        while link.page.serving:
            await self._pages.change()

    def _forget(self, page: Page) -> None:
        self._leaving.pop(page, None)
        self._pages.forget(page)

    # ── a turn ───────────────────────────────────────────────────────────────────────────────────

    def answer(self, request: Request, extra: dict[str, Any]) -> Answer:
        """Ask in a conversation that nobody will go on with."""
        return self.converse(request, Conversation())

    async def converse(self, request: Request, conversation: Conversation) -> Answer:
        """Have a page say it, and read what comes back."""
        begun = asyncio.get_running_loop().time()
        frame, owner = _frame(request, conversation)
        page = await self._page(owner, begun)
        conversation.heard = True
        serving = self._pages.ask(page, frame)
        watch = Watch(self.settings, begun, lambda: serving.fail(self._gone()))
        try:
            while text := await serving.read():
                watch.reads()
                if not watch.started:
                    watch.start()
                yield [TextDelta(text)]
                watch.waits()
            conversation.id = self._named(page, serving) or conversation.id
            yield [Finish("stop")]
        except BackendError as failure:
            raise self._faults.late(watch.late) if watch.late else self._faults.said(failure) from None
        finally:
            watch.close()
            self._pages.end(page, serving)

    async def _page(self, owner: str, begun: float) -> Page:
        """The page that is to answer, as soon as there is one."""
        nobody = self.settings.connect_seconds
        while (page := self._pages.free(owner)) is None:
            crowded = any(True for _ in self._pages)
            seconds = self.settings.first_token_seconds if crowded else nobody
            try:
                async with asyncio.timeout_at(begun + min(seconds, self.settings.total_seconds)):
                    await self._pages.change()
            except TimeoutError:
                raise self._faults.late("first_token_seconds") if crowded else self._absent() from None
        return page

    def _named(self, page: Page, serving: Serving) -> str:
        if isinstance(serving.frame, Create):
            if not serving.conversation:
                raise BackendError("the backend began a conversation without a name: no `opened` came from the page")
            return f"{page.id}/{serving.conversation}"
        return ""

    def _absent(self) -> BackendError:
        message = f"{self._faults.who} has no page connected to its bridge: open one, and see docs/bridge.md"
        return BackendError(message, kind="unavailable", retryable=True)

    def _gone(self) -> BackendError:
        message = "the backend lost the page that was answering: it was closed or its connection broke"
        return BackendError(message, kind="unavailable", retryable=True)

    # ── everything else ──────────────────────────────────────────────────────────────────────────

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the pages name. Without a page there are none to ask."""
        if not self.available:
            raise self._absent()
        names: Iterable[str] = dict.fromkeys(name for page in self._pages for name in page.models)
        return tuple(ModelInfo(name=name, tools=False) for name in names)

    async def forward(self, path: str, body: bytes) -> Forwarded:
        """Pages answer turns, and nothing else."""
        raise BackendError(f"{self._faults.who} has no {path}", kind="refused", status=501)

    @property
    def available(self) -> bool:
        """Whether a page is connected."""
        return any(True for _ in self._pages)

    async def close(self) -> None:
        """Let every page go."""
        self.retire()
        for timer in self._leaving.values():
            timer.cancel()


def _frame(request: Request, conversation: Conversation) -> tuple[Create | Send, str]:
    """The frame that asks, and the page that has the conversation."""
    prompt, system = checked(request)
    owner, _, own = conversation.id.partition("/")
    name = f"req_{secrets.token_hex(8)}"
    if own:
        return Send(name, own, prompt, request.model, system), owner
    return Create(name, prompt, request.model, system), owner


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
