"""Runs one call, whatever the kind of its tool, and returns its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.changes.diff import count_changed_lines
from callwright.agent.changes.file_change import FileChange
from callwright.agent.event_log import EventLog
from callwright.agent.loop.effects import RunTool, SaveCheckpoint
from callwright.agent.loop.nudges import CALL_INTERRUPTED
from callwright.agent.policy import Policy
from callwright.agent.session.stop_signal import StoppedError, StopSignal
from callwright.agent.session_events import CheckpointSaved, FileStat, ToolFinished, ToolOutput, ToolStarted, ToolStatus
from callwright.agent.shell.terminal import CommandResult, Terminal
from callwright.agent.tools.base import (
    CommandTool,
    EditTool,
    ExternalTool,
    ReadTool,
    TerminalCommand,
    Tool,
    ToolArguments,
    ToolContext,
)
from callwright.agent.tools.call_preview import format_diff, hash_changes, parse_call_arguments
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from callwright.model import ToolCall

__all__ = ["ToolRunner"]

_PROGRESS_INTERVAL_S = 0.1
_MAX_PROGRESS_CHARS = 40_000
"""The maximum number of output characters shown while a tool runs; its result has the rest."""
_MAX_RESULT_CHARS = 100_000
_MAX_DIFF_CHARS = 20_000


class ToolRunner:
    """Runs the calls of one session, with its one terminal."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        terminal: Terminal,
        checkpoints: Checkpoints,
        policy: Policy,
        log: EventLog,
        stop_signal: StopSignal,
    ) -> None:
        self._tools = tools
        self._workspace = workspace
        self._terminal = terminal
        self._checkpoints = checkpoints
        self._policy = policy
        self._log = log
        self._stop_signal = stop_signal
        self.task = 0
        """The number of the current task."""

    async def save_checkpoint(self, effect: SaveCheckpoint) -> CheckpointSaved:
        """Store what an edit will overwrite; it must be the edit that was approved."""
        call = effect.call
        tool = self._tools[call.name]
        try:
            if not isinstance(tool, EditTool):
                return CheckpointSaved(call=call.id, paths=())
            changes = tool.plan_changes(parse_call_arguments(call), self._workspace)
            if effect.digest != hash_changes(changes):
                why = "The files have changed since this edit was decided on. Read them again and make a new edit."
                return CheckpointSaved(call=call.id, paths=(), problem=why)
            if all(change.before == change.after for change in changes):
                return CheckpointSaved(
                    call=call.id, paths=(), problem="Nothing to do: the files already have this content."
                )
            await self._checkpoints.record_plan(self.task, call.id, changes)
        except ToolError as problem:
            return CheckpointSaved(call=call.id, paths=(), problem=str(problem))
        return CheckpointSaved(call=call.id, paths=tuple(change.path for change in changes))

    async def run_tool(self, effect: RunTool, *, was_started: bool = False) -> ToolFinished:
        """Run a call. `was_started`: a process that has ended had started it; a call with side effects is not run
        again.
        """
        call = effect.call
        tool = self._tools[call.name]
        arguments = parse_call_arguments(call)
        view = tool.describe_call(arguments)
        ended = _ResultBuilder(call, view)
        if was_started and not isinstance(tool, ReadTool | EditTool):
            return ended("unknown", CALL_INTERRUPTED, wrote=True)
        try:
            command = tool.build_command(arguments) if isinstance(tool, CommandTool) else None
        except ToolError as problem:
            return ended("error", str(problem))
        text = command.text if command else ""
        await self._log.add(ToolStarted(call=call.id, name=call.name, view=view, command=text))
        reporter = _ProgressReporter(call.id, self._log)
        try:
            if isinstance(tool, EditTool):
                # Not interruptible by a stop: it takes milliseconds, and half an edit would be useless.
                return self._build_edit_result(
                    ended, await self._checkpoints.write_changes(call.id, resume=was_started)
                )
            if command is not None:
                running = self._run_command(command, reporter)
                return self._build_command_result(
                    ended, command, await self._run_with_progress(reporter, running, self._terminal.stop)
                )
            context = ToolContext(
                workspace=self._workspace,
                report_progress=reporter.add_output,
                is_protected=self._is_protected,
                environment=self._terminal.environment,
                wrap_command=self._terminal.sandbox.wrap_command,
                allows_project_code=self._policy.allows_project_code,
            )
            content = await self._run_with_progress(reporter, _call_tool(tool, arguments, context))
            return ended("ok", content, wrote=isinstance(tool, ExternalTool))
        except ToolError as problem:
            return ended("error", str(problem))
        except StoppedError:
            return ended("stopped", "The user stopped this while it ran.", wrote=not isinstance(tool, ReadTool))

    async def _run_with_progress(
        self, reporter: _ProgressReporter, work: Coroutine[Any, Any, Any], on_stop: Callable[[], None] | None = None
    ) -> Any:
        """Run work in a race with a stop, and show its progress."""
        reporting = asyncio.ensure_future(reporter.run())
        try:
            return await self._stop_signal.run_until_stopped(work, on_stop)
        finally:
            reporter.finished.set()
            await reporting

    async def _run_command(self, command: TerminalCommand, reporter: _ProgressReporter) -> CommandResult:
        return await self._terminal.run(
            command.text, folder=command.folder, timeout_s=command.seconds, on_output=reporter.add_output
        )

    def _is_protected(self, path: str) -> bool:
        return self._policy.judge_file(path, "read").decision != "allow"

    def _build_command_result(
        self, ended: _ResultBuilder, command: TerminalCommand, ran: CommandResult
    ) -> ToolFinished:
        code = "It was stopped" if ran.exit_code is None else f"Exit code {ran.exit_code}"
        folder = "the workspace" if ran.folder == "." else ran.folder
        lines = [f"{code}, after {ran.seconds:.1f} s, in {folder}.", ran.note, ran.output]
        status: ToolStatus = "stopped" if ran.stopped else "ok" if ran.exit_code == 0 else "error"
        wrote = not self._policy.judge_command(command.text).is_read_only
        content = "\n".join(line for line in lines if line)
        return ended(status, content, wrote=wrote, exit_code=ran.exit_code)

    def _build_edit_result(self, ended: _ResultBuilder, changes: Sequence[FileChange]) -> ToolFinished:
        files = tuple(_build_file_stat(change) for change in changes)
        what = [f"{file.path} was {file.state}: +{file.added} -{file.removed} lines" for file in files]
        content = "\n".join(what) or "No change was needed."
        return ended("ok", content, files=files, wrote=bool(files), diff=format_diff(changes, _MAX_DIFF_CHARS))


