"""A session: one workspace, one model, task after task, and everything that happened, in order.

The one place where the loop and the parts that do things meet. A session belongs to one process at a time; another can
open it once that one is gone, and go on in the middle of a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from callwright.agent.answering import Answering
from callwright.agent.approvals import Approvals
from callwright.agent.branch import Branches
from callwright.agent.checkpoints import Checkpoints
from callwright.agent.driver import Driver
from callwright.agent.events import (
    BranchMade,
    Decided,
    FilesChanged,
    Kept,
    Stamped,
    Stopped,
    Summarised,
    TaskGiven,
    Undone,
    Warned,
)
from callwright.agent.faces.base import FileReview, Reply, Watch
from callwright.agent.guests import Guests
from callwright.agent.halt import Halt
from callwright.agent.log import Log
from callwright.agent.loop import Brief, work
from callwright.agent.past import Past, history_of, unfinished
from callwright.agent.review import Review
from callwright.agent.runner import ToolRunner
from callwright.agent.summary import summarised
from callwright.agent.terminal import Terminal
from callwright.agent.workshop import Workshop
from callwright.engine.tokens import count_prompt_tokens_sync, estimate_max_tokens
from callwright.errors import MisuseError
from callwright.model import Message, Request

__all__ = ["Session"]


class Session:
    """An open session."""

    def __init__(self, session: str, workshop: Workshop, log: Log, checkpoints: Checkpoints) -> None:
        self.id = session
        self._workshop = workshop
        self._log = log
        self._checkpoints = checkpoints
        self._review = Review(checkpoints, log)
        self._halt = Halt()
        self._busy = False
        self._tools = dict(workshop.tools)
        self._guests = Guests(workshop.servers, workshop.workspace.root, workshop.trusted, log)
        self._terminal = Terminal(
            workshop.workspace, workshop.terminal, workshop.sandbox, environment=workshop.environment
        )
        self._approvals = Approvals(
            workshop.policy, workshop.settings, self._tools, workshop.workspace, self._place, log, self._halt
        )
        self._runner = ToolRunner(
            self._tools, workshop.workspace, self._terminal, checkpoints, workshop.policy, log, self._halt
        )
        answering = Answering(workshop.ask, workshop.model, self._tools, workshop.options, log, self._halt)
        self._driver = Driver(log, answering, self._approvals, self._runner)
        for stamped in log.events:
            if isinstance(stamped.event, Decided):
                self._approvals.remember(stamped.event.remembered)

    @property
    def events(self) -> Sequence[Stamped]:
        """Everything so far."""
        return self._log.events

    @property
    def busy(self) -> bool:
        """A task is being worked on."""
        return self._busy

    def watch(self, watch: Watch) -> Callable[[], None]:
        """Be shown all events from now on; call what is returned to be shown no more."""
        return self._log.watch(watch)

    def stop(self) -> None:
        """Stop the work."""
        self._halt.ask()

    def answer(self, approval: str, reply: Reply) -> str:
        """Answer an approval. Returns what is wrong with the answer, if anything."""
        return self._approvals.answer(approval, reply)

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────

    async def run(self, task: str) -> Stopped:
        """Work on a task to its end."""
        self._begin()
        try:
            number = 1 + sum(isinstance(stamped.event, TaskGiven) for stamped in self.events)
            await self._checkpoints.recover()  # after a task that was left and not gone on with
            await self._checkpoints.recover()
            await self._equip()
            start = len(self.events)
            await self._branch(task)
            return await self._work(self._brief(number, task, history_of(self.events)), Past(()), start)
        finally:
            self._busy = False

    async def resume(self) -> Stopped | None:
        """Go on with the task that another process left; None when there is none."""
        self._begin()
        try:
            start = unfinished(self.events)
            if start is None:
                return await self._closed()
            given = self.events[start].event
            if not isinstance(given, TaskGiven):
                raise MisuseError("a task begins with its words")
            past = Past(self.events[start:])
            await self._equip()
            await self._checkpoints.recover(past.planned)
            brief = self._brief(given.task, given.text, history_of(self.events[:start]), given)
            return await self._work(brief, past, start)
        finally:
            self._busy = False

    def _place(self) -> str:
        """Where the terminal is."""
        return self._terminal.folder

    def _begin(self) -> None:
        if self._busy:
            raise MisuseError("a task is being worked on: stop it, or wait for its end")
        self._busy = True
        self._halt.reset()

    async def _equip(self) -> None:
        """Let MCP servers bring their tools, when somebody is there who can be asked."""
        self._tools.update(await self._guests.admit(self._approvals))

    def _brief(self, number: int, task: str, history: tuple[Message, ...], given: TaskGiven | None = None) -> Brief:
        limits = given.limits if given else self._workshop.settings.limits
        window = given.window if given else self._workshop.window

        def count(messages: Sequence[Message]) -> int:
            """Not less than the tokens; exactly those when it matters."""
            specs = tuple(tool.spec for tool in self._tools.values())
            request = Request(self._workshop.model, tuple(messages), specs)
            most = estimate_max_tokens(request)  # costs nothing; the tokenizer takes half a second to load
            return most if most <= window * limits.condense else count_prompt_tokens_sync(request)

        return Brief(
            task=number,
            text=task,
            history=history,
            tools=self._tools,
            limits=limits,
            window=window,
            count=count,
        )

    async def _work(self, brief: Brief, past: Past, start: int) -> Stopped:
        self._runner.task = brief.task
        ended = await self._driver.drive(work(brief), past)
        await self._sum_up(start)
        return ended.stopped

    async def _closed(self) -> Stopped | None:
        """A task that ended and was not summed up, because its process ended in between."""
        last = next((place for place in range(len(self.events) - 1, -1, -1) if _is_end(self.events[place])), None)
        if last is not None and isinstance(stopped := self.events[last].event, Stopped):
            start = next(at for at in range(last, -1, -1) if isinstance(self.events[at].event, TaskGiven))
            await self._sum_up(start)
            return stopped
        return None

    async def _sum_up(self, start: int) -> None:
        files = await self._review.stats()
        await self._log.add(FilesChanged(files=files))
        await self._log.add(summarised(self.events[start:], files))

    async def _branch(self, task: str) -> None:
        if not self._workshop.settings.branch:
            return
        made = await Branches(self._workshop.workspace.root, self._workshop.environment).make(task)
        if made.problem:
            await self._log.add(Warned(made.problem))
        else:
            await self._log.add(BranchMade(branch=made.branch, previous=made.previous))

    # ── changes ──────────────────────────────────────────────────────────────────────────────────

    async def review(self, task: int = 0) -> tuple[FileReview, ...]:
        """The changes that are neither kept nor undone; of one task, or of all."""
        return await self._review.files(task)

    async def keep(self, path: str = "", hunk: str = "", *, task: int = 0) -> Kept:
        """Keep changes: of everything, of a task, of a file, or a hunk of it."""
        return await self._review.keep(path, hunk, task=task)

    async def undo(self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False) -> Undone:
        """Take changes back. What the person changed meanwhile is left alone unless forced."""
        return await self._review.undo(path, hunk, task=task, force=force)

    async def close(self) -> None:
        """Stop, and give everything back."""
        self.stop()
        while self._busy:
            await asyncio.sleep(0.01)
        await self._guests.close()
        await self._terminal.close()
        self._workshop.locks.release(self.id)


def _is_end(stamped: Stamped) -> bool:
    return isinstance(stamped.event, Stopped | Summarised)
