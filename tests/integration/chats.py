"""A chat service that keeps conversations, and the two ways in: over HTTP, and as a page on the bridge.

    service = ChatService()                               # answers with all that a conversation has heard
    with Upstream(service.over_http) as server: …
    with Pages(gateway.url, TOKEN, service, service2): …  # each a page, in a thread of its own

It hears no system messages. What it says to a prompt is `says`, given everything that the conversation has heard.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.upstream import Script, Seen, answer, whole

__all__ = ["TOKEN", "ChatService", "Pages"]

TOKEN = "token-of-the-pages-1234"
Says = Callable[[list[str]], str]


def everything(heard: list[str]) -> str:
    """All that was said in a conversation: if two are ever mixed it shows."""
    return " | ".join(heard)


class ChatService:
    """The conversations: what each has heard, in order."""

    def __init__(self, says: Says = everything, name: str = "c") -> None:
        self.says = says
        self.heard: dict[str, list[str]] = {}
        self.systems: list[str] = []
        self._names = (f"{name}{number}" for number in count(1))
        self._lock = threading.Lock()

    def create(self) -> str:
        with self._lock:
            name = next(self._names)
        self.heard[name] = []
        return name

    def answer(self, name: str, prompt: str, system: str) -> str:
        self.systems.append(system)
        self.heard[name].append(prompt)
        return self.says(self.heard[name])

    def over_http(self, seen: Seen) -> Script:
        if not seen.body:
            return whole(b'{"object": "list", "data": [{"id": "chat"}]}')
        body = seen.json
        name = body.get("conversation") or self.create()
        if name not in self.heard:
            return whole(b'{"error": {"message": "no such conversation"}}', status=404)
        said = self.answer(name, body["prompt"], body["system"]).encode()
        pieces = [said[at : at + 5] for at in range(0, len(said), 5)]
        return answer(*pieces, content_type="text/plain", headers={"x-conversation-id": name})


class Pages:
    """Pages in a thread: one connection for each service. `serve` may be replaced to misbehave."""

    def __init__(self, url: str, token: str, *services: ChatService, slots: int = 4, origin: str | None = None) -> None:
        self.url = url.replace("http", "ws") + "/bridge"
        self.token, self.slots, self.origin = token, slots, origin
        self.services = services
        self.served: list[tuple[str, str]] = []
        """Which page was asked, and how."""
        self.gates: dict[str, asyncio.Event] = {}
        """Pages that answer nothing until they are let."""
        self.closed: list[int] = []
        self._sockets: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []

    def __enter__(self) -> Pages:
        self._thread.start()
        for number in range(len(self.services)):
            self.join(f"page{number + 1}", self.services[number])
        return self

    def __exit__(self, *_: object) -> None:
        async def stop() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self.run(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(15)

    def join(self, name: str, service: ChatService) -> None:
        """A page connects, and is welcome."""

        async def begin() -> None:
            socket = await connect(self.url, origin=self.origin)
            await socket.send(json.dumps({"type": "hello", "token": self.token, "page": name, "slots": self.slots}))
            assert json.loads(await socket.recv())["type"] == "welcome"
            self._sockets[name] = socket
            self._tasks.append(asyncio.create_task(self._page(name, service, socket)))

        self.run(begin())

    def leave(self, name: str) -> None:
        """A tab is closed."""
        self.run(self._sockets[name].close(1001))

    async def _page(self, name: str, service: ChatService, socket: Any) -> None:
        running = []
        try:
            async for text in socket:
                frame = json.loads(text)
                if frame["type"] in ("create", "send"):
                    running.append(asyncio.create_task(self._serve(name, service, socket, frame)))
                elif frame["type"] == "ping":
                    await socket.send('{"type": "pong"}')
        except ConnectionClosed:
            pass
        finally:
            self.closed.append(socket.close_code)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await socket.close()

    async def _serve(self, name: str, service: ChatService, socket: Any, frame: dict[str, Any]) -> None:
        self.served.append((name, frame["type"]))
        numbers = count()

        async def tell(**fields: Any) -> None:
            await socket.send(json.dumps({"id": frame["id"], "n": next(numbers), **fields}))

        if frame["type"] == "create":
            conversation = service.create()
            await tell(type="opened", conversation=conversation)
        elif (conversation := frame["conversation"]) not in service.heard:
            await tell(type="error", message=f"no {conversation} here", code="unknown_conversation")
            return
        said = service.answer(conversation, frame["prompt"], frame["system"])
        for at in range(0, len(said), 5):
            await tell(type="text", text=said[at : at + 5])
            if name in self.gates:
                await self.gates[name].wait()
            await asyncio.sleep(0)
        await tell(type="done")
