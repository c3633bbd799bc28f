"""The Agent Client Protocol: the agent inside an editor, over standard input and output.

The protocol is described at agentclientprotocol.com (version 1). An editor's permission dialogue decides what the
policy leaves open; closing it without an answer denies. What was asked, and only that, is what an answer allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from callwright.agent.events import (
    ApprovalAsked,
    SessionEvent,
    Stamped,
    Stopped,
    StopReason,
    TaskGiven,
    TextShown,
    ThinkingShown,
    ToolBegan,
    ToolEnded,
    Warned,
)
from callwright.agent.faces.base import Reply, SessionFace, SessionList
from callwright.agent.faces.rpc import Lines, Peer, RpcError
from callwright.errors import CallwrightError

__all__ = ["OpenDesk", "speak", "updates"]

OpenDesk = Callable[[Path], Awaitable[SessionList]]
"""The sessions of a folder."""

_VERSION = 1
_NOT_FOUND, _BAD_PARAMS = -32601, -32602
_KINDS = {
    "read_file": "read",
    "list_files": "read",
    "search_workspace": "search",
    "get_diagnostics": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "apply_patch": "edit",
    "run_terminal_command": "execute",
}
_ENDS: dict[StopReason, str] = {
    "done": "end_turn",
    "unfinished": "end_turn",
    "denied": "refusal",
    "iterations": "max_turn_requests",
    "time": "max_turn_requests",
    "tokens": "max_tokens",
    "person": "cancelled",
}
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


def updates(event: SessionEvent, began: set[str]) -> Iterator[dict[str, Any]]:
    """What an editor is told of an event. `began` has the calls that it knows already."""
    match event:
        case TaskGiven():
            yield {"sessionUpdate": "user_message_chunk", "content": _text(event.text)}
        case TextShown():
            yield {"sessionUpdate": "agent_message_chunk", "content": _text(event.text)}
        case Warned():
            yield {"sessionUpdate": "agent_message_chunk", "content": _text(f"\n{event.text}\n")}
        case ThinkingShown():
            yield {"sessionUpdate": "agent_thought_chunk", "content": _text(event.text)}
        case ApprovalAsked() if event.call not in began:
            began.add(event.call)
            yield _started(event.call, event.title, "other", "pending")
        case ToolBegan() if event.call in began:
            yield {"sessionUpdate": "tool_call_update", "toolCallId": event.call, "status": "in_progress"}
        case ToolBegan():
            began.add(event.call)
            yield _started(event.call, event.view, _KINDS.get(event.name, "other"), "in_progress")
        case ToolEnded():
            if event.call not in began:
                began.add(event.call)
                yield _started(event.call, event.view, _KINDS.get(event.name, "other"), "pending")
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": event.call,
                "kind": _KINDS.get(event.name, "other"),
                "status": "completed" if event.status == "ok" else "failed",
                "content": [_content(event.content)],
                "locations": [{"path": file.path} for file in event.files],
            }
        case _:
            pass


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": _text(text)}


def _started(call: str, title: str, kind: str, status: str) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": kind, "status": status}


class _Editor:
    """The other side of the connection, and the sessions that it has open."""

    peer: Peer

    def __init__(self, open_desk: OpenDesk, version: str) -> None:
        self._open_desk = open_desk
        self._version = version
        self._sessions: dict[str, SessionFace] = {}
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
            case _:
                raise RpcError(_NOT_FOUND, f"there is no method {method!r} here")

    async def close(self) -> None:
        """Give back every session."""
        for session in self._sessions.values():
            await session.close()

    def _introduced(self) -> dict[str, Any]:
        return {
            "protocolVersion": _VERSION,
            "agentCapabilities": {"loadSession": True, "promptCapabilities": {"embeddedContext": True}},
            "agentInfo": {"name": "callwright", "title": "Callwright", "version": self._version},
            "authMethods": [],
        }

    async def _opened(self, params: dict[str, Any], session: str = "") -> SessionFace:
        folder = params.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_absolute():
            raise RpcError(_BAD_PARAMS, "cwd must be the absolute path of a folder")
        desk = await self._open_desk(Path(folder))
        opened = await desk.open(session)
        self._sessions[opened.id] = opened
        return opened

    async def _loaded(self, params: dict[str, Any]) -> None:
        session = await self._opened(params, str(params.get("sessionId", "")))
        began: set[str] = set()
        for stamped in tuple(session.events):
            await self._tell(session.id, stamped.event, began)

    def _session(self, params: dict[str, Any]) -> SessionFace:
        try:
            return self._sessions[params["sessionId"]]
        except (KeyError, TypeError):
            raise RpcError(_BAD_PARAMS, "there is no such session; begin with session/new") from None

    async def _prompted(self, params: dict[str, Any]) -> dict[str, Any]:
        session = self._session(params)
        task = _words(params.get("prompt"))
        queue: asyncio.Queue[Stamped | None] = asyncio.Queue()
        unwatch = session.watch(queue.put_nowait)
        telling = asyncio.ensure_future(self._tell_all(session, queue))
        try:
            stopped = await session.run(task)
        finally:
            unwatch()
            queue.put_nowait(None)
            await telling
        return _ended(stopped)

    async def _tell_all(self, session: SessionFace, queue: asyncio.Queue[Stamped | None]) -> None:
        began: set[str] = set()
        while stamped := await queue.get():
            if isinstance(stamped.event, TaskGiven):
                continue  # the editor has shown it already
            await self._tell(session.id, stamped.event, began)
            if isinstance(stamped.event, ApprovalAsked):
                asking = asyncio.ensure_future(self._ask(session, stamped.event))
                self._tasks.add(asking)
                asking.add_done_callback(self._tasks.discard)

    async def _tell(self, session: str, event: SessionEvent, began: set[str]) -> None:
        for update in updates(event, began):
            await self.peer.notify("session/update", {"sessionId": session, "update": update})

    async def _ask(self, session: SessionFace, asked: ApprovalAsked) -> None:
        try:
            answer = await self.peer.request("session/request_permission", _permission(session.id, asked))
            outcome = answer.get("outcome") if isinstance(answer, dict) else None
            chosen = outcome.get("optionId", "") if isinstance(outcome, dict) else ""
        except CallwrightError:
            chosen = ""
        session.answer(asked.approval, _REPLIES.get(chosen, _REPLIES["deny"]))


def _permission(session: str, asked: ApprovalAsked) -> dict[str, Any]:
    options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
    told = [f"{asked.why} (risk: {asked.tier})"]
    if asked.command:
        told.append(f"```sh\n{asked.command}\n```")
    if asked.diff:
        told.append(f"```diff\n{asked.diff}\n```")
    if asked.remember:
        options.append({"optionId": "always", "name": "Always in this session", "kind": "allow_always"})
        told.append("Always allows, until this session is closed for good: " + "; ".join(asked.remember))
    options.append({"optionId": "deny", "name": "Deny", "kind": "reject_once"})
    call = {"toolCallId": asked.call, "title": asked.title, "content": [_content("\n\n".join(told))]}
    return {"sessionId": session, "toolCall": call, "options": options}


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


def _ended(stopped: Stopped) -> dict[str, Any]:
    if stopped.reason == "failed":
        raise RpcError(-32603, stopped.text)
    return {
        "stopReason": _ENDS[stopped.reason],
        "_meta": {"callwright": {"reason": stopped.reason, "text": stopped.text}},
    }
