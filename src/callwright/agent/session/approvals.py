"""Approvals: may a call run? The policy says so, or a person does.

What the policy allows runs, what it denies does not, and for the rest a person is asked and waited for, however long
that takes. Nothing of critical tier runs unasked, whatever is set or remembered. An answer counts for the one question
that it names, and an edit that was approved is the one that is made: its digest goes with the decision.
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
_READ_ONLY = Judgement(tier="none", decision="allow", why="it only looks at the workspace", is_read_only=True)
_UNPROTECTED = Judgement(tier="none", decision="allow", why="the files are not protected")
_APPROVING_SETTINGS = {
    "command": ("commands", "all"),
    "edit": ("edits", "all"),
    "read": ("edits", "all"),
    "tool": ("all",),
}
_MAX_DIFF_CHARS = 200_000


class _JudgedCall(NamedTuple):
    """A call as it is judged and shown."""

    subject: ApprovalSubject
    judgement: Judgement
    title: str
    command: str = ""
    folder: str = ""
    changes: tuple[FileChange, ...] = ()


class Approvals:
    """Of one session: its policy, what was allowed for good, and the questions that are open."""

    def __init__(
        self,
        policy: Policy,
        settings: AgentSettings,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        where: Callable[[], str],
        log: EventLog,
        halt: StopSignal,
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._tools = tools
        self._workspace = workspace
        self._get_terminal_folder = where
        self._log = log
        self._stop_signal = halt
        self._remembered_patterns: list[str] = []
        self._pending: dict[str, tuple[ApprovalRequested, asyncio.Future[ApprovalReply]]] = {}

    def remember_patterns(self, patterns: Sequence[str]) -> None:
        """Allow these for the rest of the session; they were allowed before it was opened again."""
        self._remembered_patterns.extend(patterns)

    def submit_reply(self, approval: str, reply: ApprovalReply) -> str:
        """A person's answer. Returns what is wrong with it, if anything."""
        if approval not in self._pending:
            return "that question was answered already, or never asked"
        asked, waiting = self._pending[approval]
        if reply.verdict == "always" and not asked.remember:
            return "this cannot be allowed always, only once"
        if reply.command and asked.subject != "command":
            return "only commands can be edited"
        if reply.verdict == "always" and reply.command not in ("", asked.command):
            return "a command that was edited can be allowed only once"
        if not waiting.done():
            waiting.set_result(reply)
        return ""

    async def decide_call(self, effect: DecideCall) -> CallDecided:
        """May this call run, and as what?"""
        call = effect.call
        tool = self._tools[call.name]
        case = self._judge_call(call, tool)
        if effect.is_repeat and case.judgement.decision != "deny":
            why = "the model makes the same call for the third time running; it may be going in circles"
            why = why if case.judgement.decision == "allow" else f"{why}. {case.judgement.why}"
            case = case._replace(
                subject="again", judgement=Judgement(tier=case.judgement.tier, decision="ask", why=why)
            )
        if done := self._decide_automatically(call, case):
            return done
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
        asked = ApprovalRequested(
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
        reply = await self._wait_for_reply(asked)
        return await self._apply_reply(call, tool, case, reply)

    async def request_consent(self, title: str, why: str, always: str) -> ApprovalReply:
        """Ask about something that is no call of the model: to start programs that the project names."""
        number = _new_approval_id()
        asked = ApprovalRequested(
            approval=number, call=number, subject="server", title=title, why=why, tier="high", remember=(always,)
        )
        reply = await self._wait_for_reply(asked)
        allowed = reply.verdict in ("once", "always")
        by: Decider = "settings" if reply.is_unattended else "person"
        call = ToolCall(number, "", "{}")
        await self._log.add(CallDecided(call=call, verdict="allow" if allowed else "deny", by=by, why=why))
        return reply

    async def _wait_for_reply(self, asked: ApprovalRequested) -> ApprovalReply:
        waiting: asyncio.Future[ApprovalReply] = asyncio.get_running_loop().create_future()
        self._pending[asked.approval] = asked, waiting  # before it is shown: the answer may come at once
        try:
            await self._log.add(asked)
            return await self._stop_signal.run_until_stopped(_await_reply(waiting))
        except StoppedError:
            return ApprovalReply(verdict="stop")
        finally:
            del self._pending[asked.approval]

    async def _apply_reply(self, call: ToolCall, tool: Tool, case: _JudgedCall, reply: ApprovalReply) -> CallDecided:
        if reply.verdict == "deny" or reply.verdict == "stop":
            by: Decider = "settings" if reply.is_unattended else "person"
            why = f"nobody was there to ask; {case.judgement.why}" if reply.is_unattended else case.judgement.why
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
        """A changed command is judged again (A-14); who wrote it need not be asked about it unless it is worse."""
        arguments = tool.replace_command(parse_call_arguments(call), reply.command)
        changed = msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())
        again = self._judge_call(changed, self._tools[call.name])
        if again.judgement.decision == "deny":
            return CallDecided(call=changed, verdict="deny", by="policy", why=again.judgement.why)
        told = f"The person changed the command to: {reply.command}"
        words = f"{told}\n{reply.words}" if reply.words else told
        if again.judgement.decision == "ask" and _TIER_RANK[again.judgement.tier] > _TIER_RANK[case.judgement.tier]:
            decided = await self._request_approval(changed, self._tools[call.name], again)
            return decided if decided.words else msgspec.structs.replace(decided, words=words)
        return CallDecided(call=changed, verdict="allow", by="person", why=again.judgement.why, words=words)

    # ── what a call is ───────────────────────────────────────────────────────────────────────────

    def _judge_call(self, call: ToolCall, tool: Tool) -> _JudgedCall:
        """Judge it. What cannot be carried out may run: it fails, and the model is told why."""
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
        """The command as it would be from the workspace's root: its paths begin in the folder that it runs in."""
        folder = self._workspace.resolve_path(command.folder or self._get_terminal_folder())
        return command.text if folder == "." else f"cd {shlex.quote(f'./{folder}')}\n{command.text}"

    @property
    def _session_policy(self) -> Policy:
        """The policy with what the person allowed for this session."""
        return self._policy.with_allowances(self._remembered_patterns) if self._remembered_patterns else self._policy

    def _is_remembered(self, call: ToolCall, case: _JudgedCall) -> bool:
        """Whether it is allowed only because the person said so before."""
        if not self._remembered_patterns:
            return False
        if case.subject == "command":
            return self._policy.judge_command(case.command).decision != "allow"
        is_guest = isinstance(self._tools[call.name], ExternalTool)
        return is_guest and self._policy.judge_tool(call.name, parse_call_arguments(call)).decision != "allow"


def _new_approval_id() -> str:
    return f"ask_{secrets.token_hex(8)}"


async def _await_reply(waiting: asyncio.Future[Any]) -> Any:
    return await waiting


def _find_strictest(judged: Iterable[Judgement], otherwise: Judgement) -> Judgement:
    return max(judged, key=lambda each: (_DECISION_RANK[each.decision], _TIER_RANK[each.tier]), default=otherwise)