class _ResultBuilder:
    """Builds the result of a call, with the time since its start."""

    def __init__(self, call: ToolCall, view: str) -> None:
        self._call = call
        self._view = view
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()

    def __call__(self, status: ToolStatus, content: str, **more: Any) -> ToolFinished:
        if len(content) > _MAX_RESULT_CHARS:
            left = len(content) - _MAX_RESULT_CHARS
            content = f"{content[:_MAX_RESULT_CHARS]}\n[{left} characters were omitted.]"
        seconds = round(self._clock() - self._began, 3)
        call = self._call
        return ToolFinished(
            call=call.id, name=call.name, view=self._view, status=status, content=content, seconds=seconds, **more
        )


class _ProgressReporter:
    """Collects the progress of a tool and shows it ten times per second."""

    def __init__(self, call: str, log: EventLog) -> None:
        self.finished = asyncio.Event()
        self._call = call
        self._log = log
        self._pieces: list[str] = []
        self._remaining_chars = _MAX_PROGRESS_CHARS

    def add_output(self, text: str) -> None:
        """Add output; what exceeds the limit is not shown."""
        if text and self._remaining_chars > 0:
            self._pieces.append(text[: self._remaining_chars])
            self._remaining_chars -= len(text)

    async def run(self) -> None:
        """Show progress until the call is finished."""
        while not self.finished.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.finished.wait(), _PROGRESS_INTERVAL_S)
            if self._pieces:
                text, self._pieces = "".join(self._pieces), []
                await self._log.add(ToolOutput(call=self._call, text=text))


async def _call_tool(tool: Tool, arguments: ToolArguments, context: ToolContext) -> str:
    if isinstance(tool, ExternalTool):
        return await tool.call(arguments, context)
    if isinstance(tool, ReadTool):
        return await tool.read(arguments, context)
    raise ToolError(f"{type(tool).__name__} is a tool of an unknown kind")


def _build_file_stat(change: FileChange) -> FileStat:
    added, removed = count_changed_lines(change.before, change.after)
    state = "created" if change.before is None else "deleted" if change.after is None else "changed"
    return FileStat(path=change.path, added=added, removed=removed, state=state)  # type: ignore[arg-type]
