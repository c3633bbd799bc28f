"""The messages of the Agent Client Protocol that say what happens in a session. Pure.

The shapes are those of the protocol's schema, version 1 (agentclientprotocol.com/protocol/schema), which wants absolute
paths. A call's updates all have one id, which no other call of the session has.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from callwright.agent.changes.patch_parser import FilePatch, PatchHunk, parse_patch
from callwright.agent.session_events import (
    ApprovalRequested,
    ApprovalSubject,
    CallDecided,
    SessionEvent,
    StopReason,
    TaskStarted,
    TaskStopped,
    TextAppended,
    ThinkingAppended,
    ToolFinished,
    ToolStarted,
    WarningIssued,
)
from callwright.errors import ToolError

__all__ = ["ENDS", "Telling"]

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
_SUBJECTS: dict[ApprovalSubject, str] = {"command": "execute", "edit": "edit", "read": "read"}
ENDS: dict[StopReason, str] = {
    "done": "end_turn",
    "unfinished": "end_turn",
    # Not `refusal`: an editor takes that to mean that the prompt is not part of the conversation.
    "denied": "end_turn",
    "iterations": "max_turn_requests",
    "time": "max_turn_requests",
    "tokens": "max_tokens",
    "person": "cancelled",
}
"""How a prompt ends; what has failed is an error."""
_TOLD_ENDS = frozenset({"unfinished", "denied", "iterations", "time", "tokens"})
"""Ends that an editor has no words for, or the wrong ones."""


class Telling:
    """What an editor is told of one session."""

    def __init__(self, session: str, root: str) -> None:
        self._session = session
        self._root = PurePosixPath(root)
        self._told: dict[str, int] = {}
        """How often a call of that id was begun: some models count from the start in every answer."""
        self._open: set[str] = set()

    def of(self, event: SessionEvent) -> Iterator[dict[str, Any]]:
        """The updates for an event."""
        match event:
            case TaskStarted():
                yield self._chunk("user_message_chunk", event.text)
            case TextAppended():
                yield self._chunk("agent_message_chunk", event.text)
            case ThinkingAppended():
                yield self._chunk("agent_thought_chunk", event.text)
            case WarningIssued():
                yield self._chunk("agent_message_chunk", f"\n{event.text}\n")
            case TaskStopped() if event.reason in _TOLD_ENDS:
                yield self._chunk("agent_message_chunk", f"\nStopped: {event.text}.\n")
            case ApprovalRequested():
                yield self._call(event.call, event.title, _SUBJECTS.get(event.subject, "other"), "pending")
            case ToolStarted():
                yield self._call(event.call, event.view, _KINDS.get(event.name, "other"), "in_progress")
            case ToolFinished():
                yield from self._ended(event)
            case CallDecided() if event.call.id in self._open and not event.call.name:
                yield self._over(event.call.id, "completed" if event.verdict == "allow" else "failed")
            case _:
                pass

    def rest(self) -> Iterator[dict[str, Any]]:
        """The updates for calls that never came to an end, because their process did."""
        for call in sorted(self._open):
            yield self._over(call, "failed")

    def permission(self, asked: ApprovalRequested) -> dict[str, Any]:
        """The request that asks the person; to be sent after the updates for the same event."""
        options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
        told = [asked.title, f"{asked.why} (risk: {asked.tier})"]
        if asked.command:
            told.append(f"```sh\n{asked.command}\n```")
        if asked.remember:
            options.append({"optionId": "always", "name": "Always allow", "kind": "allow_always"})
            until = "from now on" if asked.subject == "server" else "in this session"
            told.append(f"Always allows, {until}: {'; '.join(asked.remember)}")
        options.append({"optionId": "deny", "name": "Deny", "kind": "reject_once"})
        call = {
            "toolCallId": self._name(asked.call),
            "title": _line(asked.title),
            "kind": _SUBJECTS.get(asked.subject, "other"),
            "status": "pending",
            "content": [_content("\n\n".join(told)), *self._diff(asked.diff)],
        }
        return {"sessionId": self._session, "toolCall": call, "options": options}

    def _chunk(self, kind: str, text: str) -> dict[str, Any]:
        return self._update(kind, content={"type": "text", "text": text})

    def _call(self, call: str, title: str, kind: str, status: str) -> dict[str, Any]:
        what = "tool_call_update"
        if call not in self._open:
            what = "tool_call"
            self._open.add(call)
            self._told[call] = self._told.get(call, 0) + 1
        return self._update(what, toolCallId=self._name(call), title=_line(title), kind=kind, status=status)

    def _ended(self, event: ToolFinished) -> Iterator[dict[str, Any]]:
        kind = _KINDS.get(event.name, "other")
        if event.call not in self._open:
            yield self._call(event.call, event.view, kind, "pending")
        yield self._over(
            event.call,
            "completed" if event.status == "ok" else "failed",
            content=[_content(event.content), *self._diff(event.diff)],
            locations=[{"path": self._absolute(file.path)} for file in event.files],
        )

    def _over(self, call: str, status: str, **more: Any) -> dict[str, Any]:
        self._open.discard(call)
        return self._update("tool_call_update", toolCallId=self._name(call), status=status, **more)

    def _update(self, what: str, **fields: Any) -> dict[str, Any]:
        return {"sessionId": self._session, "update": {"sessionUpdate": what, **fields}}

    def _name(self, call: str) -> str:
        times = self._told.get(call, 1)
        return call if times == 1 else f"{call}#{times}"

    def _absolute(self, path: str) -> str:
        return str(self._root / path)

    def _diff(self, diff: str) -> Iterator[dict[str, Any]]:
        """Hunk by hunk, as an editor shows it; as text where that would be less than the whole."""
        if not diff:
            return
        try:
            files = parse_patch(diff)
        except ToolError:  # it was cut, or has files that are no text
            yield _content(f"```diff\n{diff}\n```")
            return
        for file in files:
            for hunk in file.hunks:
                yield {"type": "diff", "path": self._absolute(file.target or file.path), **_sides(file, hunk)}


def _sides(file: FilePatch, hunk: PatchHunk) -> dict[str, str | None]:
    old, new = ("".join(f"{line}\n" for sign, line in hunk.lines if sign != without) for without in ("+", "-"))
    return {"oldText": None if file.kind == "add" else old, "newText": new}


def _line(title: str) -> str:
    return " ".join(title.split())


def _content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}
