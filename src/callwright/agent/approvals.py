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

from callwright.agent.change import Change
from callwright.agent.effects import Decide
from callwright.agent.events import ApprovalAsked, By, Decided, Subject
from callwright.agent.faces.base import Reply
from callwright.agent.halt import Halt, HaltError
from callwright.agent.log import Log
from callwright.agent.planning import arguments_of, digest, shown_diff
from callwright.agent.policy import Judgement, Policy
from callwright.agent.settings import AgentSettings
from callwright.agent.tools.base import Arguments, Command, Editor, Outside, Reader, Runner, Tool
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError
from callwright.model import ToolCall

__all__ = ["Approvals"]

_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_TIERS = {"none": 0, "medium": 1, "high": 2, "critical": 3}
_FREE = Judgement(tier="none", decision="allow", why="it only looks at the workspace", reads_only=True)
_PLAIN = Judgement(tier="none", decision="allow", why="the files are not protected")
_APPROVED = {"command": ("commands", "all"), "edit": ("edits", "all"), "read": ("edits", "all"), "tool": ("all",)}
_DIFF_LIMIT = 200_000


class _Case(NamedTuple):
    """A call as it is judged and shown."""

    subject: Subject
    judged: Judgement
    title: str
    command: str = ""
    folder: str = ""
    changes: tuple[Change, ...] = ()


