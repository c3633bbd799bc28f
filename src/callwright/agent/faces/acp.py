"""The Agent Client Protocol: the agent inside an editor, over standard input and output.

The protocol is described at agentclientprotocol.com (version 1). An editor's permission dialogue decides what the
policy leaves open; closing it without an answer denies. What was asked, and only that, is what an answer allows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from callwright.agent.faces.acp_messages import ENDS, Telling
from callwright.agent.faces.base import Reply, SessionFace, SessionList
from callwright.agent.faces.rpc import Lines, Peer, RpcError
from callwright.agent.mcp.settings import McpSettings
from callwright.agent.session_events import ApprovalRequested, SessionOpened, StampedEvent, TaskStarted, TaskStopped
from callwright.errors import CallwrightError

__all__ = ["OpenDesk", "speak"]

OpenDesk = Callable[[Path, Sequence[McpSettings]], Awaitable[SessionList]]
"""The sessions of a folder, with MCP servers besides those of the settings."""

_VERSION = 1
_NOT_FOUND, _BAD_PARAMS, _FAILED = -32601, -32602, -32603
_REPLIES = {
    "once": Reply(verdict="once"),
    "always": Reply(verdict="always"),
    "deny": Reply(verdict="deny"),
}


async def speak(lines: Lines, open_desk: OpenDesk, version: str) -> int:
    """Serve one editor until it closes its end."""
    editor = _Editor(open_desk, version)
    peer = editor.peer = Peer(lines, editor.handle)
    try:
        await peer.run()
    finally:
        await editor.close()
    return 0


class _Editor:
    """The other side of the connection, and the sessions that it has open."""

    peer: Peer

    def __init__(self, open_desk: OpenDesk, version: str) -> None:
        self._open_desk = open_desk
        self._version = version
        self._sessions: dict[str, SessionFace] = {}
        self._tellings: dict[str, Telling] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        """Answer a request of the editor."""
        match method:
            case "initialize":
                return self._introduced()
            case "session/new":
                return {"sessionId": (await self._opened(params)).id}
            case "session/load":
                return await self._loaded(params)
            case "session/prompt":
                return await self._prompted(params)
            case "session/cancel":
                self._session(params).stop()
                return None
            case "session/close":
                await self._sessions.pop(self._session(params).id).close()
                return {}
            case _:
                raise RpcError(_NOT_FOUND, f"there is no method {method!r} here")

    async def close(self) -> None:
        """Give back every session."""
        for session in self._sessions.values():
            await session.close()

    def _introduced(self) -> dict[str, Any]:
        return {
            "protocolVersion": _VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"embeddedContext": True},
                "mcpCapabilities": {"http": True},
                "sessionCapabilities": {"close": {}},
            },
            "agentInfo": {"name": "callwright", "title": "Callwright", "version": self._version},
            "authMethods": [],
        }

    async def _opened(self, params: dict[str, Any], session: str = "") -> SessionFace:
        folder = params.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_absolute() or "\0" in folder:
            raise RpcError(_BAD_PARAMS, "cwd must be the absolute path of a folder")
        desk = await self._open_desk(Path(folder), _servers(params.get("mcpServers")))
        opened = await desk.open(session)
        self._sessions[opened.id] = opened
        self._tellings[opened.id] = _telling(opened)
        return opened

    async def _loaded(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params.get("sessionId")
        if not isinstance(wanted, str) or not wanted:
            raise RpcError(_BAD_PARAMS, "sessionId must be that of a session")
        session = self._sessions.get(wanted) or await self._opened(params, wanted)
        telling = self._tellings[session.id] = _telling(session)
        for stamped in tuple(session.events):
            for update in telling.of(stamped.event):
                await self.peer.notify("session/update", update)
        for update in () if session.busy else telling.rest():
            await self.peer.notify("session/update", update)
        return {}

    def _session(self, params: dict[str, Any]) -> SessionFace:
        try:
            return self._sessions[params["sessionId"]]
        except (KeyError, TypeError):
            raise RpcError(_BAD_PARAMS, "there is no such session; begin with session/new") from None

    async def _prompted(self, params: dict[str, Any]) -> dict[str, Any]:
        session = self._session(params)
        task = _words(params.get("prompt"))
        queue: asyncio.Queue[StampedEvent | None] = asyncio.Queue()
        unwatch = session.watch(queue.put_nowait)
        following = asyncio.ensure_future(self._follow(session, queue))
        try:
            stopped = await session.run(task)
        finally:
            unwatch()
            queue.put_nowait(None)
            await following
        return _ended(stopped)

    async def _follow(self, session: SessionFace, queue: asyncio.Queue[StampedEvent | None]) -> None:
        telling = self._tellings[session.id]
        while stamped := await queue.get():
            if isinstance(stamped.event, TaskStarted):
                continue  # the editor has shown it already
            for update in telling.of(stamped.event):
                await self.peer.notify("session/update", update)
            if isinstance(stamped.event, ApprovalRequested):
                asking = asyncio.ensure_future(self._ask(session, stamped.event, telling.permission(stamped.event)))
                self._tasks.add(asking)
                asking.add_done_callback(self._tasks.discard)

    async def _ask(self, session: SessionFace, asked: ApprovalRequested, question: dict[str, Any]) -> None:
        try:
            answer = await self.peer.request("session/request_permission", question)
        except CallwrightError:
            answer = None
        match answer:
            case {"outcome": {"outcome": "selected", "optionId": "once" | "always" as chosen}}:
                reply = _REPLIES[chosen]
            case _:
                reply = _REPLIES["deny"]
        if session.answer(asked.approval, reply):
            # It allows more than was offered. Where the question is over already, this changes nothing.
            session.answer(asked.approval, _REPLIES["deny"])


def _telling(session: SessionFace) -> Telling:
    opened = session.events[0].event
    return Telling(session.id, opened.workspace if isinstance(opened, SessionOpened) else "/")


def _servers(given: Any) -> tuple[McpSettings, ...]:
    """The MCP servers that the editor wants used. They are the person's own, who set them there."""
    return tuple(_server(one) for one in given) if isinstance(given, list) else ()


