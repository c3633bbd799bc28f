"""Builds the Agent Client Protocol messages that report what happens in a session. Pure.

The shapes follow the protocol's schema, version 1 (agentclientprotocol.com/protocol/schema), which requires absolute
paths. All updates of a call have one id, which no other call of the session has.
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

__all__ = ["STOP_REASONS", "AcpUpdateBuilder"]

_TOOL_KINDS = {
    "read_file": "read",
    "list_files": "read",
    "search_workspace": "search",
    "get_diagnostics": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "apply_patch": "edit",
    "run_terminal_command": "execute",
}
_SUBJECT_KINDS: dict[ApprovalSubject, str] = {"command": "execute", "edit": "edit", "read": "read"}
STOP_REASONS: dict[StopReason, str] = {
    "done": "end_turn",
    "unfinished": "end_turn",
    # Not `refusal`: editors then drop the prompt from the conversation.
    "denied": "end_turn",
    "iterations": "max_turn_requests",
    "time": "max_turn_requests",
    "tokens": "max_tokens",
    "person": "cancelled",
}
"""The stop reasons of a prompt; a failure is an error."""
_REPORTED_REASONS = frozenset({"unfinished", "denied", "iterations", "time", "tokens"})
"""Reasons for which the protocol has no stop reason, or a misleading one."""


class AcpUpdateBuilder:
    """Builds the updates of one session for an editor."""

    def __init__(self, session: str, root: str) -> None:
        self._session = session
        self._root = PurePosixPath(root)
        self._call_counts: dict[str, int] = {}
        """How often a call with that id was started: some models restart their ids in every answer."""
        self._open_calls: set[str] = set()

    def build_updates(self, event: SessionEvent) -> Iterator[dict[str, Any]]:
        """Build the updates for an event."""
        match event:
            case TaskStarted():
                yield self._build_chunk("user_message_chunk", event.text)
            case TextAppended():
                yield self._build_chunk("agent_message_chunk", event.text)
            case ThinkingAppended():
                yield self._build_chunk("agent_thought_chunk", event.text)
            case WarningIssued():
                yield self._build_chunk("agent_message_chunk", f"\n{event.text}\n")
            case TaskStopped() if event.reason in _REPORTED_REASONS:
                yield self._build_chunk("agent_message_chunk", f"\nStopped: {event.text}.\n")
            case ApprovalRequested():
                yield self._start_call(event.call, event.title, _SUBJECT_KINDS.get(event.subject, "other"), "pending")
            case ToolStarted():
                yield self._start_call(event.call, event.view, _TOOL_KINDS.get(event.name, "other"), "in_progress")
            case ToolFinished():
                yield from self._build_end_updates(event)
            case CallDecided() if event.call.id in self._open_calls and not event.call.name:
                yield self._finish_call(event.call.id, "completed" if event.verdict == "allow" else "failed")
            case _:
                pass

    def close_open_calls(self) -> Iterator[dict[str, Any]]:
        """Build the updates for calls that never finished because their process ended."""
        for call in sorted(self._open_calls):
            yield self._finish_call(call, "failed")

    def build_permission_request(self, approval: ApprovalRequested) -> dict[str, Any]:
        """Build the permission request; it must be sent after the updates for the same event."""
        options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
        paragraphs = [approval.title, f"{approval.why} (risk: {approval.tier})"]
        if approval.command:
            paragraphs.append(f"```sh\n{approval.command}\n```")
        if approval.remember:
            options.append({"optionId": "always", "name": "Always allow", "kind": "allow_always"})
            until = "from now on" if approval.subject == "server" else "in this session"
            paragraphs.append(f"“Always allow” covers, {until}: {'; '.join(approval.remember)}")
        options.append({"optionId": "deny", "name": "Deny", "kind": "reject_once"})
        call = {
            "toolCallId": self._make_call_id(approval.call),
            "title": _to_one_line(approval.title),
            "kind": _SUBJECT_KINDS.get(approval.subject, "other"),
            "status": "pending",
            "content": [_build_content("\n\n".join(paragraphs)), *self._build_diffs(approval.diff)],
        }
        return {"sessionId": self._session, "toolCall": call, "options": options}

    def _build_chunk(self, kind: str, text: str) -> dict[str, Any]:
        return self._build_update(kind, content={"type": "text", "text": text})

    def _start_call(self, call: str, title: str, kind: str, status: str) -> dict[str, Any]:
        what = "tool_call_update"
        if call not in self._open_calls:
            what = "tool_call"
            self._open_calls.add(call)
            self._call_counts[call] = self._call_counts.get(call, 0) + 1
        return self._build_update(
            what, toolCallId=self._make_call_id(call), title=_to_one_line(title), kind=kind, status=status
        )

    def _build_end_updates(self, event: ToolFinished) -> Iterator[dict[str, Any]]:
        kind = _TOOL_KINDS.get(event.name, "other")
        if event.call not in self._open_calls:
            yield self._start_call(event.call, event.view, kind, "pending")
        yield self._finish_call(
            event.call,
            "completed" if event.status == "ok" else "failed",
            content=[_build_content(event.content), *self._build_diffs(event.diff)],
            locations=[{"path": self._to_absolute(file.path)} for file in event.files],
        )

    def _finish_call(self, call: str, status: str, **more: Any) -> dict[str, Any]:
        self._open_calls.discard(call)
        return self._build_update("tool_call_update", toolCallId=self._make_call_id(call), status=status, **more)

    def _build_update(self, what: str, **fields: Any) -> dict[str, Any]:
        return {"sessionId": self._session, "update": {"sessionUpdate": what, **fields}}

    def _make_call_id(self, call: str) -> str:
        times = self._call_counts.get(call, 1)
        return call if times == 1 else f"{call}#{times}"

    def _to_absolute(self, path: str) -> str:
        return str(self._root / path)

    def _build_diffs(self, diff: str) -> Iterator[dict[str, Any]]:
        """Return diffs hunk by hunk, as an editor shows them; as text if they are incomplete."""
        if not diff:
            return
        try:
            files = parse_patch(diff)
        except ToolError:  # it is truncated, or has binary files
            yield _build_content(f"```diff\n{diff}\n```")
            return
        for file in files:
            for hunk in file.hunks:
                yield {"type": "diff", "path": self._to_absolute(file.target or file.path), **_split_sides(file, hunk)}


def _split_sides(file: FilePatch, hunk: PatchHunk) -> dict[str, str | None]:
    old, new = ("".join(f"{line}\n" for sign, line in hunk.lines if sign != without) for without in ("+", "-"))
    return {"oldText": None if file.kind == "add" else old, "newText": new}


def _to_one_line(title: str) -> str:
    return " ".join(title.split())


def _build_content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}