class Approvals:
    """Of one session: its policy, what was allowed for good, and the questions that are open."""

    def __init__(
        self,
        policy: Policy,
        settings: AgentSettings,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        where: Callable[[], str],
        log: Log,
        halt: Halt,
    ) -> None:
        self._policy = policy
        self._settings = settings
        self._tools = tools
        self._workspace = workspace
        self._where = where
        self._log = log
        self._halt = halt
        self._remembered: list[str] = []
        self._open: dict[str, tuple[ApprovalAsked, asyncio.Future[Reply]]] = {}

    def remember(self, patterns: Sequence[str]) -> None:
        """Allow these for the rest of the session; they were allowed before it was opened again."""
        self._remembered.extend(patterns)

    def answer(self, approval: str, reply: Reply) -> str:
        """A person's answer. Returns what is wrong with it, if anything."""
        if approval not in self._open:
            return "that question was answered already, or never asked"
        asked, waiting = self._open[approval]
        if reply.verdict == "always" and not asked.remember:
            return "this cannot be allowed always, only once"
        if reply.command and asked.subject != "command":
            return "only commands can be edited"
        if reply.verdict == "always" and reply.command not in ("", asked.command):
            return "a command that was edited can be allowed only once"
        if not waiting.done():
            waiting.set_result(reply)
        return ""

    async def decide(self, effect: Decide) -> Decided:
        """May this call run, and as what?"""
        call = effect.call
        tool = self._tools[call.name]
        case = self._case(call, tool)
        if effect.again and case.judged.decision != "deny":
            why = "the model makes the same call for the third time running; it may be going in circles"
            why = why if case.judged.decision == "allow" else f"{why}. {case.judged.why}"
            case = case._replace(subject="again", judged=Judgement(tier=case.judged.tier, decision="ask", why=why))
        if done := self._without_asking(call, case):
            return done
        return await self._ask(call, tool, case)

    def _without_asking(self, call: ToolCall, case: _Case) -> Decided | None:
        judged = case.judged
        if judged.decision == "deny":
            return Decided(call=call, verdict="deny", by="policy", why=judged.why)
        if judged.decision == "allow":
            by: By = "remembered" if self._was_remembered(call, case) else "policy"
            return Decided(call=call, verdict="allow", by=by, why=judged.why, digest=digest(case.changes))
        if judged.tier != "critical" and self._settings.approve in _APPROVED.get(case.subject, ()):
            why = f"approve = {self._settings.approve!r} is set; {judged.why}"
            return Decided(call=call, verdict="allow", by="settings", why=why, digest=digest(case.changes))
        return None

    async def _ask(self, call: ToolCall, tool: Tool, case: _Case) -> Decided:
        asked = ApprovalAsked(
            approval=_number(),
            call=call.id,
            subject=case.subject,
            title=case.title,
            why=case.judged.why,
            tier=case.judged.tier,
            command=case.command if case.subject == "command" else "",
            folder=case.folder,
            diff=shown_diff(case.changes, _DIFF_LIMIT),
            remember=case.judged.remember if case.subject in ("command", "tool") else (),
        )
        reply = await self._wait(asked)
        return await self._answered(call, tool, case, reply)

    async def consent(self, title: str, why: str, always: str) -> Reply:
        """Ask about something that is no call of the model: to start programs that the project names."""
        number = _number()
        asked = ApprovalAsked(
            approval=number, call=number, subject="server", title=title, why=why, tier="high", remember=(always,)
        )
        reply = await self._wait(asked)
        allowed = reply.verdict in ("once", "always")
        by: By = "settings" if reply.alone else "person"
        call = ToolCall(number, "", "{}")
        await self._log.add(Decided(call=call, verdict="allow" if allowed else "deny", by=by, why=why))
        return reply

    async def _wait(self, asked: ApprovalAsked) -> Reply:
        waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[asked.approval] = asked, waiting  # before it is shown: the answer may come at once
        try:
            await self._log.add(asked)
            return await self._halt.race(_reply(waiting))
        except HaltError:
            return Reply(verdict="stop")
        finally:
            del self._open[asked.approval]

    async def _answered(self, call: ToolCall, tool: Tool, case: _Case, reply: Reply) -> Decided:
        if reply.verdict == "deny" or reply.verdict == "stop":
            by: By = "settings" if reply.alone else "person"
            why = f"nobody was there to ask; {case.judged.why}" if reply.alone else case.judged.why
            return Decided(call=call, verdict=reply.verdict, by=by, why=why, words=reply.words)
        if isinstance(tool, Runner) and reply.command and reply.command != case.command:
            return await self._edited(call, tool, case, reply)
        remembered = case.judged.remember if reply.verdict == "always" else ()
        self._remembered.extend(remembered)
        return Decided(
            call=call,
            verdict="allow",
            by="person",
            why=case.judged.why,
            words=reply.words,
            remembered=remembered,
            digest=digest(case.changes),
        )

    async def _edited(self, call: ToolCall, tool: Runner, case: _Case, reply: Reply) -> Decided:
        """A changed command is judged again (A-14); who wrote it need not be asked about it unless it is worse."""
        arguments = tool.edited(arguments_of(call), reply.command)
        changed = msgspec.structs.replace(call, arguments=msgspec.json.encode(arguments).decode())
        again = self._case(changed, self._tools[call.name])
        if again.judged.decision == "deny":
            return Decided(call=changed, verdict="deny", by="policy", why=again.judged.why)
        told = f"The person changed the command to: {reply.command}"
        words = f"{told}\n{reply.words}" if reply.words else told
        if again.judged.decision == "ask" and _TIERS[again.judged.tier] > _TIERS[case.judged.tier]:
            decided = await self._ask(changed, self._tools[call.name], again)
            return decided if decided.words else msgspec.structs.replace(decided, words=words)
        return Decided(call=changed, verdict="allow", by="person", why=again.judged.why, words=words)

    # ── what a call is ───────────────────────────────────────────────────────────────────────────

    def _case(self, call: ToolCall, tool: Tool) -> _Case:
        """Judge it. What cannot be carried out may run: it fails, and the model is told why."""
        arguments = arguments_of(call)
        title = tool.view(arguments)
        try:
            match tool:
                case Runner():
                    return self._command(tool, arguments, title)
                case Editor():
                    changes = tool.plan(arguments, self._workspace)
                    judged = [self._policy.file(change.path, "write") for change in changes]
                    return _Case("edit", _strictest(judged, _PLAIN), title, changes=changes)
                case Reader():
                    paths = [self._workspace.relative(path) for path in tool.paths(arguments)]
                    judged = [self._policy.file(path, "read") for path in paths]
                    return _Case("read", _strictest(judged, _FREE), title)
                case Outside():
                    return _Case("tool", self._known.tool(call.name, arguments), title)
        except ToolError as problem:
            return _Case("tool", Judgement(tier="none", decision="allow", why=f"it cannot be done: {problem}"), title)

    def _command(self, tool: Runner, arguments: Arguments, title: str) -> _Case:
        command = tool.command(arguments)
        judged = self._known.command(self._placed(command))
        return _Case("command", judged, title, command=command.text, folder=command.folder)

    def _placed(self, command: Command) -> str:
        """The command as it would be from the workspace's root: its paths begin in the folder that it runs in."""
        folder = self._workspace.relative(command.folder or self._where())
        return command.text if folder == "." else f"cd {shlex.quote(f'./{folder}')}\n{command.text}"

    @property
    def _known(self) -> Policy:
        """The policy with what the person allowed for this session."""
        return self._policy.allowing(self._remembered) if self._remembered else self._policy

    def _was_remembered(self, call: ToolCall, case: _Case) -> bool:
        """Whether it is allowed only because the person said so before."""
        if not self._remembered:
            return False
        if case.subject == "command":
            return self._policy.command(case.command).decision != "allow"
        is_guest = isinstance(self._tools[call.name], Outside)
        return is_guest and self._policy.tool(call.name, arguments_of(call)).decision != "allow"


def _number() -> str:
    return f"ask_{secrets.token_hex(8)}"


async def _reply(waiting: asyncio.Future[Any]) -> Any:
    return await waiting


def _strictest(judged: Iterable[Judgement], otherwise: Judgement) -> Judgement:
    return max(judged, key=lambda each: (_STRICTNESS[each.decision], _TIERS[each.tier]), default=otherwise)
