"""Approvals: decide whether a call may run, by the policy or by asking the user.

What the policy allows runs, what it denies does not; for everything else the user is asked, without a timeout. Nothing
of critical tier runs without approval, whatever is set or remembered. An answer applies only to the approval that it
names, and only the approved edit is written: the decision contains its hash.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.event_log import EventLog
from callwright.agent.loop.effects import DecideCall
from callwright.agent.policy import Judgement, Policy
from callwright.agent.session.stop_signal import StoppedError, StopSignal
from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, ApprovalSubject, CallDecided, Decider
from callwright.agent.settings import AgentSettings
from callwright.agent.tools.base import (
    CommandTool,
    EditTool,
    ExternalTool,
    ReadTool,
    TerminalCommand,
    Tool,
    ToolArguments,
)
from callwright.agent.tools.call_preview import format_diff, hash_changes, parse_call_arguments
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from callwright.model import ToolCall

__all__ = ["Approvals"]

_DECISION_RANK = {"allow": 0, "ask": 1, "deny": 2}
_TIER_RANK = {"none": 0, "medium": 1, "high": 2, "critical": 3}
_READ_ONLY = Judgement(tier="none", decision="allow", why="it only reads the workspace", is_read_only=True)
_UNPROTECTED = Judgement(tier="none", decision="allow", why="the files are not protected")
_APPROVING_SETTINGS = {
    "command": ("commands", "all"),
    "edit": ("edits", "all"),
    "read": ("edits", "all"),
    "tool": ("all",),
}
_MAX_DIFF_CHARS = 200_000


class _JudgedCall(NamedTuple):
    """A call with its judgement, as shown to the user."""

    subject: ApprovalSubject
    judgement: Judgement
    title: str
    command: str = ""
    folder: str = ""
    changes: tuple[FileChange, ...] = ()


class Approvals:
    """The approvals of one session: its policy, what was allowed for the session, and the pending approvals."""

    def __init__(
        self,
        policy: Policy,
        settings: AgentSettings,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        get_terminal_folder: Callable[[], str],
        log: EventLog,
        stop_signal: StopSignal,
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._tools = tools
        self._workspace = workspace
        self._get_terminal_folder = get_terminal_folder
        self._log = log
        self._stop_signal = stop_signal
        self._remembered_patterns: list[str] = []
        self._pending: dict[str, tuple[ApprovalRequested, asyncio.Future[ApprovalReply]]] = {}

    def remember_patterns(self, patterns: Sequence[str]) -> None:
        """Allow these patterns for the rest of the session; they were allowed before it was reopened."""
        self._remembered_patterns.extend(patterns)

    def submit_reply(self, approval: str, reply: ApprovalReply) -> str:
        """Take the user's answer. Returns what is wrong with it, or an empty string."""
        if approval not in self._pending:
            return "this approval was already answered, or does not exist"
        request, future = self._pending[approval]
        if reply.verdict == "always" and not request.remember:
            return "this can only be allowed once"
        if reply.command and request.subject != "command":
            return "only commands can be edited"
        if reply.verdict == "always" and reply.command not in ("", request.command):
            return "an edited command can only be allowed once"
        if not future.done():
            future.set_result(reply)
        return ""

    async def decide_call(self, effect: DecideCall) -> CallDecided:
        """Decide whether a call may run, and in which form."""
        call = effect.call
        tool = self._tools[call.name]
        case = self._judge_call(call, tool)
        if effect.is_repeat and case.judgement.decision != "deny":
            why = "the model makes the same call for the third time in a row; it may be stuck in a loop"
            why = why if case.judgement.decision == "allow" else f"{why}. {case.judgement.why}"
            case = case._replace(
                subject="again", judgement=Judgement(tier=case.judgement.tier, decision="ask", why=why)
            )
        if decided := self._decide_automatically(call, case):
            return decided
        return await self._request_approval(call, tool, case)

    def _decide_automatically(self, call: ToolCall, case: _JudgedCall) -> CallDecided | None:
        judged = case.judgement
        if judged.decision == "deny":
            return CallDecided(call=call, verdict="deny", by="policy", why=judged.why)
        if judged.decision == "allow":
            by: Decider = "remembered" if self._is_remembered(call, case) else "policy"
            return CallDecided(call=call, verdict="allow", by=by, why=judged.why, digest=hash_changes(case.changes))
        if judged.tier != "critical" and self._settings.approve in _APPROVING_SETTINGS.get(case.subject, ()):
            why = f"approve = {self._settings.approve!r} is set; {judged.why}"
            return CallDecided(call=call, verdict="allow", by="settings", why=why, digest=hash_changes(case.changes))
        return None

    async def _request_approval(self, call: ToolCall, tool: Tool, case: _JudgedCall) -> CallDecided:
        request = ApprovalRequested(
            approval=_new_approval_id(),
            call=call.id,
            subject=case.subject,
            title=case.title,
            why=case.judgement.why,
            tier=case.judgement.tier,
            command=case.command if case.subject == "command" else "",
            folder=case.folder,
            diff=format_diff(case.changes, _MAX_DIFF_CHARS),
            remember=case.judgement.allow_patterns if case.subject in ("command", "tool") else (),
        )
        reply = await self._wait_for_reply(request)
        return await self._apply_reply(call, tool, case, reply)

    async def request_consent(self, title: str, why: str, always: str) -> ApprovalReply:
        """Request approval for something other than a call of the model: starting programs that the project names."""
        number = _new_approval_id()
        request = ApprovalRequested(
            approval=number, call=number, subject="server", title=title, why=why, tier="high", remember=(always,)
        )
        reply = await self._wait_for_reply(request)
        allowed = reply.verdict in ("once", "always")
        by: Decider = "settings" if reply.is_unattended else "person"
        call = ToolCall(number, "", "{}")
        await self._log.add(CallDecided(call=call, verdict="allow" if allowed else "deny", by=by, why=why))
        return reply

    async def _wait_for_reply(self, request: ApprovalRequested) -> ApprovalReply:
        future: asyncio.Future[ApprovalReply] = asyncio.get_running_loop().create_future()
        self._pending[request.approval] = request, future  # before it is shown: the answer may come at once
        try:
            await self._log.add(request)
            return await self._stop_signal.run_until_stopped(_await_reply(future))
        except StoppedError:
            return ApprovalReply(verdict="stop")
        finally:
            del self._pending[request.approval]

    async def _apply_reply(self, call: ToolCall, tool: Tool, case: _JudgedCall, reply: ApprovalReply) -> CallDecided:
        if reply.verdict == "deny" or reply.verdict == "stop":
            by: Decider = "settings" if reply.is_unattended else "person"
            why = (
                f"no user was available to approve; {case.judgement.why}" if reply.is_unattended else case.judgement.why
            )
            return CallDecided(call=call, verdict=reply.verdict, by=by, why=why, words=reply.words)
        if isinstance(tool, CommandTool) and reply.command and reply.command != case.command:
            return await self._decide_edited_command(call, tool, case, reply)
        remembered = case.judgement.allow_patterns if reply.verdict == "always" else ()
        self._remembered_patterns.extend(remembered)
        return CallDecided(
            call=call,
            verdict="allow",
            by="person",
            why=case.judgement.why,
            words=reply.words,
            remembered=remembered,
            digest=hash_changes(case.changes),
        )

    async def _decide_edited_command(
        self, call: ToolCall, tool: CommandTool, case: _JudgedCall, reply: ApprovalReply
    ) -> CallDecided:
        """Judge a changed command again (A-14); it needs another approval only if it is more dangerous."""
        arguments = tool.replace_command(parse_call_arguments(call), reply.command)
        changed = msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())
        again = self._judge_call(changed, self._tools[call.name])
        if again.judgement.decision == "deny":
            return CallDecided(call=changed, verdict="deny", by="policy", why=again.judgement.why)
        note = f"The user changed the command to: {reply.command}"
        words = f"{note}\n{reply.words}" if reply.words else note
        if again.judgement.decision == "ask" and _TIER_RANK[again.judgement.tier] > _TIER_RANK[case.judgement.tier]:
            decided = await self._request_approval(changed, self._tools[call.name], again)
            return decided if decided.words else msgspec.structs.replace(decided, words=words)
        return CallDecided(call=changed, verdict="allow", by="person", why=again.judgement.why, words=words)

    # ── judging calls ────────────────────────────────────────────────────────────────────────────

    def _judge_call(self, call: ToolCall, tool: Tool) -> _JudgedCall:
        """Judge a call. A call that cannot be carried out is allowed: it fails, and the model gets the reason."""
        arguments = parse_call_arguments(call)
        title = tool.describe_call(arguments)
        try:
            match tool:
                case CommandTool():
                    return self._judge_command(tool, arguments, title)
                case EditTool():
                    changes = tool.plan_changes(arguments, self._workspace)
                    judged = [self._policy.judge_file(change.path, "write") for change in changes]
                    return _JudgedCall("edit", _find_strictest(judged, _UNPROTECTED), title, changes=changes)
                case ReadTool():
                    paths = [self._workspace.resolve_path(path) for path in tool.list_paths(arguments)]
                    judged = [self._policy.judge_file(path, "read") for path in paths]
                    return _JudgedCall("read", _find_strictest(judged, _READ_ONLY), title)
                case ExternalTool():
                    return _JudgedCall("tool", self._session_policy.judge_tool(call.name, arguments), title)
        except ToolError as problem:
            return _JudgedCall(
                "tool", Judgement(tier="none", decision="allow", why=f"it cannot be done: {problem}"), title
            )

    def _judge_command(self, tool: CommandTool, arguments: ToolArguments, title: str) -> _JudgedCall:
        command = tool.build_command(arguments)
        judged = self._session_policy.judge_command(self._prefix_folder(command))
        return _JudgedCall("command", judged, title, command=command.text, folder=command.folder)

    def _prefix_folder(self, command: TerminalCommand) -> str:
        """Return the command as seen from the workspace's root: its paths start in the folder that it runs in."""
        folder = self._workspace.resolve_path(command.folder or self._get_terminal_folder())
        return command.text if folder == "." else f"cd {shlex.quote(f'./{folder}')}\n{command.text}"

    @property
    def _session_policy(self) -> Policy:
        """The policy with what the user allowed for this session."""
        return self._policy.with_allowances(self._remembered_patterns) if self._remembered_patterns else self._policy

    def _is_remembered(self, call: ToolCall, case: _JudgedCall) -> bool:
        """Return whether it is allowed only because of an earlier decision of the user."""
        if not self._remembered_patterns:
            return False
        if case.subject == "command":
            return self._policy.judge_command(case.command).decision != "allow"
        is_guest = isinstance(self._tools[call.name], ExternalTool)
        return is_guest and self._policy.judge_tool(call.name, parse_call_arguments(call)).decision != "allow"


def _new_approval_id() -> str:
    return f"ask_{secrets.token_hex(8)}"


async def _await_reply(future: asyncio.Future[Any]) -> Any:
    return await future


def _find_strictest(judged: Iterable[Judgement], otherwise: Judgement) -> Judgement:
    return max(judged, key=lambda each: (_DECISION_RANK[each.decision], _TIER_RANK[each.tier]), default=otherwise)
