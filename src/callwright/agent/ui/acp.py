"""The Agent Client Protocol: the agent inside an editor, over standard input and output.

The protocol is described at agentclientprotocol.com (version 1). The editor's permission dialogue decides what the
policy leaves open; closing it without an answer denies. An answer allows only what was requested.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from callwright.agent.mcp.settings import McpSettings
from callwright.agent.session_api import ApprovalReply, SessionCatalog, SessionHandle
from callwright.agent.session_events import ApprovalRequested, SessionOpened, StampedEvent, TaskStarted, TaskStopped
from callwright.agent.ui.acp_messages import STOP_REASONS, AcpUpdateBuilder
from callwright.errors import CallwrightError
from callwright.jsonrpc import METHOD_NOT_FOUND, JsonRpcError, JsonRpcPeer, LineTransport

__all__ = ["CatalogOpener", "serve_acp"]

CatalogOpener = Callable[[Path, Sequence[McpSettings]], Awaitable[SessionCatalog]]
"""Opens the session catalog of a folder, with MCP servers in addition to those of the settings."""

_PROTOCOL_VERSION = 1
_INVALID_PARAMS, _INTERNAL_ERROR = -32602, -32603
_APPROVAL_REPLIES = {
    "once": ApprovalReply(verdict="once"),
    "always": ApprovalReply(verdict="always"),
    "deny": ApprovalReply(verdict="deny"),
}


async def serve_acp(transport: LineTransport, open_catalog: CatalogOpener, version: str) -> int:
    """Serve one editor until it closes its end."""
    editor = _AcpConnection(open_catalog, version)
    peer = editor.peer = JsonRpcPeer(transport, editor.handle_request)
    try:
        await peer.run()
    finally:
        await editor.close()
    return 0


class _AcpConnection:
    """One connection to an editor, with the sessions that it has open."""

    peer: JsonRpcPeer

    def __init__(self, open_catalog: CatalogOpener, version: str) -> None:
        self._open_catalog = open_catalog
        self._version = version
        self._sessions: dict[str, SessionHandle] = {}
        self._update_builders: dict[str, AcpUpdateBuilder] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle_request(self, method: str, params: dict[str, Any]) -> Any:
        """Handle a request of the editor."""
        match method:
            case "initialize":
                return self._build_initialize_result()
            case "session/new":
                return {"sessionId": (await self._open_session(params)).id}
            case "session/load":
                return await self._load_session(params)
            case "session/prompt":
                return await self._run_prompt(params)
            case "session/cancel":
                self._find_session(params).stop()
                return None
            case "session/close":
                await self._sessions.pop(self._find_session(params).id).close()
                return {}
            case _:
                raise JsonRpcError(METHOD_NOT_FOUND, f"unknown method {method!r}")

    async def close(self) -> None:
        """Close all sessions."""
        for session in self._sessions.values():
            await session.close()

    def _build_initialize_result(self) -> dict[str, Any]:
        return {
            "protocolVersion": _PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"embeddedContext": True},
                "mcpCapabilities": {"http": True},
                "sessionCapabilities": {"close": {}},
            },
            "agentInfo": {"name": "callwright", "title": "Callwright", "version": self._version},
            "authMethods": [],
        }

    async def _open_session(self, params: dict[str, Any], session: str = "") -> SessionHandle:
        folder = params.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_absolute() or "\0" in folder:
            raise JsonRpcError(_INVALID_PARAMS, "cwd must be the absolute path of a folder")
        catalog = await self._open_catalog(Path(folder), _parse_servers(params.get("mcpServers")))
        opened = await catalog.open(session)
        self._sessions[opened.id] = opened
        self._update_builders[opened.id] = _make_update_builder(opened)
        return opened

    async def _load_session(self, params: dict[str, Any]) -> dict[str, Any]:
        session_id = params.get("sessionId")
        if not isinstance(session_id, str) or not session_id:
            raise JsonRpcError(_INVALID_PARAMS, "sessionId must be the id of a session")
        session = self._sessions.get(session_id) or await self._open_session(params, session_id)
        builder = self._update_builders[session.id] = _make_update_builder(session)
        for stamped in tuple(session.events):
            for update in builder.build_updates(stamped.event):
                await self.peer.notify("session/update", update)
        for update in () if session.is_busy else builder.close_open_calls():
            await self.peer.notify("session/update", update)
        return {}

    def _find_session(self, params: dict[str, Any]) -> SessionHandle:
        try:
            return self._sessions[params["sessionId"]]
        except (KeyError, TypeError):
            raise JsonRpcError(_INVALID_PARAMS, "unknown session; open one with session/new") from None

    async def _run_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        session = self._find_session(params)
        task = _read_prompt_text(params.get("prompt"))
        queue: asyncio.Queue[StampedEvent | None] = asyncio.Queue()
        unwatch = session.subscribe(queue.put_nowait)
        following = asyncio.ensure_future(self._forward_events(session, queue))
        try:
            stopped = await session.run(task)
        finally:
            unwatch()
            queue.put_nowait(None)
            await following
        return _build_prompt_result(stopped)

    async def _forward_events(self, session: SessionHandle, queue: asyncio.Queue[StampedEvent | None]) -> None:
        builder = self._update_builders[session.id]
        while stamped := await queue.get():
            if isinstance(stamped.event, TaskStarted):
                continue  # the editor already shows it
            for update in builder.build_updates(stamped.event):
                await self.peer.notify("session/update", update)
            if isinstance(stamped.event, ApprovalRequested):
                asking = asyncio.ensure_future(
                    self._request_permission(session, stamped.event, builder.build_permission_request(stamped.event))
                )
                self._tasks.add(asking)
                asking.add_done_callback(self._tasks.discard)

    async def _request_permission(
        self, session: SessionHandle, approval: ApprovalRequested, question: dict[str, Any]
    ) -> None:
        try:
            answer = await self.peer.request("session/request_permission", question)
        except CallwrightError:
            answer = None
        match answer:
            case {"outcome": {"outcome": "selected", "optionId": "once" | "always" as chosen}}:
                reply = _APPROVAL_REPLIES[chosen]
            case _:
                reply = _APPROVAL_REPLIES["deny"]
        if session.answer_approval(approval.approval, reply):
            # The answer allows more than was offered. If the approval is already answered, this does nothing.
            session.answer_approval(approval.approval, _APPROVAL_REPLIES["deny"])


def _make_update_builder(session: SessionHandle) -> AcpUpdateBuilder:
    opened = session.events[0].event
    return AcpUpdateBuilder(session.id, opened.workspace if isinstance(opened, SessionOpened) else "/")


def _parse_servers(value: Any) -> tuple[McpSettings, ...]:
    """Parse the MCP servers from the editor. They count as the user's own, who configured them there."""
    return tuple(_parse_server(one) for one in value) if isinstance(value, list) else ()


