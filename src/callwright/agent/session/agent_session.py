"""A session: one workspace, one model, task after task, and all its events in order.

The session connects the loop to the parts that perform its effects. It belongs to one process at a time; after that
process has ended, another one can open it and continue in the middle of a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.changes.task_branch import TaskBranches
from callwright.agent.event_log import EventLog
from callwright.agent.loop.recorded_answers import RecordedAnswers, build_history, find_unfinished_task
from callwright.agent.loop.task_loop import TaskBrief, run_task_loop
from callwright.agent.loop.task_summary import summarize_task
from callwright.agent.mcp.session_servers import SessionServers
from callwright.agent.session.approvals import Approvals
from callwright.agent.session.change_review import ChangeReview
from callwright.agent.session.context import AgentContext
from callwright.agent.session.effect_driver import EffectDriver
from callwright.agent.session.model_calls import ModelCaller
from callwright.agent.session.stop_signal import StopSignal
from callwright.agent.session.tool_runner import ToolRunner
from callwright.agent.session_api import ApprovalReply, FileReview
from callwright.agent.session_events import (
    BranchCreated,
    CallDecided,
    ChangesKept,
    ChangesUndone,
    EventCallback,
    FilesChanged,
    StampedEvent,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    WarningIssued,
)
from callwright.agent.shell.terminal import Terminal
from callwright.engine.tokens import count_prompt_tokens_sync, estimate_max_tokens
from callwright.errors import MisuseError
from callwright.model import Message, Request

__all__ = ["AgentSession"]


class AgentSession:
    """An open session."""

    def __init__(self, session: str, context: AgentContext, log: EventLog, checkpoints: Checkpoints) -> None:
        self.id = session
        self._context = context
        self._log = log
        self._checkpoints = checkpoints
        self._review = ChangeReview(checkpoints, log)
        self._stop_signal = StopSignal()
        self._busy = False
        self._tools = dict(context.tools)
        self._servers = SessionServers(context.mcp_servers, context.workspace.root, context.trusted_projects, log)
        self._terminal = Terminal(
            context.workspace, context.terminal_settings, context.sandbox, environment=context.environment
        )
        self._approvals = Approvals(
            context.policy,
            context.settings,
            self._tools,
            context.workspace,
            self._get_terminal_folder,
            log,
            self._stop_signal,
        )
        self._runner = ToolRunner(
            self._tools, context.workspace, self._terminal, checkpoints, context.policy, log, self._stop_signal
        )
        answering = ModelCaller(
            context.run_turn, context.model, self._tools, context.request_options, log, self._stop_signal
        )
        self._driver = EffectDriver(log, answering, self._approvals, self._runner)
        for stamped in log.events:
            if isinstance(stamped.event, CallDecided):
                self._approvals.remember_patterns(stamped.event.remembered)

    @property
    def events(self) -> Sequence[StampedEvent]:
        """All events so far."""
        return self._log.events

    @property
    def is_busy(self) -> bool:
        """Whether a task is running."""
        return self._busy

    def subscribe(self, callback: EventCallback) -> Callable[[], None]:
        """Show all later events to `callback`; call the result to unsubscribe."""
        return self._log.subscribe(callback)

    def stop(self) -> None:
        """Stop the task."""
        self._stop_signal.request_stop()

    def answer_approval(self, approval: str, reply: ApprovalReply) -> str:
        """Answer an approval. Returns what is wrong with the answer, or an empty string."""
        return self._approvals.submit_reply(approval, reply)

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────

    async def run(self, task: str) -> TaskStopped:
        """Run a task to its end."""
        self._begin_task()
        try:
            number = 1 + sum(isinstance(stamped.event, TaskStarted) for stamped in self.events)
            await self._checkpoints.recover_writes()  # after a task that was interrupted and not resumed
            await self._start_servers()
            start = len(self.events)
            await self._create_branch(task)
            return await self._run_brief(
                self._build_brief(number, task, build_history(self.events)), RecordedAnswers(()), start
            )
        finally:
            self._busy = False

    async def resume(self) -> TaskStopped | None:
        """Continue the task that another process left unfinished; None if there is none."""
        self._begin_task()
        try:
            start = find_unfinished_task(self.events)
            if start is None:
                return await self._summarize_last_task()
            started = self.events[start].event
            if not isinstance(started, TaskStarted):
                raise MisuseError("a task must start with a TaskStarted event")
            recorded = RecordedAnswers(self.events[start:])
            await self._start_servers()
            await self._checkpoints.recover_writes(recorded.planned_edits)
            brief = self._build_brief(started.task, started.text, build_history(self.events[:start]), started)
            return await self._run_brief(brief, recorded, start)
        finally:
            self._busy = False

    def _get_terminal_folder(self) -> str:
        """Return the terminal's current folder."""
        return self._terminal.folder

    def _begin_task(self) -> None:
        if self._busy:
            raise MisuseError("a task is already running: stop it, or wait until it ends")
        self._busy = True
        self._stop_signal.reset()

    async def _start_servers(self) -> None:
        """Start the MCP servers and add their tools; the project's servers need approval first."""
        self._tools.update(await self._servers.start(self._approvals.request_consent))

    def _build_brief(
        self, number: int, task: str, history: tuple[Message, ...], started: TaskStarted | None = None
    ) -> TaskBrief:
        limits = started.limits if started else self._context.settings.limits
        window = started.window if started else self._context.window

        def count(messages: Sequence[Message]) -> int:
            """Return at least the number of tokens; the exact number near the limit."""
            specs = tuple(tool.spec for tool in self._tools.values())
            request = Request(self._context.model, tuple(messages), specs)
            estimate = estimate_max_tokens(request)  # fast; the tokenizer takes half a second to load
            return estimate if estimate <= window * limits.condense else count_prompt_tokens_sync(request)

        return TaskBrief(
            task=number,
            text=task,
            history=history,
            tools=self._tools,
            limits=limits,
            window=window,
            count_tokens=count,
        )

    async def _run_brief(self, brief: TaskBrief, recorded: RecordedAnswers, start: int) -> TaskStopped:
        self._runner.task = brief.task
        ended = await self._driver.run_loop(run_task_loop(brief), recorded)
        await self._add_summary(start)
        return ended.stopped

    async def _summarize_last_task(self) -> TaskStopped | None:
        """Summarize a task that ended without a summary because its process ended in between."""
        last = next((index for index in range(len(self.events) - 1, -1, -1) if _is_task_end(self.events[index])), None)
        if last is not None and isinstance(stopped := self.events[last].event, TaskStopped):
            start = next(at for at in range(last, -1, -1) if isinstance(self.events[at].event, TaskStarted))
            await self._add_summary(start)
            return stopped
        return None

    async def _add_summary(self, start: int) -> None:
        files = await self._review.list_file_stats()
        await self._log.add(FilesChanged(files=files))
        await self._log.add(summarize_task(self.events[start:], files))

    async def _create_branch(self, task: str) -> None:
        if not self._context.settings.branch:
            return
        result = await TaskBranches(self._context.workspace.root, self._context.environment).create_branch(task)
        if result.problem:
            await self._log.add(WarningIssued(result.problem))
        else:
            await self._log.add(BranchCreated(branch=result.branch, previous=result.previous))

    # ── changes ──────────────────────────────────────────────────────────────────────────────────

    async def review_changes(self, task: int = 0) -> tuple[FileReview, ...]:
        """Return the changes that are neither kept nor undone, of one task or of all."""
        return await self._review.list_file_reviews(task)

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        """Keep changes: all, those of a task or a file, or one hunk."""
        return await self._review.keep_changes(path, hunk, task=task)

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        """Undo changes. Lines that the user changed since are left alone unless forced."""
        return await self._review.undo_changes(path, hunk, task=task, force=force)

    async def close(self) -> None:
        """Stop the task and release all resources."""
        self.stop()
        while self._busy:
            await asyncio.sleep(0.01)
        await self._servers.close()
        await self._terminal.close()
        self._context.locks.release(self.id)


def _is_task_end(stamped: StampedEvent) -> bool:
    return isinstance(stamped.event, TaskStopped | TaskSummarized)
