"""Sessions for the web face that are played from lists of events, and the web face itself, served for a test.

    with Web(PlayedSessions([*reading(), *edit()])) as web:
        ...                                  # web.address is what a person opens

A session plays one list for each task. An `ApprovalAsked` in it waits for its answer; what comes of it is told as the
real session does, and a denied call is passed over. A `Gate` waits until the test opens it.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import uvicorn

from callwright.agent.changes.diff import Hunk
from callwright.agent.session_api import ApprovalReply, EventCallback, FileReview, SessionCatalog, SessionRow
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
    ToolOutput,
    ToolStarted,
)
from callwright.agent.ui.web import build_page_url, create_web_app
from callwright.errors import MisuseError, StoreError
from callwright.gateway.server import open_listener
from callwright.model import ToolCall

TOKEN = "a-token-that-nobody-guesses"
BEGAN = 1_900_000_000.0
SECONDS = 20.0


class Gate:
    """A place in a script at which it waits; opened from any thread."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        while not self._open.is_set():
            await asyncio.sleep(0.01)


Script = Sequence[SessionEvent | Gate]


def tasked(text: str, task: int = 1) -> TaskStarted:
    return TaskStarted(task=task, text=text, window=8192)


class PlayedSession:
    """An open session; `disturbed` are files that the person is said to have changed."""

    def __init__(self, name: str, scripts: Iterable[Script], files: dict[str, list[Hunk]], disturbed: set[str]) -> None:
        self.id = name
        self.replies: list[tuple[str, ApprovalReply]] = []
        self.files = {path: list(hunks) for path, hunks in files.items()}
        self._disturbed = disturbed
        self._scripts = iter(scripts)
        self._events: list[StampedEvent] = []
        self._watches: list[EventCallback] = []
        self._tasks = 0
        self._stop: asyncio.Event | None = None
        self._asked = ""
        self._reply: asyncio.Future[ApprovalReply] | None = None
        self.tell(SessionOpened(session=name, workspace="~/project", model="played-7b", system="Be good."))

    @property
    def events(self) -> Sequence[StampedEvent]:
        return self._events

    @property
    def is_busy(self) -> bool:
        return self._stop is not None

    def subscribe(self, watch: EventCallback) -> Callable[[], None]:
        self._watches.append(watch)
        return lambda: self._watches.remove(watch)

    def tell(self, event: SessionEvent) -> None:
        number = len(self._events) + 1
        self._events.append(StampedEvent(number, BEGAN + number, event))
        for watch in self._watches:
            watch(self._events[-1])

    async def run(self, task: str) -> TaskStopped:
        if self.is_busy:
            raise MisuseError("it works already")
        self._tasks += 1
        self.tell(tasked(task, self._tasks))
        return await self._play(next(self._scripts, ()))

    async def resume(self) -> TaskStopped | None:
        return await self._play(next(self._scripts, ()))

    async def _play(self, script: Script) -> TaskStopped:
        self._stop = asyncio.Event()
        playing = asyncio.create_task(self._tell_all(script))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([playing, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        reason = "person" if not playing.done() or playing.result() == "stop" else "done"
        playing.cancel()
        text = "You stopped it." if reason == "person" else "What was asked for was done."
        stopped = TaskStopped(task=self._tasks, reason=reason, text=text)  # type: ignore[arg-type]
        self.tell(stopped)
        self.tell(self._summary())
        self._stop = None
        return stopped

    def _summary(self) -> TaskSummarized:
        ended = [each.event for each in self._events if isinstance(each.event, ToolFinished)]
        lines = {
            status: tuple(each.view for each in ended if each.status == status) for status in ("ok", "error", "denied")
        }
        return TaskSummarized(
            task=self._tasks,
            text="",
            done=lines["ok"],
            failed=lines["error"],
            denied=lines["denied"],
            files=self._stats(),
            turns=2,
            tokens=4321,
            seconds=12.5,
        )

    async def _tell_all(self, script: Script) -> str:
        denied, command = "", ""
        for step in script:
            await asyncio.sleep(0)
            match step:
                case Gate():
                    await step.passed()
                case ApprovalRequested():
                    reply = await self._ask(step)
                    command = reply.command
                    self.tell(_decided(step, reply))
                    if reply.verdict in ("deny", "stop"):
                        denied = step.call
                        view = step.title
                        self.tell(
                            ToolFinished(
                                call=step.call,
                                name="run_terminal_command",
                                view=view,
                                status="denied",
                                content=f"Denied. {reply.words}",
                            )
                        )
                    if reply.verdict == "stop":
                        return "stop"
                case ToolStarted() if command:
                    self.tell(ToolStarted(call=step.call, name=step.name, view=f"Run {command}", command=command))
                case ToolStarted() | ToolOutput() | ToolFinished() if step.call == denied:
                    pass
                case _:
                    self.tell(step)
        return ""

    async def _ask(self, asked: ApprovalRequested) -> ApprovalReply:
        self._asked, self._reply = asked.approval, asyncio.get_running_loop().create_future()
        self.tell(asked)
        return await self._reply

    def stop(self) -> None:
        if self._stop:
            self._stop.set()

    def answer_approval(self, approval: str, reply: ApprovalReply) -> str:
        if approval != self._asked or not self._reply or self._reply.done():
            return "This was answered already."
        self.replies.append((approval, reply))
        self._reply.set_result(reply)
        return ""

    async def review_changes(self, task: int = 0) -> tuple[FileReview, ...]:
        return tuple(
            FileReview(
                path=path,
                added=sum(hunk.added for hunk in hunks),
                removed=sum(hunk.removed for hunk in hunks),
                diff="".join(hunk.text for hunk in hunks),
                hunks=tuple(hunks),
                changed_by_user=path in self._disturbed,
            )
            for path, hunks in self.files.items()
        )

    async def keep_changes(self, path: str = "", hunk: str = "", *, task: int = 0) -> ChangesKept:
        kept = ChangesKept(paths=self._take(path, hunk, set()), hunk=hunk)
        self.tell(kept)
        self.tell(FilesChanged(files=self._stats()))
        return kept

    async def undo_changes(
        self, path: str = "", hunk: str = "", *, task: int = 0, force: bool = False
    ) -> ChangesUndone:
        left = set() if force else self._disturbed & ({path} if path else set(self.files))
        conflicts = tuple(f"{each} was left alone: you changed it since." for each in sorted(left))
        undone = ChangesUndone(paths=self._take(path, hunk, left), hunk=hunk, conflicts=conflicts)
        self.tell(undone)
        self.tell(FilesChanged(files=self._stats()))
        return undone

    def _take(self, path: str, hunk: str, left: set[str]) -> tuple[str, ...]:
        paths = tuple(each for each in ([path] if path else self.files) if each not in left)
        for each in paths:
            self.files[each] = [one for one in self.files[each] if hunk and one.id != hunk]
            if not self.files[each]:
                del self.files[each]
        return paths

    def _stats(self) -> tuple[FileStat, ...]:
        return tuple(
            FileStat(path=path, added=sum(one.added for one in hunks), removed=sum(one.removed for one in hunks))
            for path, hunks in self.files.items()
        )

    async def close(self) -> None:
        self.stop()
        while self.is_busy:
            await asyncio.sleep(0.01)


def _decided(asked: ApprovalRequested, reply: ApprovalReply) -> CallDecided:
    verdict: Any = {"once": "allow", "always": "allow"}.get(reply.verdict, reply.verdict)
    return CallDecided(
        call=ToolCall(asked.call, "run_terminal_command", "{}"),
        verdict=verdict,
        by="person",
        why="",
        words=reply.words,
        remembered=asked.remember if reply.verdict == "always" else (),
    )


class PlayedSessions:
    """The list; every new session plays the same scripts."""

    def __init__(
        self, *scripts: Script, files: dict[str, list[Hunk]] | None = None, disturbed: Iterable[str] = ()
    ) -> None:
        self._scripts, self._files, self._disturbed = scripts, files or {}, set(disturbed)
        self._numbers = itertools.count(1)
        self.all: dict[str, PlayedSession] = {}
        self.opened: set[str] = set()

    def add(self, name: str, events: Iterable[SessionEvent] = ()) -> PlayedSession:
        """One that is there already, and not open."""
        session = self.all[name] = PlayedSession(name, self._scripts, self._files, self._disturbed)
        for event in events:
            session.tell(event)
        return session

    async def list_sessions(self, query: str = "", limit: int = 50, offset: int = 0) -> list[SessionRow]:
        rows = [self._row(each) for each in reversed(self.all.values())]
        return [row for row in rows if query.lower() in row.title.lower()][offset : offset + limit]

    def _row(self, session: PlayedSession) -> SessionRow:
        tasks = [each.event.text for each in session.events if isinstance(each.event, TaskStarted)]
        stats = session._stats() if session.is_busy or tasks else ()
        return SessionRow(
            id=session.id,
            title=tasks[0] if tasks else "",
            workspace="~/project",
            model="played-7b",
            began=BEGAN,
            updated=session.events[-1].at,
            state="working" if session.is_busy else "idle",
            added=sum(each.added for each in stats),
            removed=sum(each.removed for each in stats),
            events=len(session.events),
        )

    async def load_events(self, session: str) -> list[StampedEvent]:
        if session not in self.all:
            raise StoreError("there is no such session")
        return list(self.all[session].events)

    async def open(self, session: str = "") -> PlayedSession:
        if not session:
            session = f"s{next(self._numbers)}"
            self.add(session)
        elif session not in self.all:
            raise StoreError("there is no such session")
        elif session not in self.opened:
            self.all[session].tell(SessionResumed(model="played-7b"))
        self.opened.add(session)
        return self.all[session]

    async def delete(self, session: str) -> None:
        if self.all.pop(session, None) is None:
            raise StoreError("there is no such session")


class Web:
    """The web face on a port of its own, in a thread of its own."""

    def __init__(self, sessions: SessionCatalog, port: int = 0) -> None:
        self._listener = open_listener("127.0.0.1", port)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.address = build_page_url(self.url, TOKEN)
        self._server = uvicorn.Server(
            uvicorn.Config(
                create_web_app(sessions, TOKEN),
                log_config=None,
                access_log=False,
                ws="websockets-sansio",
                lifespan="on",
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)

    def __enter__(self) -> Web:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