def _server(given: Any) -> McpSettings:
    match given:
        case {"type": "http", "name": str(name), "url": str(url)}:
            fields: dict[str, Any] = {"url": url, "headers": _named(given.get("headers"))}
        case {"name": str(name), "command": str(command), "args": list(args)} if given.get("type", "stdio") == "stdio":
            fields = {"command": (command, *args) if command else (), "env": _named(given.get("env"))}
        case _:
            raise RpcError(_BAD_PARAMS, "an MCP server has a name, and a command or the url of an http server")
    try:
        # An editor's name for it may be anything; ours is part of its tools' names.
        server = msgspec.convert({"name": re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-"), **fields}, McpSettings)
    except msgspec.ValidationError as problem:
        raise RpcError(_BAD_PARAMS, f"the MCP server {name!r} cannot be used: {problem}") from None
    if server.problem:
        raise RpcError(_BAD_PARAMS, f"the MCP server {name!r} {server.problem}")
    return server


def _named(given: Any) -> dict[str, str]:
    """Names and values, from the list of pairs that the protocol has them in."""
    pairs = given if isinstance(given, list) else ()
    return {
        pair["name"]: pair["value"] for pair in pairs if isinstance(pair, dict) and pair.keys() >= {"name", "value"}
    }


def _words(prompt: Any) -> str:
    """The person's words, and the text that they attached."""
    texts = []
    for block in prompt if isinstance(prompt, list) else ():
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
                texts.append(f"{uri}:\n```\n{text}\n```")
            case {"type": "resource_link", "uri": str(uri)}:
                texts.append(uri)
            case _:
                raise RpcError(_BAD_PARAMS, "a prompt is made of text and resources; this has something else in it")
    if not "".join(texts).strip():
        raise RpcError(_BAD_PARAMS, "the prompt is empty")
    return "\n\n".join(texts)


def _ended(stopped: TaskStopped) -> dict[str, Any]:
    if stopped.reason == "failed":
        raise RpcError(_FAILED, stopped.text)
    return {
        "stopReason": ENDS[stopped.reason],
        "_meta": {"callwright": {"reason": stopped.reason, "text": stopped.text}},
    }
