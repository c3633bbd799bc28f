"""The tool runner: runs one call, whatever kind its tool is of, and tells what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from callwright.agent.change import Change
from callwright.agent.checkpoints import Checkpoints
from callwright.agent.diff import counted
from callwright.agent.effects import Checkpoint, RunTool
from callwright.agent.events import Checkpointed, FileStat, ToolBegan, ToolEnded, ToolStatus, ToolTold
from callwright.agent.halt import Halt, HaltError
from callwright.agent.log import Log
from callwright.agent.nudges import INTERRUPTED
from callwright.agent.planning import arguments_of, digest, shown_diff
from callwright.agent.policy import Policy
from callwright.agent.terminal import Ran, Terminal
from callwright.agent.tools.base import Arguments, Command, Editor, Outside, Reader, Room, Runner, Tool
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError
from callwright.model import ToolCall

__all__ = ["ToolRunner"]

_TOLD_PAUSE = 0.1
_TOLD_LIMIT = 40_000
"""Characters of a tool's output that are shown while it runs; its result has the rest."""
_RESULT_LIMIT = 100_000
_DIFF_LIMIT = 20_000


class ToolRunner:
    """Of one session, with its one terminal."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        terminal: Terminal,
        checkpoints: Checkpoints,
        policy: Policy,
        log: Log,
        halt: Halt,
    ) -> None:
        self._tools = tools
        self._workspace = workspace
        self._terminal = terminal
        self._checkpoints = checkpoints
        self._policy = policy
        self._log = log
        self._halt = halt
        self.task = 0
        """The one that is worked on."""

    async def checkpoint(self, effect: Checkpoint) -> Checkpointed:
        """Keep what an edit is going to overwrite; it must be the edit that was approved."""
        call = effect.call
        tool = self._tools[call.name]
        try:
            if not isinstance(tool, Editor):
                return Checkpointed(call=call.id, paths=())
            changes = tool.plan(arguments_of(call), self._workspace)
            if effect.digest != digest(changes):
                why = "The files have changed since this edit was decided on. Read them again and make a new edit."
                return Checkpointed(call=call.id, paths=(), problem=why)
            if all(change.before == change.after for change in changes):
                return Checkpointed(
                    call=call.id, paths=(), problem="Nothing to do: that is what the files are already."
                )
            await self._checkpoints.before(self.task, call.id, changes)
        except ToolError as problem:
            return Checkpointed(call=call.id, paths=(), problem=str(problem))
        return Checkpointed(call=call.id, paths=tuple(change.path for change in changes))

    async def run(self, effect: RunTool, *, begun: bool = False) -> ToolEnded:
        """Run it. `begun`: a process that is gone had begun to; what changes things is then not run again."""
        call = effect.call
        tool = self._tools[call.name]
        arguments = arguments_of(call)
        view = tool.view(arguments)
        ended = _Ending(call, view)
        if begun and not isinstance(tool, Reader | Editor):
            return ended("unknown", INTERRUPTED, wrote=True)
        try:
            command = tool.command(arguments) if isinstance(tool, Runner) else None
        except ToolError as problem:
            return ended("error", str(problem))
        text = command.text if command else ""
        await self._log.add(ToolBegan(call=call.id, name=call.name, view=view, command=text))
        tongue = _Tongue(call.id, self._log)
        try:
            if isinstance(tool, Editor):
                # Not raced with a stop: it takes milliseconds, and half an edit helps nobody.
                return self._edited(ended, await self._checkpoints.make(call.id, again=begun))
            if command is not None:
                running = self._in_terminal(command, tongue)
                return self._ran(ended, command, await self._aloud(tongue, running, self._terminal.stop))
            room = Room(
                workspace=self._workspace,
                tell=tongue.say,
                protected=self._is_protected,
                environment=self._terminal.environment,
                confined=self._terminal.sandbox.wrapped,
                project_code=self._policy.project_code,
            )
            content = await self._aloud(tongue, _looked_up(tool, arguments, room))
            return ended("ok", content, wrote=isinstance(tool, Outside))
        except ToolError as problem:
            return ended("error", str(problem))
        except HaltError:
            return ended("stopped", "The person stopped this while it ran.", wrote=not isinstance(tool, Reader))

    async def _aloud(
        self, tongue: _Tongue, doing: Coroutine[Any, Any, Any], ending: Callable[[], None] | None = None
    ) -> Any:
        """Do it, raced with a stop; what it says meanwhile is shown."""
        saying = asyncio.ensure_future(tongue.run())
        try:
            return await self._halt.race(doing, ending)
        finally:
            tongue.over.set()
            await saying

    async def _in_terminal(self, command: Command, tongue: _Tongue) -> Ran:
        return await self._terminal.run(command.text, folder=command.folder, seconds=command.seconds, tell=tongue.say)

    def _is_protected(self, path: str) -> bool:
        return self._policy.file(path, "read").decision != "allow"

    def _ran(self, ended: _Ending, command: Command, ran: Ran) -> ToolEnded:
        code = "It was ended" if ran.exit_code is None else f"Exit code {ran.exit_code}"
        where = "the workspace" if ran.folder == "." else ran.folder
        lines = [f"{code}, after {ran.seconds:.1f} s, in {where}.", ran.note, ran.output]
        status: ToolStatus = "stopped" if ran.stopped else "ok" if ran.exit_code == 0 else "error"
        wrote = not self._policy.command(command.text).reads_only
        content = "\n".join(line for line in lines if line)
        return ended(status, content, wrote=wrote, exit_code=ran.exit_code)

    def _edited(self, ended: _Ending, changes: Sequence[Change]) -> ToolEnded:
        files = tuple(_stat(change) for change in changes)
        what = [f"{file.path} was {file.state}: +{file.added} -{file.removed} lines" for file in files]
        told = "\n".join(what) or "Nothing had to be changed."
        return ended("ok", told, files=files, wrote=bool(files), diff=shown_diff(changes, _DIFF_LIMIT))


class _Ending:
    """What came of a call, timed from here."""

    def __init__(self, call: ToolCall, view: str) -> None:
        self._call = call
        self._view = view
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()

    def __call__(self, status: ToolStatus, content: str, **more: Any) -> ToolEnded:
        if len(content) > _RESULT_LIMIT:
            left = len(content) - _RESULT_LIMIT
            content = f"{content[:_RESULT_LIMIT]}\n[{left} characters were left out.]"
        seconds = round(self._clock() - self._began, 3)
        call = self._call
        return ToolEnded(
            call=call.id, name=call.name, view=self._view, status=status, content=content, seconds=seconds, **more
        )


class _Tongue:
    """What a tool says while it runs, gathered and shown ten times a second."""

    def __init__(self, call: str, log: Log) -> None:
        self.over = asyncio.Event()
        self._call = call
        self._log = log
        self._pieces: list[str] = []
        self._left = _TOLD_LIMIT

    def say(self, text: str) -> None:
        """Take more of it; what is over the limit is not shown."""
        if text and self._left > 0:
            self._pieces.append(text[: self._left])
            self._left -= len(text)

    async def run(self) -> None:
        """Show it until it is over."""
        while not self.over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), _TOLD_PAUSE)
            if self._pieces:
                text, self._pieces = "".join(self._pieces), []
                await self._log.add(ToolTold(call=self._call, text=text))


async def _looked_up(tool: Tool, arguments: Arguments, room: Room) -> str:
    if isinstance(tool, Outside):
        return await tool.call(arguments, room)
    if isinstance(tool, Reader):
        return await tool.read(arguments, room)
    raise ToolError(f"{type(tool).__name__} is a tool of no known kind")


def _stat(change: Change) -> FileStat:
    added, removed = counted(change.before, change.after)
    state = "created" if change.before is None else "deleted" if change.after is None else "changed"
    return FileStat(path=change.path, added=added, removed=removed, state=state)  # type: ignore[arg-type]