def _parse_server(value: Any) -> McpSettings:
    match value:
        case {"type": "http", "name": str(name), "url": str(url)}:
            fields: dict[str, Any] = {"url": url, "headers": _parse_pairs(value.get("headers"))}
        case {"name": str(name), "command": str(command), "args": list(args)} if value.get("type", "stdio") == "stdio":
            fields = {"command": (command, *args) if command else (), "env": _parse_pairs(value.get("env"))}
        case _:
            raise JsonRpcError(
                _INVALID_PARAMS, "an MCP server needs a name, and a command or the URL of an HTTP server"
            )
    try:
        # The editor's name may be anything; the converted one becomes part of the tools' names.
        server = msgspec.convert({"name": re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-"), **fields}, McpSettings)
    except msgspec.ValidationError as problem:
        raise JsonRpcError(_INVALID_PARAMS, f"the MCP server {name!r} cannot be used: {problem}") from None
    if server.problem:
        raise JsonRpcError(_INVALID_PARAMS, f"the MCP server {name!r} {server.problem}")
    return server


def _parse_pairs(value: Any) -> dict[str, str]:
    """Parse names and values from the protocol's list of pairs."""
    pairs = value if isinstance(value, list) else ()
    return {
        pair["name"]: pair["value"] for pair in pairs if isinstance(pair, dict) and pair.keys() >= {"name", "value"}
    }


def _read_prompt_text(prompt: Any) -> str:
    """Return the user's text, with the text that they attached."""
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
                raise JsonRpcError(_INVALID_PARAMS, "a prompt can only contain text and resources")
    if not "".join(texts).strip():
        raise JsonRpcError(_INVALID_PARAMS, "the prompt is empty")
    return "\n\n".join(texts)


def _build_prompt_result(stopped: TaskStopped) -> dict[str, Any]:
    if stopped.reason == "failed":
        raise JsonRpcError(_INTERNAL_ERROR, stopped.text)
    return {
        "stopReason": STOP_REASONS[stopped.reason],
        "_meta": {"callwright": {"reason": stopped.reason, "text": stopped.text}},
    }
