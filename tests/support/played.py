"""Sessions that are played from a list of events, for tests of faces and for looking at them.

A played session tells its events one after another, waits for an answer where one was asked for, and does what the
answer says: a denied call does not run, a stop stops. What comes after the call is told as it was recorded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from callwright.agent.changes.diff import Hunk
from callwright.agent.session_api import ApprovalReply, EventCallback, FileReview, SessionRow
from callwright.agent.session_events import (
    ApprovalRequested,
    CallDecided,
    ChangesKept,
    ChangesUndone,
    FilesChanged,
    FileStat,
    SessionEvent,
    SessionOpened,
    SessionResumed,
    StampedEvent,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    ToolFinished,
)
from callwright.errors import MisuseError, StoreError
from callwright.model import ToolCall

FOLDER = Path(__file__).parents[1] / "vectors" / "sessions"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def recorded(name: str) -> list[StampedEvent]:
    """The events of a vector."""
    decoder = msgspec.json.Decoder(StampedEvent)
    return [decoder.decode(line) for line in (FOLDER / f"{name}.jsonl").read_bytes().splitlines()]


def stamped(*events: SessionEvent, start: int = 1, step: float = 0.5) -> list[StampedEvent]:
    """The same in a row, at times that are made up."""
    return [StampedEvent(start + index, 1_790_000_000 + index * step, event) for index, event in enumerate(events)]


class Played:
    """A session. `speed` is how much faster than recorded it goes; 0 for at once."""

    def __init__(self, events: Sequence[StampedEvent], *, told: int | None = None, speed: float = 0) -> None:
        self._speed = speed
        self._told: list[StampedEvent] = []
        self._watches: list[EventCallback] = []
        self._answer: asyncio.Future[ApprovalReply] | None = None
        self._open = ""
        self._stop = asyncio.Event()
        self.is_busy = False
        self.closed = False
        self.replies: list[tuple[str, ApprovalReply]] = []
        self.tasks: list[str] = []
        self.undone: list[tuple[str, str, bool]] = []
        self.kept: list[tuple[str, str]] = []
        self.reviews: tuple[FileReview, ...] = ()
        self.conflicts: tuple[str, ...] = ()
        first = next((i for i, each in enumerate(events) if isinstance(each.event, TaskStarted)), len(events))
        self._told = list(events[: first if told is None else told])
        self._script = list(events[len(self._told) :])
        self._clock = self._told[-1].at if self._told else 1_790_000_000.0
        opened = self._told[0].event if self._told else None
        self.id = opened.session if isinstance(opened, SessionOpened) else "played"

    @property
    def events(self) -> Sequence[StampedEvent]:
        return self._told

    def subscribe(self, watch: EventCallback) -> Callable[[], None]:
        self._watches.append(watch)
        return lambda: self._watches.remove(watch)

    async def run(self, task: str) -> TaskStopped:
        if self.is_busy:
            raise MisuseError("a task is being worked on")
        self.tasks.append(task)
        return await self._play()

    async def resume(self) -> TaskStopped | None:
        if not self._script or isinstance(self._script[0].event, TaskStarted):
            return None
        return await self._play()

    def stop(self) -> None:
        self._stop.set()
        if self._answer and not self._answer.done():
            self._answer.set_result(ApprovalReply(verdict="stop"))

    def answer_approval(self, approval: str, reply: ApprovalReply) -> str:
        if approval != self._open or self._answer is None or self._answer.done():
            return "this is answered already"
        self.replies.append((approval, reply))
        self._answer.set_result(reply)
        return ""

    async def review_changes(self, task: int = 0) -> tuple[FileReview, ...]:
        return self.reviews

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        self.kept.append((path, hunk))
        kept = ChangesKept(paths=(path,) if path else tuple(each.path for each in self.reviews), hunk=hunk)
        self._tell(kept)
        self._tell(FilesChanged(files=()))
        return kept

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        self.undone.append((path, hunk, force))
        paths = (path,) if path else tuple(each.path for each in self.reviews)
        left = () if force else self.conflicts
        undone = ChangesUndone(paths=() if left else paths, hunk=hunk, conflicts=left)
        self._tell(undone)
        if not left:
            self._tell(FilesChanged(files=()))
        return undone

    async def close(self) -> None:
        self.stop()
        self.closed = True

    async def _play(self) -> TaskStopped:
        self.is_busy = True
        self._stop.clear()
        stopped: TaskStopped | None = None
        skipping = ""
        try:
            while self._script:
                each = self._script.pop(0)
                event = each.event
                if skipping:
                    skipping = "" if isinstance(event, ToolFinished) and event.call == skipping else skipping
                    continue
                if isinstance(event, CallDecided) and self._open:
                    self._open = ""
                    event = self._decided(event)
                await self._pause(each)
                if self._stop.is_set() and not isinstance(event, TaskStopped | TaskSummarized):
                    return self._stopped()
                self._tell(event)
                if isinstance(event, CallDecided) and event.verdict == "deny":
                    skipping = event.call.id
                    self._tell(_denied(event))
                if isinstance(event, ApprovalRequested):
                    await self._wait(event)
                if isinstance(event, TaskStopped):
                    stopped = event
                if isinstance(event, TaskSummarized):
                    break
            if stopped is None:
                raise StoreError("the recorded session ends here")
            return stopped
        finally:
            self.is_busy = False

    async def _pause(self, coming: StampedEvent) -> None:
        gap, self._clock = coming.at - self._clock, coming.at
        await asyncio.sleep(0)
        if self._speed and gap > 0 and not isinstance(coming.event, TaskStarted) and not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), gap / self._speed)

    async def _wait(self, asked: ApprovalRequested) -> None:
        self._open = asked.approval
        self._answer = asyncio.get_running_loop().create_future()
        reply = await self._answer
        if reply.verdict == "stop":
            self._stop.set()

    def _decided(self, event: CallDecided) -> CallDecided:
        reply = self.replies[-1][1] if self.replies else ApprovalReply(verdict="once")
        if reply.verdict == "deny":
            return msgspec.structs.replace(event, verdict="deny", by="person", why="you denied it", words=reply.words)
        if reply.verdict == "always":
            return msgspec.structs.replace(event, remembered=("git push origin …",))
        return event

    def _stopped(self) -> TaskStopped:
        number = len(self.tasks) or 1
        stopped = TaskStopped(task=number, reason="person", text="you stopped it")
        self._tell(stopped)
        self._tell(
            TaskSummarized(
                task=number, text="", done=(), failed=(), denied=(), files=(), turns=1, tokens=0, seconds=1.0
            )
        )
        self._script.clear()
        return stopped

    def _tell(self, event: SessionEvent) -> None:
        at = time.time() if self._speed else self._clock
        self._told.append(StampedEvent(len(self._told) + 1, at, event))
        for watch in list(self._watches):
            watch(self._told[-1])


def _denied(event: CallDecided) -> ToolFinished:
    view = event.why if not isinstance(event.call, ToolCall) else event.call.name
    return ToolFinished(call=event.call.id, name=event.call.name, view=view, status="denied", content="Denied.")


class PlayedSessions:
    """Sessions by their names; a new one plays what it was given."""

    def __init__(self, fresh: Played | None = None, *, stored: dict[str, list[StampedEvent]] | None = None) -> None:
        self.fresh = fresh
        self.stored = stored if stored is not None else {}
        self.deleted: list[str] = []
        self.opened: list[Played] = []

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        rows = [_row(name, events) for name, events in self.stored.items()]
        return [row for row in rows if query.lower() in row.title.lower()][offset : offset + limit]

    async def load_events(self, session: str) -> list[StampedEvent]:
        if session not in self.stored:
            raise StoreError(f"there is no session {session}")
        return self.stored[session]

    async def open(self, session: str = "") -> Played:
        if not session:
            assert self.fresh, "nothing to play"
            played = self.fresh
        else:
            played = Played(events := await self.load_events(session), told=_interrupted_at(events))
        self.opened.append(played)
        return played

    async def delete(self, session: str) -> None:
        await self.load_events(session)
        self.deleted.append(session)


def _interrupted_at(events: list[StampedEvent]) -> int:
    """Up to where another process told: the rest is told by the one that opens the session again."""
    return next((i + 1 for i, each in enumerate(events) if isinstance(each.event, SessionResumed)), len(events))


def _row(name: str, events: list[StampedEvent]) -> SessionRow:
    opened = events[0].event
    assert isinstance(opened, SessionOpened)
    title = next((each.event.text for each in events if isinstance(each.event, TaskStarted)), "")
    files = next((each.event.files for each in reversed(events) if isinstance(each.event, FilesChanged)), ())
    return SessionRow(
        id=name,
        title=title,
        workspace=opened.workspace,
        model=opened.model,
        began=events[0].at,
        updated=events[-1].at,
        state="interrupted" if any(isinstance(each.event, SessionResumed) for each in events) else "idle",
        added=sum(file.added for file in files),
        removed=sum(file.removed for file in files),
        events=len(events),
    )


def review_of(path: str, *hunks: str) -> FileReview:
    """A changed file with these stretches."""
    parts = tuple(
        Hunk(id=f"h{index}", before=(0, 1), after=(0, 1), text=text, added=text.count("\n+"), removed=text.count("\n-"))
        for index, text in enumerate(hunks)
    )
    return FileReview(
        path=path,
        added=sum(part.added for part in parts),
        removed=sum(part.removed for part in parts),
        diff="\n".join(hunks),
        hunks=parts,
    )


def stat(path: str, added: int, removed: int) -> FileStat:
    return FileStat(path=path, added=added, removed=removed)
